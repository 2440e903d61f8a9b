"""Applications of LlamaIndex of the third draw: an engine over rows and passages, and agents as tools.

LlamaIndex looks for `Context` in the signature of a tool, so that annotations are no strings here.
"""

import json
import re

from llama_index.core import SQLDatabase, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.query_engine import NLSQLTableQueryEngine, RetrieverQueryEngine, SQLAutoVectorQueryEngine
from llama_index.core.retrievers import VectorIndexAutoRetriever
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataInfo, VectorStoreInfo
from llama_index.core.workflow import Context
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.pool import StaticPool

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


def sql_auto_vector():
    """Rows name the town that the passages are then searched for; one prompt joins both answers."""
    question = "Which arts are found in the town with the most people?"
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    metadata = MetaData()
    towns = Table(
        "town_stats",
        metadata,
        Column("town_name", String(16), primary_key=True),
        Column("population", Integer),
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        for name, population in (("Storby", 41000), ("Lillby", 900)):
            connection.execute(insert(towns).values(town_name=name, population=population))

    choice = {"choice": 1, "reason": "The question needs the number of people."}
    query = {"query": "arts", "filters": [{"key": "title", "value": "Storby", "operator": "=="}], "top_k": None}
    model = Replies(
        rules=[
            ("Some choices are given below", f"```json\n{json.dumps([choice])}\n```"),
            (
                "syntactically correct",
                "SELECT town_name, population FROM town_stats ORDER BY population DESC LIMIT 1\nSQLResult: ",
            ),
            ("from the query results", "The town with the most people is Storby; 41 thousand live there."),
            ("come up with a more specific question", "Which arts are found in Storby?"),
            ("structure the user's query", f"```json\n{json.dumps(query)}\n```"),
            ("Context information is below", "Glass is made there, and puppets have a stage in summer."),
            ("vector store response", "Storby, the largest town, is known for glass and for puppets."),
        ]
    )
    embedder = Vectors(queries={"arts": ("storby_arts", "storby_quay", "lillby_arts")})
    database = SQLDatabase(engine, include_tables=["town_stats"])
    sql_engine = NLSQLTableQueryEngine(database, tables=["town_stats"], llm=model, embed_model=embedder)
    nodes = [
        TextNode(
            id_=name,
            text=TEXTS[name],
            metadata={"title": name.partition("_")[0].title()},
            excluded_embed_metadata_keys=["title"],
        )
        for name in ("lillby_arts", "storby_quay", "storby_arts")
    ]
    index = VectorStoreIndex(nodes, embed_model=embedder)
    info = VectorStoreInfo(
        content_info="articles about towns",
        metadata_info=[MetadataInfo(name="title", type="str", description="The name of the town")],
    )
    vector_engine = RetrieverQueryEngine.from_args(
        VectorIndexAutoRetriever(index, vector_store_info=info, llm=model), llm=model
    )
    both = SQLAutoVectorQueryEngine(
        QueryEngineTool.from_defaults(
            sql_engine, name="sql", description="Turns a question into SQL on town_stats."
        ),
        QueryEngineTool.from_defaults(vector_engine, name="vector", description="Answers questions about towns."),
        llm=model,
        verbose=False,
    )
    return str(both.query(question))


async def search_web(query: str) -> str:
    """Search the web."""
    return TEXTS["web_history"]


async def agents_as_tools():
    """An agent has a report researched, written and reviewed by agents, each of which is a tool."""
    notes = "- lit in the autumn of 1857\n- electric since 1949, no keeper any more"
    report = "# The lighthouse\n\nIt has burnt since 1857, and needs no keeper since it became electric."
    research_agent = FunctionAgent(
        system_prompt="You search the web, and write notes on a topic.",
        llm=Caller(replies=[call("search_web", query="history of the lighthouse"), notes]),
        tools=[search_web],
    )
    write_agent = FunctionAgent(
        system_prompt="You write a report from notes, inside <report> tags.",
        llm=Caller(replies=[f"<report>{report}</report>"]),
        tools=[],
    )
    review_agent = FunctionAgent(
        system_prompt="You approve a report, or ask for changes.",
        llm=Caller(replies=["Approved as it is."]),
        tools=[],
    )

    async def call_research_agent(ctx: Context, prompt: str) -> str:
        """Record research notes on a prompt."""
        result = await research_agent.run(user_msg=f"Write some notes about the following: {prompt}")
        async with ctx.store.edit_state() as state:
            state["state"]["research_notes"].append(str(result))
        return str(result)

    async def call_write_agent(ctx: Context) -> str:
        """Write a report from the notes, or revise it."""
        state = await ctx.store.get("state")
        asked = "Write a markdown report from the following notes, inside <report> tags:\n\n"
        if state["review"]:
            asked += f"<feedback>{state['review']}</feedback>\n\n"
        asked += "<research_notes>" + "\n\n".join(state["research_notes"]) + "</research_notes>\n\n"
        said = str(await write_agent.run(user_msg=asked))
        written = re.search(r"<report>(.*)</report>", said, re.DOTALL)[1]
        async with ctx.store.edit_state() as kept:
            kept["state"]["report_content"] = written
        return written

    async def call_review_agent(ctx: Context) -> str:
        """Review the report."""
        state = await ctx.store.get("state")
        result = await review_agent.run(user_msg=f"Review the following report: {state['report_content']}")
        async with ctx.store.edit_state() as kept:
            kept["state"]["review"] = str(result)
        return str(result)

    orchestrator = FunctionAgent(
        system_prompt="You have a report researched, written and reviewed. Tell the user when it is ready.",
        llm=Caller(
            replies=[
                call("call_research_agent", prompt="the lighthouse of Näs"),
                call("call_write_agent"),
                call("call_review_agent"),
                "The report is ready. In short: a light since 1857, without a keeper for long.",
            ]
        ),
        tools=[call_research_agent, call_write_agent, call_review_agent],
        initial_state={"research_notes": [], "report_content": None, "review": None},
    )
    ctx = Context(orchestrator)
    handler = orchestrator.run(user_msg="Write me a report on the lighthouse of Näs.", ctx=ctx)
    async for _ in handler.stream_events():
        pass
    answer = str(await handler)
    kept = await ctx.store.get("state")
    assert (kept["research_notes"], kept["report_content"], kept["review"]) == (
        [notes],
        report,
        "Approved as it is.",
    )
    return answer


INSTRUMENTED = {"sql-auto-vector": sql_auto_vector, "agents-as-tools": agents_as_tools}
