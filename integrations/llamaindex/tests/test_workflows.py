"""Workflows and agents: one run from start to stop, with all that its steps did (class 15)."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import QueryEngineTool
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

from integrations.llamaindex.tests.parts import Best, Faq, Llm, ToolCaller, checked, engine, until
from ragtrace.capture import Generation, Retrieval
from ragtrace.model import Message
from tests.kept import ANSWER, ids, kinds


class Found(Event):
    nodes: list


class Rag(Workflow):
    prefix = "d"

    @step
    async def find(self, ev: StartEvent) -> Found:
        return Found(nodes=await Faq(prefix=self.prefix).aretrieve(ev.query))

    @step
    async def answer(self, ev: Found) -> StopEvent:
        chosen = Best().postprocess_nodes(ev.nodes)
        reply = await Llm().acomplete("\n".join(one.text for one in chosen))
        return StopEvent(result=reply.text)


async def test_retriever_steps_are_one_run(keeper):
    assert await Rag().run(query="Where?") == ANSWER
    await until(lambda: keeper.runs)
    checked(keeper.only)
    assert keeper.only.record.workflow == "Rag"


async def test_a_workflow_without_any_of_it_is_no_run(keeper):
    class Plain(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=ev.query)

    assert await Plain().run(query="Where?") == "Where?"
    assert keeper.begun == 0


async def test_a_result_that_streams(keeper):
    class Streams(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=await engine(streaming=True).aquery(ev.query))

    response = await Streams().run(query="Where?")
    assert "".join([piece async for piece in response.async_response_gen()]) == ANSWER
    await until(lambda: keeper.runs)
    checked(keeper.only)


async def test_a_step_that_fails(keeper):
    class Fails(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            await Faq().aretrieve(ev.query)
            raise LookupError("no")

    with pytest.raises(LookupError):
        await Fails().run(query="Where?")
    await until(lambda: keeper.runs)
    run = keeper.only
    assert (run.record.outcome, run.failure.kind, len(ids(run, "retrieved"))) == ("error", "LookupError", 6)


class Asks(Workflow):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Which lab?")  # type: ignore[call-arg]

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=ev.response)


class Waits(Workflow):
    @step
    async def ask(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await Faq().aretrieve(ev.query)
        reply = await ctx.wait_for_event(
            HumanResponseEvent,
            waiter_id="w",
            waiter_event=InputRequiredEvent(prefix="Which lab?"),  # type: ignore[call-arg]
        )
        return StopEvent(result=reply.response)


@pytest.mark.parametrize("kind", [Asks, Waits])
async def test_a_question_to_a_person_is_no_error(keeper, kind):
    handle = kind().run(query="Where?")
    async for event in handle.stream_events():
        if isinstance(event, InputRequiredEvent):
            handle.ctx.send_event(HumanResponseEvent(response="The one in Oslo."))
    assert await handle == "The one in Oslo."
    await until(lambda: keeper.runs)
    run = keeper.only
    assert (run.record.outcome, run.record.answer, run.failure) == ("answered", "The one in Oslo.", None)


async def test_left_waiting_for_a_person(keeper):
    handle = Asks().run(query="Where?")
    async for event in handle.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    await handle.cancel_run()
    with pytest.raises(BaseException):  # noqa: B017 - the class differs between versions
        await handle
    await until(lambda: keeper.runs)
    assert (keeper.only.record.outcome, keeper.only.failure) == ("interrupted", None)
    assert "Which lab?" in keeper.only.record.interrupt


async def test_cancelled(keeper):
    begun = asyncio.Event()

    class Slow(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            await Faq().aretrieve(ev.query)
            begun.set()
            await asyncio.Event().wait()

    handle = Slow().run(query="Where?")
    await begun.wait()
    await handle.cancel_run()
    with pytest.raises(BaseException):  # noqa: B017 - the class differs between versions
        await handle
    await until(lambda: keeper.runs)
    assert (keeper.only.record.outcome, keeper.only.failure) == ("cancelled", None)


CALL = {"name": "search", "args": {"input": "lab?"}}


def search():
    return QueryEngineTool.from_defaults(engine(), name="search", description="Searches.")


@pytest.mark.parametrize("streaming", [False, True])
async def test_function_agent(keeper, streaming):
    model = ToolCaller(replies=[CALL, "It is Oslo."])
    agent = FunctionAgent(tools=[search()], llm=model, streaming=streaming)
    turns = [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")]
    assert str(await agent.run(user_msg="Where?", chat_history=turns)) == "It is Oslo."
    await until(lambda: keeper.runs)
    run = keeper.only
    assert (run.record.workflow, run.record.query, run.record.answer) == ("FunctionAgent", "Where?", "It is Oslo.")
    assert kinds(run) == ["chat", "retrieval", "rerank", "chat", "tool", "chat", "agent"]
    assert (ids(run, "reranked"), run.prompt_ids) == (["d5", "d4"], ("d5", "d4"))
    assert run.record.history == (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))
    assert next(one for one in run.steps if isinstance(one, Retrieval)).query == "lab?"
    assert "search(" in next(one for one in run.steps if isinstance(one, Generation)).outputs[0].shown


async def test_an_agent_that_searches_twice(keeper):
    agent = FunctionAgent(tools=[search()], llm=ToolCaller(replies=[CALL, CALL, "It is Oslo."]))
    await agent.run(user_msg="Where?")
    await until(lambda: keeper.runs)
    assert kinds(keeper.only).count("retrieval") == 2
    assert ids(keeper.only, "reranked") == ["d5", "d4"]


async def test_react_agent(keeper):
    thoughts = [
        'Thought: I need a tool.\nAction: search\nAction Input: {"input": "lab?"}\n',
        "Thought: I can answer.\nAnswer: It is Oslo.",
    ]
    agent = ReActAgent(tools=[search()], llm=ToolCaller(replies=thoughts))
    assert str(await agent.run(user_msg="Where?")) == "It is Oslo."
    await until(lambda: keeper.runs)
    run = keeper.only
    assert (run.record.query, run.record.answer) == ("Where?", "It is Oslo.")
    assert kinds(run) == ["chat", "retrieval", "rerank", "chat", "tool", "chat", "agent"]
