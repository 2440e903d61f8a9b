"""Applications of LlamaIndex of the seventh draw: an answer that is written ahead of its searches, numbered sources, answers
as objects.

LlamaIndex looks at the annotations of steps, so that they are no strings here.
"""

import json
from typing import Any

from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import FLAREInstructQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


def documents(*names):
    """Return texts as they are read from files, without ids of their own."""
    return [Document(text=TEXTS[name]) for name in names]


def flare_engine():
    """A model writes the answer piece by piece, with searches in it; an engine answers these, and a model fills them in.

    Each piece may search once: what stands behind a second search is cut off. The engine alone is asked the same.
    """
    trade, life = "What was Maren Holk's path in trade?", "Tell me about Maren Holk from childhood on."
    queries = {
        trade: ("holk_loft", "holk_brown"),
        life: ("holk_child", "holk_loft"),
        "What did Maren Holk do in trade?": ("holk_loft", "holk_brown"),
        "What became of her loft?": ("holk_heirs", "holk_loft"),
        "Where did Maren Holk grow up?": ("holk_child", "holk_school"),
        "Where did she learn to weave?": ("holk_school", "holk_brown"),
    }
    model = Replies(
        rules=[
            # the answers are filled in
            (
                "\nAnswer: A loft for sails, with little money, in 1921.",
                "Maren Holk began with a loft for sails and little money, in 1921.",
            ),
            ("\nAnswer: Her former pupils bought it.", "In the end her former pupils bought the loft."),
            (
                "\nAnswer: In a mill of the south.",
                "She grew up in a mill of the south, and learned to weave [Search(Where did she learn to weave?)].",
            ),
            ("\nAnswer: At Aabo, for three years.", "at Aabo, for three years."),
            # the answer is written further
            (
                f"Query: {trade}\nExisting Answer: \n",
                "Maren Holk began with [Search(What did Maren Holk do in trade?)].",
            ),
            ("money, in 1921.\nAnswer: ", "In the end [Search(What became of her loft?)]."),
            ("pupils bought the loft.\nAnswer: ", "done"),
            (
                f"Query: {life}\nExisting Answer: \n",
                "She grew up [Search(Where did Maren Holk grow up?)], and learned to weave [Search(Where did she learn to weave?)].",
            ),
            ("and learned to weave\nAnswer: ", "[Search(Where did she learn to weave?)]."),
            ("at Aabo, for three years.\nAnswer: ", "done"),
            # the engine answers
            ("Query: What did Maren Holk do in trade?", "A loft for sails, with little money, in 1921."),
            ("Query: What became of her loft?", "Her former pupils bought it."),
            ("Query: Where did Maren Holk grow up?", "In a mill of the south."),
            ("Query: Where did she learn to weave?", "At Aabo, for three years."),
            (f"Query: {trade}", "She made sails at the quay; a brown kind sold well."),
            (f"Query: {life}", "She was a miller's child who mended sails, and had a loft later."),
        ]
    )
    read = documents("holk_child", "holk_school", "holk_loft", "holk_brown", "holk_heirs")
    index = VectorStoreIndex.from_documents(read, embed_model=Vectors(queries=queries))
    index_query_engine = index.as_query_engine(llm=model, similarity_top_k=2)
    flare_query_engine = FLAREInstructQueryEngine(query_engine=index_query_engine, llm=model, max_iterations=7)
    written = [str(flare_query_engine.query(question)) for question in (trade, life)]
    return [*written, *(str(index_query_engine.query(question)) for question in (trade, life))]


class RetrieverEvent(Event):
    nodes: list[NodeWithScore]


class CreateCitationsEvent(Event):
    nodes: list[NodeWithScore]


CITATION_EXAMPLE = (
    "Answer from the sources alone, and name the number of each source that you use. If no source helps, say that. For example:\n"
    "Source 1:\nThe tide comes in at noon.\nSource 2:\nCrabs walk when the tide comes in.\nQuery: When do crabs walk?\n"
    "Answer: When the tide comes in [2], at noon [1].\nNow it's your turn. "
)
CITATION_QA_TEMPLATE = PromptTemplate(
    f"{CITATION_EXAMPLE}Below are several numbered sources of information:\n------\n{{context_str}}\n------\n"
    "Query: {query_str}\nAnswer: "
)
CITATION_REFINE_TEMPLATE = PromptTemplate(
    f"{CITATION_EXAMPLE}There is an answer already: {{existing_answer}}\nRefine it by these sources, or repeat it:\n"
    "------\n{context_msg}\n------\nQuery: {query_str}\nAnswer: "
)
CITATION_CHUNK_SIZE, CITATION_CHUNK_OVERLAP = 36, 2  # small, as the texts are


class CitationQueryEngineWorkflow(Workflow):
    """Finds nodes, cuts them into numbered sources, and answers with the numbers."""

    llm: Any

    @step
    async def retrieve(self, ctx: Context, ev: StartEvent) -> RetrieverEvent | None:
        query = ev.get("query")
        if not query or ev.index is None:
            return None
        await ctx.store.set("query", query)
        retriever = ev.index.as_retriever(similarity_top_k=2)
        return RetrieverEvent(nodes=retriever.retrieve(query))

    @step
    async def create_citation_nodes(self, ctx: Context, ev: RetrieverEvent) -> CreateCitationsEvent:
        splitter = SentenceSplitter(chunk_size=CITATION_CHUNK_SIZE, chunk_overlap=CITATION_CHUNK_OVERLAP)
        new_nodes: list[NodeWithScore] = []
        for node in ev.nodes:
            for text_chunk in splitter.split_text(node.node.get_content(metadata_mode=MetadataMode.NONE)):
                copied = TextNode.model_validate(node.node.model_dump())  # with the id of the whole node
                copied.text = f"Source {len(new_nodes) + 1}:\n{text_chunk}\n"
                new_nodes.append(NodeWithScore(node=copied, score=node.score))
        return CreateCitationsEvent(nodes=new_nodes)

    @step
    async def synthesize(self, ctx: Context, ev: CreateCitationsEvent) -> StopEvent:
        synthesizer = get_response_synthesizer(
            llm=self.llm,
            text_qa_template=CITATION_QA_TEMPLATE,
            refine_template=CITATION_REFINE_TEMPLATE,
            response_mode=ResponseMode.COMPACT,
            use_async=True,
        )
        response = await synthesizer.asynthesize(await ctx.store.get("query"), nodes=ev.nodes)
        return StopEvent(result=response)


async def citation_workflow():
    """Two long passages are found, and stand in the prompt as four sources."""
    question = "How is fog signalled at Vester?"
    index = VectorStoreIndex.from_documents(
        documents("signal_flags", "signal_bell", "signal_horn"),
        embed_model=Vectors(queries={question: ("signal_horn", "signal_bell")}),
    )
    workflow = CitationQueryEngineWorkflow()
    workflow.llm = Replies(rules=[("Source 4:", "By a horn, each half minute [1]; once it was a bell [3].")])
    result = await workflow.run(query=question, index=index)
    assert [one.node.get_content().split("\n")[0] for one in result.source_nodes] == [
        f"Source {number}:" for number in (1, 2, 3, 4)
    ]
    return str(result)


class Biography(BaseModel):
    """A life."""

    name: str
    best_known_for: list[str]
    extra_info: str


class Company(BaseModel):
    """A company that is mentioned."""

    company_name: str
    context_info: str


def pydantic_query_engine():
    """Engines answer with objects: by a call, by JSON that the model writes, and with an object for each passage."""
    who, companies = "Who was Sten Balle?", "Which companies are mentioned in the text?"
    embedder = Vectors(queries=dict.fromkeys((who, companies), ("balle_pram", "balle_atlas")))
    called = {
        "name": "Sten Balle",
        "best_known_for": ["a boat of few planks", "charts"],
        "extra_info": "He worked at night.",
    }
    said = {
        "name": "Balle, Sten",
        "best_known_for": ["a small boat"],
        "extra_info": "An islander who also mapped the sea's floor.",
    }
    caller = Caller(
        replies=[
            {"name": "Biography", "arguments": called},
            call("Company", company_name="Holm & Lind", context_info="It made hundreds of boats."),
            call("Company", company_name="Sund Line", context_info="It published charts."),
        ]
    )
    writer = Replies(rules=[("", json.dumps(said))])

    def asked(question, llm, output_cls, response_mode):
        read = documents("balle_dog", "balle_atlas", "balle_pram")
        index = VectorStoreIndex.from_documents(read, embed_model=embedder)
        engine = index.as_query_engine(output_cls=output_cls, response_mode=response_mode, llm=llm)
        return engine.query(question)

    first = asked(who, caller, Biography, "compact")
    second = asked(who, writer, Biography, "tree_summarize")
    assert (type(first.response), type(second.response)) == (Biography, Biography)
    return [str(first), str(second), str(asked(companies, caller, Company, "accumulate"))]


INSTRUMENTED = {
    "flare-engine": flare_engine,
    "citation-workflow": citation_workflow,
    "pydantic-query-engine": pydantic_query_engine,
}
