"""Agents as spans `invoke_agent {name}` around their model calls, tool calls and searches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from integrations.llamaindex.tests.parts import (
    TOOLS_KNOW_THEIR_RUN,
    TOOLS_WAIT,
    Broken,
    Faq,
    Llm,
    ToolCaller,
    engine,
    until,
)
from integrations.llamaindex.tests.test_resumed import CONFIRM, confirm, resumed
from ragtrace.capture.types import Agent
from tests.kept import ANSWER, ROOT, edges

ASKED = "Where is the lab?"


def call(name, **arguments):
    return {"name": name, "args": arguments}


SEARCH = call("search", input="lab city")


def search(retriever=None):
    return RetrieverTool.from_defaults(retriever or Faq(size=2), name="search", description="Searches.")


def searching(name="clerk", replies=(SEARCH, ANSWER), **options):
    tools = options.pop("tools", None) or [search()]
    return FunctionAgent(name=name, description="d", tools=tools, llm=ToolCaller(replies=[*replies]), **options)


async def asked(kept, workflow, **given):
    result = str(await workflow.run(**(given or {"user_msg": ASKED})))
    await until(lambda: kept.runs)
    return result


ALONE = [
    (ROOT, None),
    ("invoke_agent clerk", ROOT),
    ("chat caller-1", "invoke_agent clerk"),
    ("execute_tool search", "invoke_agent clerk"),
    ("retrieval Faq", "invoke_agent clerk"),
    ("chat caller-1", "invoke_agent clerk"),
]


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_is_one_step_below_its_run(kept, streaming):
    assert await asked(kept, searching(streaming=streaming)) == ANSWER
    assert edges(kept) == ALONE
    (span,) = kept.spans_of("invoke_agent")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "openinference.span.kind": "AGENT",
        "agent.name": "clerk",
    }
    inner = [one for one in kept.spans if one.parent and one.parent.span_id == span.context.span_id]
    assert all(span.start_time <= one.start_time <= one.end_time <= span.end_time for one in inner)
    record = kept.only.record
    assert (record.query, record.answer) == (ASKED, ANSWER)
    assert [passage.id for passage in record.pool("retrieved")] == ["d0", "d1"]


async def test_a_react_agent(kept):
    replies = [
        'Thought: I need a tool.\nAction: search\nAction Input: {"input": "lab city"}\n',
        f"Thought: I can answer.\nAnswer: {ANSWER}",
    ]
    agent = ReActAgent(name="clerk", tools=[search()], llm=ToolCaller(replies=replies))
    assert await asked(kept, agent) == ANSWER
    assert edges(kept) == ALONE


async def test_a_code_agent(kept):
    async def execute(code: str) -> str:
        return "42"

    model = ToolCaller(replies=["<execute>\n6*7\n</execute>", ANSWER])
    await asked(kept, CodeActAgent(name="coder", code_execute_fn=execute, tools=[], llm=model))
    assert [one for one in edges(kept) if one[0].startswith("chat")] == [
        ("chat caller-1", "invoke_agent coder")
    ] * 2


def team(*, replies=(SEARCH,), last=(ANSWER,), **options):
    handoff = call("handoff", to_agent="writer", reason="it writes")
    first = searching("finder", [*replies, handoff], streaming=False, can_handoff_to=["writer"])
    writer = FunctionAgent(
        name="writer", description="Writes.", tools=options.pop("tools", []), llm=ToolCaller(replies=[*last])
    )
    return AgentWorkflow(agents=[first, writer], root_agent="finder", **options)


async def test_agents_that_hand_over(kept):
    assert await asked(kept, team()) == ANSWER
    assert edges(kept) == [
        (ROOT, None),
        ("invoke_agent finder", ROOT),
        ("chat caller-1", "invoke_agent finder"),
        ("execute_tool search", "invoke_agent finder"),
        ("retrieval Faq", "invoke_agent finder"),
        ("chat caller-1", "invoke_agent finder"),
        ("execute_tool handoff", "invoke_agent finder"),
        ("invoke_agent writer", ROOT),
        ("chat caller-1", "invoke_agent writer"),
    ]
    finder, writer = sorted(kept.spans_of("invoke_agent"), key=lambda span: span.start_time)
    assert finder.end_time <= writer.start_time
    assert (kept.only.record.answer, len(kept.only.record.pool("retrieved"))) == (ANSWER, 2)


def asking(agent, name="ask"):
    """A tool that asks an agent."""

    async def ask(question: str) -> str:
        return str(await agent.run(user_msg=question))

    return FunctionTool.from_defaults(async_fn=ask, name=name, description="Asks a colleague.")


@TOOLS_KNOW_THEIR_RUN
async def test_an_agent_in_a_tool_of_another(kept):
    desk = searching("desk", [call("ask", question="Where?"), ANSWER], tools=[asking(searching())], streaming=False)
    assert await asked(kept, desk) == ANSWER
    told = edges(kept)
    assert [one for one in told if one[0].startswith("invoke_agent")] == [
        ("invoke_agent desk", ROOT),
        ("invoke_agent clerk", "invoke_agent desk"),
    ]
    assert ("execute_tool ask", "invoke_agent desk") in told
    assert ("retrieval Faq", "invoke_agent clerk") in told
    assert len([one for one in told if one == ("chat caller-1", "invoke_agent clerk")]) == 2
    assert len([one for one in told if one == ("chat caller-1", "invoke_agent desk")]) == 2
    assert kept.only.record.answer == ANSWER


@TOOLS_KNOW_THEIR_RUN
async def test_two_agents_side_by_side_in_tools(kept):
    both = [call("ask_a", question="Where?"), call("ask_b", question="When?")]
    tools = [asking(searching("a"), "ask_a"), asking(searching("b"), "ask_b")]
    desk = searching("desk", [both, ANSWER], tools=tools, streaming=False)
    assert await asked(kept, desk) == ANSWER
    told = edges(kept)
    for name in ("a", "b"):
        assert told.count((f"invoke_agent {name}", "invoke_agent desk")) == 1
        assert told.count(("chat caller-1", f"invoke_agent {name}")) == 2


class Asking(Workflow):
    """A step of the application's own that asks an agent."""

    agent: Any = None

    @step
    async def ask(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=str(await self.agent.run(user_msg=ev.question)))


async def test_an_agent_that_a_workflow_asks(kept):
    workflow = Asking()
    workflow.agent = searching()
    assert await asked(kept, workflow, question=ASKED) == ANSWER
    assert edges(kept) == ALONE


async def test_a_workflow_and_an_engine_are_no_agents(kept):
    await engine(Faq(size=2), [], Llm()).aquery(ASKED)
    assert not kept.spans_of("invoke_agent")


async def test_an_agent_in_a_block(kept):
    with kept.recorder.start(query=ASKED) as run:
        run.answered(str(await searching(streaming=False).run(user_msg=ASKED)))
    await until(lambda: kept.runs)
    assert edges(kept) == ALONE
    assert (kept.only.record.query, kept.only.record.answer) == (ASKED, ANSWER)


async def test_an_agent_that_fails(kept):
    agent = searching(replies=[SEARCH, ConnectionError("the server is away")], streaming=False)
    with pytest.raises(ConnectionError):
        await agent.run(user_msg=ASKED)
    await until(lambda: kept.runs)
    (span,) = kept.spans_of("invoke_agent")
    assert (span.status.is_ok, span.attributes["error.type"]) == (False, "ConnectionError")
    assert kept.only.record.outcome == "error"


async def test_a_search_that_fails_is_no_failure_of_the_agent(kept):
    assert await asked(kept, searching(tools=[search(Broken())], streaming=False)) == ANSWER
    (span,) = kept.spans_of("invoke_agent")
    assert "error.type" not in span.attributes


@TOOLS_WAIT
async def test_an_agent_that_waits_and_one_that_goes_on(keeper):
    agent = searching(replies=[CONFIRM, ANSWER], tools=[confirm], streaming=False)
    (first,), run, _ = await resumed(agent, keeper, user_msg=ASKED)
    assert (first.record.outcome, run.record.outcome) == ("interrupted", "answered")
    for one in (first, run):
        (worked,) = [step for step in one.steps if isinstance(step, Agent)]
        assert (worked.name, worked.failure) == ("clerk", None)


async def test_requests_side_by_side(kept):
    agents = [searching(f"clerk{n}") for n in range(4)]
    await asyncio.gather(*(agent.run(user_msg=ASKED) for agent in agents))
    await until(lambda: len(kept.runs) == 4)
    told = edges(kept)
    for n in range(4):
        assert told.count(("chat caller-1", f"invoke_agent clerk{n}")) == 2
        assert told.count((f"invoke_agent clerk{n}", ROOT)) == 1
