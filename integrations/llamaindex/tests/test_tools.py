"""Tools that return texts, mappings or nodes of their own, and passages that the application names itself."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.objects import (
    ObjectRetriever,
    SimpleObjectNodeMapping,
    SQLTableNodeMapping,
    SQLTableSchema,
)
from llama_index.core.objects.utils import get_object_mapping
from llama_index.core.query_engine import CustomQueryEngine, ToolRetrieverRouterQueryEngine, router_query_engine
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool, ToolMetadata
from llama_index.core.tools.function_tool import sync_to_async
from llama_index.core.workflow import StartEvent, StopEvent, Workflow
from llama_index.core.workflow import step as step_of

from integrations.llamaindex.tests.parts import Best, Faq, Given, Llm, ToolCaller, engine, nodes, until
from ragtrace.capture import ToolCall
from ragtrace.model import content_id
from ragtrace_llamaindex import mark_retrieved, mark_selected
from tests.kept import ANSWER, ids, kinds, scores, step

# A search in such a thread cannot be told to be the tool's.
keeps_context = pytest.mark.skipif(
    "copy_context" not in inspect.getsource(sync_to_async),
    reason="this llama-index-core runs synchronous tools in a thread without their context",
)
keeps_router_context = pytest.mark.skipif(
    hasattr(router_query_engine, "run_async_tasks"),
    reason="this llama-index-core runs a router's choices in a thread without their context",
)

FIRST = 'The lab moved to Oslo in 2019.\nIts rooms are called "Nansen" and "Amundsen".'
SECOND = "Bergen keeps the archive, whose opening hours are given on the door in Tromsø."


def tool(returns, name="search_docs"):
    def call(query: str):
        if isinstance(returns, Exception):
            raise returns
        return returns() if callable(returns) else returns

    return FunctionTool.from_defaults(call, name=name, description="Searches the documents.")


def call_of(name="search_docs"):
    return {"name": name, "args": {"query": "lab city"}}


async def asked(agent, keeper):
    answer = str(await agent.run(user_msg="Where?"))
    await until(lambda: keeper.runs)
    return answer, keeper.only


async def run_of(keeper, *tools, calls=("search_docs",)):
    model = ToolCaller(replies=[*map(call_of, calls), ANSWER])
    answer, run = await asked(FunctionAgent(tools=list(tools), llm=model, streaming=False), keeper)
    assert answer == ANSWER
    assert (run.record.query, run.record.answer) == ("Where?", ANSWER)
    return run


def texts(run, stage):
    return [passage.text for passage in run.record.pool(stage)]


def unranked(run):
    return [passage.text for passage in run.record.unranked_contexts]


class TestTexts:
    async def test_a_text_is_a_context_without_rank(self, keeper):
        run = await run_of(keeper, tool(FIRST))
        (passage,) = run.record.unranked_contexts
        assert (passage.id, passage.text, passage.source) == (content_id(FIRST), FIRST, "search_docs")
        assert passage.metadata == {"kind": "tool_output"}
        assert (run.record.pools, run.prompt_ids, run.record.lossy) == ((), (content_id(FIRST),), {})
        assert kinds(run) == ["chat", "tool", "chat", "agent"]

    async def test_two_texts_are_two_contexts(self, keeper):
        run = await run_of(keeper, tool(FIRST, "first"), tool(SECOND, "second"), calls=("first", "second"))
        given = [(one.text, one.source) for one in run.record.unranked_contexts]
        assert given == [(FIRST, "first"), (SECOND, "second")]

    async def test_a_list_of_texts(self, keeper):
        run = await run_of(keeper, tool([FIRST, SECOND]))
        assert (unranked(run), run.prompt_ids) == ([FIRST, SECOND], (content_id(FIRST), content_id(SECOND)))

    async def test_react(self, keeper):
        thoughts = [
            'Thought: I need a tool.\nAction: search_docs\nAction Input: {"query": "lab?"}\n',
            "Thought: I can answer.\nAnswer: It is Oslo.",
        ]
        agent = ReActAgent(tools=[tool(FIRST)], llm=ToolCaller(replies=thoughts), streaming=False)
        answer, run = await asked(agent, keeper)
        assert (answer, run.record.answer, unranked(run)) == ("It is Oslo.", "It is Oslo.", [FIRST])

    async def test_a_failed_tool_gives_no_passage(self, keeper):
        run = await run_of(keeper, tool(ValueError("no such index")))
        assert (run.record.pools, step(run, ToolCall).failure.kind) == ((), "ValueError")

    async def test_a_hand_off_is_no_passage(self, keeper):
        handoff = {"name": "handoff", "args": {"to_agent": "writer", "reason": "it writes"}}
        first = FunctionAgent(
            name="finder",
            description="Finds.",
            tools=[tool(FIRST)],
            llm=ToolCaller(replies=[call_of(), handoff]),
            streaming=False,
        )
        last = FunctionAgent(
            name="writer", description="Writes.", tools=[], llm=ToolCaller(replies=[ANSWER]), streaming=False
        )
        answer, run = await asked(AgentWorkflow(agents=[first, last], root_agent="finder"), keeper)
        assert (answer, unranked(run)) == (ANSWER, [FIRST])
        assert kinds(run) == ["chat", "tool", "chat", "tool", "agent", "chat", "agent"]

    async def test_the_text_that_the_model_is_shown_counts(self, keeper):
        shortened = FunctionTool(
            lambda query: FIRST,
            metadata=ToolMetadata(name="search_docs", description="d"),
            async_callback=_shortened,
        )
        run = await run_of(keeper, shortened)
        assert (unranked(run), run.record.lossy) == (["Oslo, since the year 2019."], {})


class Backwards(Workflow):
    """Shows the model the output of its tool word by word, the last one first."""

    @step_of
    async def go(self, ev: StartEvent) -> StopEvent:
        found = await tool(FIRST).acall(query="lab city")
        return StopEvent(result=(await Llm().acomplete(" ".join(found.content.split()[::-1]) + ev.query)).text)


async def test_an_output_that_no_prompt_shows_is_noted(keeper):
    assert await Backwards().run(query="Where?") == ANSWER
    await until(lambda: keeper.runs)
    assert keeper.only.record.pools == ()
    assert [(sign.name, sign.about) for sign in keeper.only.record.signs] == [
        ("evidence_unread", "tool search_docs")
    ]


async def _shortened(_output):
    return "Oslo, since the year 2019."


RESULTS = [
    {"id": "k1", "text": FIRST, "score": 0.9, "page": 3},
    {"id": "k2", "text": SECOND, "score": 0.4, "page": 8},
]


@pytest.mark.parametrize(
    "returns",
    [
        RESULTS,
        json.dumps(RESULTS),
        json.dumps(RESULTS, ensure_ascii=False, indent=2),
        [Document(id_="k1", text=FIRST), Document(id_="k2", text=SECOND)],
    ],
)
async def test_results_keep_their_ids(keeper, returns):
    run = await run_of(keeper, tool(returns))
    assert (ids(run, "retrieved"), texts(run, "retrieved")) == (["k1", "k2"], [FIRST, SECOND])
    assert run.prompt_ids == ("k1", "k2")
    if not isinstance(returns[0], Document):
        assert scores(run, "retrieved") == [0.9, 0.4]
    assert kinds(run) == ["chat", "tool", "retrieval", "chat", "agent"]


async def test_nodes_with_scores(keeper):
    run = await run_of(keeper, tool(lambda: nodes(2)))
    assert (ids(run, "retrieved"), scores(run, "retrieved")) == (["d0", "d1"], [1.0, 0.99])


@pytest.mark.parametrize(
    "search",
    [
        pytest.param(lambda: tool(lambda: str(engine(Faq(size=2), []).query("lab city"))), marks=keeps_context),
        pytest.param(
            lambda: tool(lambda: "\n".join(one.text for one in Faq(size=2).retrieve("lab city"))),
            marks=keeps_context,
        ),
        lambda: RetrieverTool.from_defaults(Faq(size=2), name="search_docs", description="d"),
        lambda: QueryEngineTool.from_defaults(engine(Faq(size=2), []), name="search_docs", description="d"),
    ],
)
async def test_what_a_tool_searched_counts_in_place_of_its_text(keeper, search):
    run = await run_of(keeper, search())
    assert (ids(run, "retrieved"), run.prompt_ids) == (["d0", "d1"], ("d0", "d1"))


async def test_a_text_beside_a_search_is_no_part_of_the_pool(keeper):
    both = (RetrieverTool.from_defaults(Faq(size=2), name="faq", description="d"), tool(FIRST, "clock"))
    run = await run_of(keeper, *both, calls=("faq", "clock"))
    assert (ids(run, "retrieved"), ids(run, "used"), unranked(run)) == (["d0", "d1"], ["d0", "d1"], [FIRST])


async def test_a_call_has_the_id_that_the_model_gave_it(keeper):
    def lookup(query: str) -> str:
        return tool(SECOND, "inner").call(query=query).content

    class Named(ToolCaller):
        """Gives each call an id of its own."""

        def get_tool_calls_from_response(self, response, **kwargs):
            calls = super().get_tool_calls_from_response(response, **kwargs)
            return [one.model_copy(update={"tool_id": f"call-{one.tool_name}"}) for one in calls]

    tools = [tool(FIRST), FunctionTool.from_defaults(lookup)]
    replies = [[call_of(), call_of("lookup")], ANSWER]
    _, run = await asked(FunctionAgent(tools=tools, llm=Named(replies=replies), streaming=False), keeper)
    called = {one.name: one.call_id for one in run.steps if isinstance(one, ToolCall)}
    assert (called.pop("inner", None), called) == (
        None, {"search_docs": "call-search_docs", "lookup": "call-lookup"},
    )  # fmt: skip
    told = {one.call_id for one in run.steps[-2].inputs if one.role == "tool"}
    assert told == set(called.values())


async def test_a_tool_is_a_step_with_its_arguments(keeper):
    call = step(await run_of(keeper, tool(FIRST)), ToolCall)
    assert (call.name, call.arguments, call.result) == ("search_docs", '{"query": "lab city"}', FIRST)
    assert call.description == "Searches the documents."
    assert call.ended_ns >= call.started_ns


class Marking(CustomQueryEngine):
    """Searches two places of its own, and chooses in two places."""

    def custom_query(self, query_str):
        faq = mark_retrieved(
            [{"id": "k1", "text": FIRST, "score": 0.9}, {"id": "k2", "text": SECOND}], source="faq"
        )
        web = mark_retrieved(["Rome has no lab.", "Paris has none either."], source="web")
        mark_selected(faq[1:])
        mark_selected(web[:1])
        return Llm().complete(f"{SECOND}\nRome has no lab.\n{query_str}").text


def test_marks_add_up_by_stage(keeper):
    Marking().query("Where?")
    run = keeper.only
    assert texts(run, "retrieved") == [FIRST, SECOND, "Rome has no lab.", "Paris has none either."]
    assert [passage.source for passage in run.record.pool("retrieved")] == ["faq", "faq", "web", "web"]
    assert texts(run, "reranked") == [SECOND, "Rome has no lab."]
    assert (run.record.selection_source, run.record.answer) == ("explicit", ANSWER)
    assert run.prompt_ids == ("k2", content_id("Rome has no lab."))


@keeps_context
async def test_a_mark_inside_a_tool(keeper):
    def search(query: str):
        return "\n".join(one["text"] for one in mark_retrieved(RESULTS, source="faq"))

    made = FunctionTool.from_defaults(search, name="search_docs", description="d")
    run = await run_of(keeper, made)
    assert (ids(run, "retrieved"), run.prompt_ids) == (["k1", "k2"], ("k1", "k2"))


def test_marks_outside_a_run_do_nothing(keeper):
    assert mark_retrieved(RESULTS) is RESULTS
    assert keeper.begun == 0


def searcher(objects, mapping=None, *, postprocessors=()):
    """Return the retriever of an index of objects; all of them are found."""
    mapping = mapping or get_object_mapping(objects)
    found = [NodeWithScore(node=one, score=0.5) for one in mapping.to_nodes(objects)]
    return ObjectRetriever(Given(found), mapping, node_postprocessors=list(postprocessors))


class TestSearchesOfTools:
    """Tools that are chosen by a search are no passages."""

    @pytest.mark.parametrize("postprocessors", [(), (Best(),)])
    async def test_an_agent(self, keeper, postprocessors):
        faq = RetrieverTool.from_defaults(Faq(size=2), name="faq", description='Knows "labs"\nin Tromsø.')
        model = ToolCaller(replies=[call_of("faq"), ANSWER])
        agent = FunctionAgent(tool_retriever=searcher([faq], postprocessors=postprocessors), llm=model)
        _, run = await asked(agent, keeper)
        assert (ids(run, "retrieved"), ids(run, "reranked"), run.prompt_ids) == (["d0", "d1"], [], ("d0", "d1"))

    @pytest.mark.parametrize("is_async", [False, pytest.param(True, marks=keeps_router_context)])
    def test_a_router(self, keeper, is_async):
        tools = [QueryEngineTool.from_defaults(engine(Faq(size=2), []), name="faq", description="Labs.")]
        router = ToolRetrieverRouterQueryEngine(searcher(tools), llm=Llm(), summarizer=TreeSummarize(llm=Llm()))
        answer = asyncio.run(router.aquery("Where?")) if is_async else router.query("Where?")
        assert str(answer) == ANSWER
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["d0", "d1"], ("d0", "d1"))

    def test_tables(self, keeper):
        tables = searcher([SQLTableSchema(table_name="prices")], TableNodes())
        assert [one.table_name for one in tables.retrieve("Where?")] == ["prices"]
        assert keeper.begun == 0

    def test_objects_of_another_kind_are_passages(self, keeper):
        assert searcher([FIRST, SECOND], SimpleObjectNodeMapping.from_objects([FIRST, SECOND])).retrieve("Where?")
        assert texts(keeper.only, "retrieved") == [FIRST, SECOND]


class TableNodes(SQLTableNodeMapping):
    """The mapping of tables, without the database that describes them."""

    def __init__(self):
        pass

    def to_node(self, obj):
        return TextNode(text=f"Schema of {obj.table_name}", metadata={"name": obj.table_name, "context": None})
