"""Applications of LlamaIndex that were drawn: workflows, engines, synthesizers, agents, pictures.

LlamaIndex looks for `Context` in the signature of a tool, so that annotations are no strings here.
"""

import base64

from llama_index.core import Document, SQLDatabase, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.embeddings.multi_modal_base import MultiModalEmbedding
from llama_index.core.indices.multi_modal import MultiModalVectorStoreIndex
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.objects import ObjectIndex, SQLTableNodeMapping, SQLTableSchema
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import SQLRetriever
from llama_index.core.schema import ImageNode, TextNode
from llama_index.core.workflow import (
    Context,
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


class TablesFound(Event):
    tables: str
    query: str


class SqlWritten(Event):
    sql: str
    query: str


class TextToSql(Workflow):
    """Finds tables, writes SQL for them, and answers from the rows."""

    def __init__(self, tables, rows, database, llm):
        super().__init__()
        self.tables, self.rows, self.database, self.llm = tables, rows, database, llm

    @step
    def retrieve_tables(self, ctx: Context, ev: StartEvent) -> TablesFound:
        shown = [
            f"{self.database.get_single_table_info(one.table_name)} The table description is: {one.context_str}"
            for one in self.tables.retrieve(ev.query)
        ]
        return TablesFound(tables="\n\n".join(shown), query=ev.query)

    @step
    def generate_sql(self, ctx: Context, ev: TablesFound) -> SqlWritten:
        asked = f"Write an SQLite query, for these tables only:\n{ev.tables}\n\nQuestion: {ev.query}\nSQLQuery: "
        reply = self.llm.chat([ChatMessage(asked, role="user")]).message.content
        return SqlWritten(sql=reply.partition("SQLResult:")[0].removeprefix("SQLQuery:").strip(), query=ev.query)

    @step
    def generate_response(self, ctx: Context, ev: SqlWritten) -> StopEvent:
        rows = self.rows.retrieve(ev.sql)
        asked = f"Answer from the rows.\nQuery: {ev.query}\nSQL: {ev.sql}\nSQL Response: {rows}\nResponse: "
        return StopEvent(result=self.llm.chat([ChatMessage(asked, role="user")]))


async def advanced_text_to_sql():
    """A workflow from a question to tables, SQL, rows and an answer."""
    question = "Which fish gets the oldest?"
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE fish (name VARCHAR, oldest INTEGER)",
            "CREATE TABLE lakes (name VARCHAR, depth INTEGER)",
            "INSERT INTO fish VALUES ('pike', 33), ('perch', 22)",
        ):
            connection.execute(text(statement))
    database = SQLDatabase(engine)
    schemas = [
        SQLTableSchema(table_name="fish", context_str="fish of the lake and the greatest age of each"),
        SQLTableSchema(table_name="lakes", context_str="lakes of the county and their depths"),
    ]
    objects = ObjectIndex.from_objects(
        schemas,
        SQLTableNodeMapping(database),
        VectorStoreIndex,
        embed_model=Vectors(queries={question: ("table_fish", "table_lakes")}),
    )
    model = Caller(
        replies=[
            "SQLQuery: SELECT name, oldest FROM fish ORDER BY oldest DESC LIMIT 1\nSQLResult: ",
            "The pike, with 33 years.",
        ]
    )
    asked = TextToSql(objects.as_retriever(similarity_top_k=2), SQLRetriever(database), database, model)
    return (await asked.run(query=question)).message.content


def structured_refine():
    """Texts are refined one by one; replies that do not answer are dropped."""
    model = Caller(
        replies=[
            call("StructuredRefineResponse", answer="It is not said.", query_satisfied=False),
            call("StructuredRefineResponse", answer="Ida Moen", query_satisfied=True),
            call("StructuredRefineResponse", answer="Ida Moen", query_satisfied=False),
        ]
    )
    refine = get_response_synthesizer(response_mode="refine", llm=model, structured_answer_filtering=True)
    return refine.get_response(
        "Who is warden in the year 2050?", [TEXTS[f"warden_{year}"] for year in (2040, 2050, 2060)]
    )


def metadata_replacement():
    """Single sentences are found, and shown with their neighbours."""
    question = "What keeps the ice thin?"
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1,
        window_metadata_key="window",
        original_text_metadata_key="original_text",
        sentence_splitter=lambda page: page.splitlines(),
    )
    page = Document(text="\n".join(TEXTS[f"sentence_{place}"] for place in range(1, 6)))
    index = VectorStoreIndex(
        parser.get_nodes_from_documents([page]),
        embed_model=Vectors(queries={question: ("sentence_3", "sentence_2")}),
    )
    engine = index.as_query_engine(
        llm=Replies(rules=[("", "Warm springs along the east shore.")]),
        similarity_top_k=2,
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    return str(engine.query(question))


class Prepared(Event):
    pass


class Retrieved(Event):
    nodes: list


class Graded(Event):
    grades: list


class Extracted(Event):
    relevant: str


class Searched(Event):
    relevant: str
    found: str


class CorrectiveRag(Workflow):
    """Grades what it finds, searches the web where that is poor, and asks an engine over the rest."""

    def __init__(self, llm, embedder, search):
        super().__init__()
        self.llm, self.embedder, self.search = llm, embedder, search

    @step
    async def ingest(self, ctx: Context, ev: StartEvent) -> StopEvent | None:
        pages = ev.get("documents")
        if pages is None:
            return None
        return StopEvent(result=VectorStoreIndex.from_documents(pages, embed_model=self.embedder))

    @step
    async def prepare(self, ctx: Context, ev: StartEvent) -> Prepared | None:
        if ev.get("query_str") is None:
            return None
        await ctx.store.set("query_str", ev.get("query_str"))
        await ctx.store.set("index", ev.get("index"))
        return Prepared()

    @step
    async def retrieve(self, ctx: Context, ev: Prepared) -> Retrieved:
        index = await ctx.store.get("index")
        nodes = index.as_retriever(similarity_top_k=2).retrieve(await ctx.store.get("query_str"))
        await ctx.store.set("nodes", nodes)
        return Retrieved(nodes=nodes)

    @step
    async def grade(self, ctx: Context, ev: Retrieved) -> Graded:
        question = await ctx.store.get("query_str")
        asked = [f"Relevant, yes or no?\nDocument:\n{one.text}\nQuestion: {question}" for one in ev.nodes]
        grades = [self.llm.complete(one).text.lower().strip() for one in asked]
        await ctx.store.set("grades", grades)
        return Graded(grades=grades)

    @step
    async def extract(self, ctx: Context, ev: Graded) -> Extracted:
        nodes = await ctx.store.get("nodes")
        kept = [one.text for one, grade in zip(nodes, ev.grades, strict=True) if grade == "yes"]
        return Extracted(relevant="\n".join(kept))

    @step
    async def search_web(self, ctx: Context, ev: Extracted) -> Searched:
        if "no" not in await ctx.store.get("grades"):
            return Searched(relevant=ev.relevant, found="")
        question = await ctx.store.get("query_str")
        rewritten = self.llm.complete(f"Rewrite for a search: {question}").text
        return Searched(relevant=ev.relevant, found="\n".join(one.text for one in self.search(rewritten)))

    @step
    async def answer(self, ctx: Context, ev: Searched) -> StopEvent:
        index = SummaryIndex.from_documents([Document(text=ev.relevant + "\n" + ev.found)])
        return StopEvent(result=index.as_query_engine(llm=self.llm).query(await ctx.store.get("query_str")))


async def corrective_rag_workflow():
    """Both passages are poor, so that only the web is left."""
    question = "What did the council decide on night skating?"
    model = Replies(
        rules=[
            ("Relevant, yes or no?", "No"),
            ("Rewrite for a search", "council night skating"),
            ("", "Skating is allowed until 22 h."),
        ]
    )
    first, second = TEXTS["web_council"].split("\n")
    pages = {"council night skating": [Document(text=first), Document(text=second)]}
    workflow = CorrectiveRag(model, Vectors(queries={question: ("perch", "pike")}), pages.__getitem__)
    guide = [Document(text=TEXTS[name]) for name in ("pike", "perch", "ice")]
    index = await workflow.run(documents=guide)
    return str(await workflow.run(query_str=question, index=index))


async def dangerous_task(ctx: Context) -> str:
    """Open the lock, which a person has to confirm."""
    ctx.write_event_to_stream(InputRequiredEvent.model_validate({"prefix": "Shall I? ", "user_name": "Laurie"}))
    said = await ctx.wait_for_event(HumanResponseEvent, requirements={"user_name": "Laurie"})
    return "Dangerous task completed successfully." if said.response == "yes" else "Dangerous task aborted."


async def python_agents_hitl():
    """An agent whose tool asks a person, who answers while the run waits."""
    model = Caller(replies=[call("dangerous_task"), "The boat can pass now."])
    workflow = AgentWorkflow.from_tools_or_functions([dangerous_task], llm=model, system_prompt="You serve a lock.")
    handler = workflow.run(user_msg="I want to open the lock.")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes", user_name=event.user_name))
    return str(await handler)


async def search_web(query: str) -> str:
    """Search the web."""
    return TEXTS["web_results"]


async def record_notes(ctx: Context, notes: str, notes_title: str) -> str:
    """Record notes on a topic."""
    async with ctx.store.edit_state() as state:
        state["state"].setdefault("research_notes", {})[notes_title] = notes
    return "Notes recorded."


async def write_report(ctx: Context, report_content: str) -> str:
    """Write a report."""
    async with ctx.store.edit_state() as state:
        state["state"]["report_content"] = report_content
    return "Report written."


async def review_report(ctx: Context, review: str) -> str:
    """Review a report."""
    async with ctx.store.edit_state() as state:
        state["state"]["review"] = review
    return "Report reviewed."


async def agent_workflow_multi():
    """A researcher, a writer and a reviewer hand over to each other."""
    report = "# The ferry\n\nA ferry ran from 1891 to 1962; its boiler is kept."
    model = Caller(
        replies=[
            call("search_web", query="history of the ferry"),
            call("record_notes", notes="1891 to 1962, boiler kept", notes_title="Ferry"),
            call("handoff", to_agent="WriteAgent", reason="The notes are complete."),
            call("write_report", report_content=report),
            call("handoff", to_agent="ReviewAgent", reason="The report is written."),
            call("review_report", review="Approved."),
            "The report is done: the ferry ran from 1891 to 1962.",
        ]
    )
    agents = [
        FunctionAgent(
            name="ResearchAgent",
            description="Searches the web and records notes.",
            system_prompt="Search, note, and hand over to WriteAgent.",
            llm=model,
            tools=[search_web, record_notes],
            can_handoff_to=["WriteAgent"],
        ),
        FunctionAgent(
            name="WriteAgent",
            description="Writes the report.",
            system_prompt="Write from the notes, and hand over to ReviewAgent.",
            llm=model,
            tools=[write_report],
            can_handoff_to=["ReviewAgent", "ResearchAgent"],
        ),
        FunctionAgent(
            name="ReviewAgent",
            description="Reviews the report.",
            system_prompt="Approve, or hand back to WriteAgent.",
            llm=model,
            tools=[review_report],
            can_handoff_to=["WriteAgent"],
        ),
    ]
    workflow = AgentWorkflow(
        agents=agents,
        root_agent="ResearchAgent",
        initial_state={"research_notes": {}, "report_content": "Not written yet.", "review": "Review required."},
    )
    handler = workflow.run(user_msg="Write me a report on the history of the ferry.")
    async for _ in handler.stream_events():
        pass
    return str(await handler)


class PictureVectors(MultiModalEmbedding):
    """Has one direction for all texts and pictures."""

    def _get_text_embedding(self, text):
        return [1.0, 0.0]

    def _get_query_embedding(self, query):
        return [1.0, 0.0]

    async def _aget_query_embedding(self, query):
        return [1.0, 0.0]

    def _get_image_embedding(self, img_file_path):
        return [1.0, 0.0]

    async def _aget_image_embedding(self, img_file_path):
        return [1.0, 0.0]


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def gpt4v_multi_modal_retrieval():
    """A model says what a picture shows; with that an index of texts and pictures is searched."""
    seen = "An old pike, as long as a man's arm."
    picture = ImageBlock(image=base64.b64decode(PICTURE), image_mimetype="image/png")
    asked = ChatMessage(role="user", blocks=[TextBlock(text="What is in this picture?"), picture])
    said = Caller(replies=[seen]).chat([asked]).message.content
    index = MultiModalVectorStoreIndex(
        [
            TextNode(id_="pike", text=TEXTS["pike"]),
            TextNode(id_="perch", text=TEXTS["perch"]),
            ImageNode(id_="photograph", image=PICTURE, metadata={"file_name": "pike.png"}),
        ],
        embed_model=Vectors(queries={seen: ("pike", "perch")}),
        image_embed_model=PictureVectors(),
    )
    found = index.as_retriever(similarity_top_k=1, image_similarity_top_k=1).retrieve(said)
    return [one.node.node_id for one in found]


INSTRUMENTED = {
    "advanced-text-to-sql": advanced_text_to_sql,
    "structured-refine": structured_refine,
    "metadata-replacement": metadata_replacement,
    "corrective-rag-workflow": corrective_rag_workflow,
    "python-agents-hitl": python_agents_hitl,
    "agent-workflow-multi": agent_workflow_multi,
    "gpt4v-multi-modal-retrieval": gpt4v_multi_modal_retrieval,
}
