"""Applications of LlamaIndex of the sixth draw: long passages behind short ones, an extraction that is mended, rows of JSON.

LlamaIndex looks at the annotations of steps, so that they are no strings here.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.base.response.schema import Response
from llama_index.core.indices.struct_store.sql_retriever import DefaultSQLParser
from llama_index.core.llms import LLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts.default_prompts import DEFAULT_JSONALYZE_PROMPT
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from tests.apps.llamaindex_parts import Replies
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


def get_grouped_docs(nodes):
    """Return a long node for each group of nodes that belong together; here each stands alone."""
    return [TextNode(text=f"{node.text}\n\n", metadata=node.metadata) for node in nodes]


class LongRAGRetriever(BaseRetriever):
    """Finds short nodes, and returns the long ones that they are part of."""

    def __init__(self, grouped_nodes, small_toks, vector_store, embed_model, similarity_top_k):
        super().__init__()
        self._grouped_nodes_dict = {node.id_: node for node in grouped_nodes}
        self._small_toks_dict = {node.id_: node for node in small_toks}
        self._similarity_top_k, self._vec_store, self._embed_model = similarity_top_k, vector_store, embed_model

    def _retrieve(self, query_bundle):
        query_embedding = self._embed_model.get_query_embedding(query_bundle.query_str)
        query_res = self._vec_store.query(VectorStoreQuery(query_embedding=query_embedding, similarity_top_k=500))
        top_parents: dict[str, NodeWithScore] = {}
        for id_, similarity in zip(query_res.ids or [], query_res.similarities or [], strict=True):
            parent_id = self._small_toks_dict[id_].ref_doc_id
            if parent_id not in top_parents and len(top_parents) < self._similarity_top_k:
                top_parents[parent_id] = NodeWithScore(node=self._grouped_nodes_dict[parent_id], score=similarity)
        return list(top_parents.values())


class LoadNodeEvent(Event):
    small_nodes: Iterable[TextNode]
    grouped_nodes: list[TextNode]
    index: VectorStoreIndex
    similarity_top_k: int
    llm: LLM


class LongRAGWorkflow(Workflow):
    """Reads documents and makes an engine in one run, and answers with it in the next."""

    query_eng: Any

    @step
    async def ingest(self, ev: StartEvent) -> LoadNodeEvent | None:
        documents, embed_model = ev.get("documents"), ev.get("embed_model")
        if documents is None:
            return None
        grouped_nodes = get_grouped_docs(SentenceSplitter(chunk_size=4096).get_nodes_from_documents(documents))
        small_nodes = SentenceSplitter(chunk_size=512).get_nodes_from_documents(grouped_nodes)
        return LoadNodeEvent(
            small_nodes=small_nodes,
            grouped_nodes=grouped_nodes,
            index=VectorStoreIndex(small_nodes, embed_model=embed_model),
            similarity_top_k=ev.get("similarity_top_k"),
            llm=ev.get("llm"),
        )

    @step
    async def make_query_engine(self, ev: LoadNodeEvent) -> StopEvent:
        retriever = LongRAGRetriever(
            grouped_nodes=ev.grouped_nodes,
            small_toks=ev.small_nodes,
            vector_store=ev.index.vector_store,
            embed_model=ev.index._embed_model,
            similarity_top_k=ev.similarity_top_k,
        )
        query_eng = RetrieverQueryEngine.from_args(retriever, ev.llm)
        self.query_eng = query_eng  # a context that is handed on would write it down
        return StopEvent(result={"retriever": retriever, "query_engine": query_eng, "index": ev.index})

    @step
    async def query(self, ev: StartEvent) -> StopEvent | None:
        query_str = ev.get("query_str")
        return None if query_str is None else StopEvent(result=self.query_eng.query(query_str))


async def long_rag_workflow():
    """Documents are read in a first run; a question is asked in a second one."""
    question = "How tall is the lighthouse of Vester, and why was the church moved?"
    embedder = Vectors(queries={question: ("lighthouse_long", "church_long", "peat_long")})
    llm = Replies(rules=[("", "It is 38 m tall; the church fled from a dune.")])
    documents = [Document(text=TEXTS[name]) for name in ("peat_long", "church_long", "lighthouse_long")]
    workflow = LongRAGWorkflow(timeout=60)
    await workflow.run(documents=documents, embed_model=embedder, llm=llm, similarity_top_k=2)
    return str(await workflow.run(query_str=question))


class Boat(BaseModel):
    """A boat."""

    kind: str
    name: str
    length: int


class Fleet(BaseModel):
    """Boats."""

    boats: list[Boat]


class ExtractionDone(Event):
    output: str
    passage: str


class ValidationErrorEvent(Event):
    error: str
    wrong_output: str
    passage: str


EXTRACTION_PROMPT = (
    "\nContext information is below:\n---------------------\n{passage}\n---------------------\n\nGiven the context information and "
    "not prior knowledge, create a JSON object from the information in the context.\nThe JSON object must follow the JSON schema:\n{schema}\n\n"
)
REFLECTION_PROMPT = (
    "\nYou already created this output previously:\n---------------------\n{wrong_answer}\n---------------------\n\n"
    "This caused the JSON decode error: {error}\n\nTry again, the response must contain only valid JSON code.\n"
)


class ReflectionWorkflow(Workflow):
    """Extracts an object from a text, and tries again while it is no JSON."""

    llm: Any

    @step
    async def extract(self, ev: StartEvent | ValidationErrorEvent) -> StopEvent | ExtractionDone:
        if isinstance(ev, StartEvent):
            passage, reflection_prompt = ev.get("passage"), ""
            if not passage:
                return StopEvent(result="Please provide some text in input")
        else:
            passage = ev.passage
            reflection_prompt = REFLECTION_PROMPT.format(wrong_answer=ev.wrong_output, error=ev.error)
        prompt = EXTRACTION_PROMPT.format(passage=passage, schema=Fleet.model_json_schema())
        output = await self.llm.acomplete(prompt + reflection_prompt)
        return ExtractionDone(output=str(output), passage=passage)

    @step
    async def validate(self, ev: ExtractionDone) -> StopEvent | ValidationErrorEvent:  # type: ignore[override] # a step
        try:
            json.loads(ev.output)
        except ValueError as error:
            return ValidationErrorEvent(error=str(error), wrong_output=ev.output, passage=ev.passage)
        return StopEvent(result=ev.output)


async def reflection_workflow():
    """The first reply says something before its JSON; the second is JSON alone."""
    made = '{"boats": [{"kind": "cutter", "name": "Maren", "length": 14}, {"kind": "pram", "name": "Bo", "length": 4}]}'
    workflow = ReflectionWorkflow(timeout=120)
    workflow.llm = Replies(rules=[("You already created", made), ("", f"Here is the JSON: {made}")])
    return str(await workflow.run(passage="I own two boats: the cutter Maren of 14 m, and a pram of 4 m, Bo."))


class JsonAnalyzerEvent(Event):
    sql_query: str
    table_schema: dict[str, Any]
    results: list[dict[str, Any]]


DEFAULT_RESPONSE_SYNTHESIS_PROMPT = PromptTemplate(
    "Given a query, synthesize a response based on SQL query results to satisfy the query.\nSQL Query: {sql_query}\n"
    "Table Schema: {table_schema}\nSQL Response: {sql_response}\nQuery: {query_str}\nResponse: "
)


class JSONAnalyzeQueryEngineWorkflow(Workflow):
    """Puts a list of mappings into a table, asks it with SQL, and answers from the rows."""

    @step
    async def jsonalyzer(self, ctx: Context, ev: StartEvent) -> JsonAnalyzerEvent:
        await ctx.store.set("query", ev.get("query"))
        await ctx.store.set("llm", ev.get("llm"))
        table_name, rows = ev.get("table_name"), ev.get("list_of_dict")
        database = sqlite3.connect(":memory:")
        database.row_factory = sqlite3.Row
        database.execute(f"CREATE TABLE {table_name} ({', '.join(rows[0])})")
        database.executemany(
            f"INSERT INTO {table_name} VALUES ({', '.join('?' for _ in rows[0])})",  # noqa: S608 - its own table
            [tuple(row.values()) for row in rows],
        )
        table_schema = {name: type(value).__name__ for name, value in rows[0].items()}
        response_str = await ev.llm.apredict(
            prompt=DEFAULT_JSONALYZE_PROMPT, table_name=table_name, table_schema=table_schema, question=ev.query
        )
        sql_query = DefaultSQLParser().parse_response_to_sql(response_str, ev.query)
        results = [dict(row) for row in database.execute(sql_query)]
        return JsonAnalyzerEvent(sql_query=sql_query, table_schema=table_schema, results=results)

    @step
    async def synthesize(self, ctx: Context, ev: JsonAnalyzerEvent) -> StopEvent:
        llm, query = await ctx.store.get("llm"), await ctx.store.get("query")
        response_str = llm.predict(
            DEFAULT_RESPONSE_SYNTHESIS_PROMPT,
            sql_query=ev.sql_query,
            table_schema=ev.table_schema,
            sql_response=ev.results,
            query_str=query,
        )
        metadata = {"sql_query": ev.sql_query, "table_schema": str(ev.table_schema)}
        return StopEvent(result=Response(response=response_str, metadata=metadata))


async def jsonalyze_workflow():
    """Divers are counted by the harbour that they come from."""
    divers = [{"name": f"Diver {place}", "harbour": "Skagen" if place < 17 else "Vester"} for place in range(20)]
    llm = Replies(
        rules=[
            ("SQL Response", "From Skagen, with 17 of them."),
            ("", "SELECT harbour, COUNT(*) AS divers FROM divers GROUP BY harbour ORDER BY divers DESC LIMIT 1"),
        ]
    )
    workflow = JSONAnalyzeQueryEngineWorkflow()
    return str(
        await workflow.run(
            query="Which harbour do most divers come from?", list_of_dict=divers, llm=llm, table_name="divers"
        )
    )


INSTRUMENTED = {
    "long-rag-workflow": long_rag_workflow,
    "reflection-workflow": reflection_workflow,
    "jsonalyze-workflow": jsonalyze_workflow,
}
