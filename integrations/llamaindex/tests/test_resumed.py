"""Workflows that wait for a person: what a run says that waits, and one that goes on from a saved context."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import (
    Context,
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    JsonPickleSerializer,
    JsonSerializer,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from pydantic import BaseModel

from integrations.llamaindex.tests.parts import TOOLS_WAIT, Faq, Llm, ToolCaller, engine, until
from ragtrace.capture import ToolCall
from tests.kept import ANSWER, ids

ASKED = "Where is the lab these days?"
PICKLED, PLAIN = JsonPickleSerializer(), JsonSerializer()
ROOT = Path(__file__).parents[3]


async def confirm(ctx: Context, order: str) -> str:
    """Ask a person."""
    said = await ctx.wait_for_event(
        HumanResponseEvent,
        waiter_id="w",
        waiter_event=InputRequiredEvent(prefix="Sure?"),  # type: ignore[call-arg]
    )
    return "confirmed: " + said.response


async def confirm_alone(ctx: Context, order: str) -> str:
    """Ask a person by an event of its own."""
    ctx.write_event_to_stream(InputRequiredEvent(prefix="Sure?"))  # type: ignore[call-arg]
    said = await ctx.wait_for_event(HumanResponseEvent)
    return "confirmed: " + said.response


def pages():
    return QueryEngineTool.from_defaults(engine(), name="pages", description="Searches.")


def call(name, **arguments):
    return {"name": name, "args": arguments}


CONFIRM, SEARCH = call("confirm", order="A1"), call("pages", input="lab city")


async def saved_at_its_question(application, serializer=PICKLED, *, is_left=True, **given):
    """Run an application up to its question to a person, and return its saved context."""
    handler = application.run(**given)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            saved = handler.ctx.to_dict(serializer=serializer)
            break
    if is_left:
        await handler.cancel_run()
        with pytest.raises(BaseException):  # noqa: B017 - the class differs between versions
            await handler
    return saved


async def resumed(application, keeper, serializer=PICKLED, **given):
    saved = await saved_at_its_question(application, serializer, **given)
    await until(lambda: len(keeper.runs) == keeper.begun)
    first = list(keeper.runs)
    keeper.runs.clear()
    handler = application.run(ctx=Context.from_dict(application, saved, serializer=serializer))
    handler.ctx.send_event(HumanResponseEvent(response="yes"))
    result = str(await handler)
    await until(lambda: keeper.runs)
    return first, keeper.only, result


def told(run):
    return run.record.query, run.record.answer, run.record.outcome


AGENTS = {
    "that had searched": [SEARCH, CONFIRM, ANSWER],
    "that searches afterwards": [CONFIRM, SEARCH, ANSWER],
    "that only asks": [CONFIRM, ANSWER],
}


@pytest.mark.parametrize("replies", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("streaming", [False, True])
@TOOLS_WAIT
async def test_a_function_agent(keeper, replies, streaming):
    agent = FunctionAgent(tools=[pages(), confirm], llm=ToolCaller(replies=replies), streaming=streaming)
    turns = [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")]
    (first,), run, result = await resumed(agent, keeper, user_msg=ASKED, chat_history=turns)
    assert told(first) == (ASKED, "", "interrupted")
    assert "Sure?" in first.record.interrupt
    assert (told(run), result) == ((ASKED, ANSWER, "answered"), ANSWER)
    assert [turn.content for turn in run.record.history] == ["Hi", "Hello"]
    assert not [one for one in (*first.steps, *run.steps) if one.failure is not None]
    found = [f"d{i}" for i in range(6)] if replies[1] is SEARCH else []
    assert ids(run, "retrieved") == found


@TOOLS_WAIT
async def test_a_plain_serializer(keeper):
    agent = FunctionAgent(tools=[pages(), confirm], llm=ToolCaller(replies=[CONFIRM, SEARCH, ANSWER]))
    saved = await saved_at_its_question(agent, PLAIN, user_msg=ASKED)
    keeper.runs.clear()
    ctx = Context.from_dict(agent, saved, serializer=PLAIN)
    memory = ChatMemoryBuffer.from_defaults(chat_history=[ChatMessage(ASKED, role="user")])
    handler = agent.run(ctx=ctx)
    await handler.ctx.store.set("memory", memory)  # this serializer leaves it out; the application sets it anew
    handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    await until(lambda: keeper.runs)
    assert told(keeper.only) == (ASKED, ANSWER, "answered")


async def test_the_new_memory(keeper):
    agent = FunctionAgent(tools=[pages(), confirm], llm=ToolCaller(replies=[CONFIRM, SEARCH, ANSWER]))
    memory = Memory.from_defaults(session_id="s")
    handler = agent.run(user_msg=ASKED, memory=memory)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    await until(lambda: keeper.runs)
    assert told(keeper.only) == (ASKED, ANSWER, "answered")


@TOOLS_WAIT
async def test_a_react_agent(keeper):
    replies = [
        'Thought: I must ask.\nAction: confirm\nAction Input: {"order": "A1"}\n',
        'Thought: I need a tool.\nAction: pages\nAction Input: {"input": "lab city"}\n',
        f"Thought: I can answer.\nAnswer: {ANSWER}",
    ]
    agent = ReActAgent(tools=[pages(), confirm], llm=ToolCaller(replies=replies))
    (first,), run, _ = await resumed(agent, keeper, user_msg=ASKED)
    assert (told(first), told(run)) == ((ASKED, "", "interrupted"), (ASKED, ANSWER, "answered"))


async def test_a_code_agent(keeper):
    async def execute(code: str) -> str:
        return "42"

    agent = CodeActAgent(
        code_execute_fn=execute, tools=[], llm=ToolCaller(replies=["<execute>\n6*7\n</execute>", ANSWER])
    )
    await agent.run(user_msg=ASKED)
    await until(lambda: keeper.runs)
    assert told(keeper.only) == (ASKED, ANSWER, "answered")


@TOOLS_WAIT
async def test_agents_with_a_hand_off(keeper):
    handoff = call("handoff", to_agent="writer", reason="it writes")
    first = FunctionAgent(
        name="finder", description="Finds.", tools=[pages()], llm=ToolCaller(replies=[SEARCH, handoff])
    )
    last = FunctionAgent(
        name="writer", description="Writes.", tools=[confirm], llm=ToolCaller(replies=[CONFIRM, ANSWER])
    )
    team = AgentWorkflow(agents=[first, last], root_agent="finder")
    (before,), run, _ = await resumed(team, keeper, user_msg=ASKED)
    assert (told(before), told(run)) == ((ASKED, "", "interrupted"), (ASKED, ANSWER, "answered"))


@pytest.mark.parametrize("tool", [confirm, confirm_alone])
@TOOLS_WAIT
async def test_a_tool_that_waits_and_goes_on(keeper, tool):
    named = FunctionTool.from_defaults(async_fn=tool, name="confirm")
    agent = FunctionAgent(tools=[named], llm=ToolCaller(replies=[CONFIRM, ANSWER]))
    handler = agent.run(user_msg=ASKED)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    await until(lambda: keeper.runs)
    (called,) = [one for one in keeper.only.steps if isinstance(one, ToolCall)]
    assert (called.failure, called.result) == (None, "confirmed: yes")
    assert told(keeper.only) == (ASKED, ANSWER, "answered")


@pytest.mark.parametrize("tool", [confirm, confirm_alone])
@TOOLS_WAIT
async def test_a_tool_that_is_left_waiting(keeper, tool):
    named = FunctionTool.from_defaults(async_fn=tool, name="confirm")
    agent = FunctionAgent(tools=[pages(), named], llm=ToolCaller(replies=[SEARCH, CONFIRM, ANSWER]))
    await saved_at_its_question(agent, user_msg=ASKED)
    await until(lambda: keeper.runs)
    assert (told(keeper.only), keeper.only.failure) == ((ASKED, "", "interrupted"), None)


class Asked(Event):
    question: str


class Own(StartEvent):
    customer_message: str
    lang: str = "de"


class Between(Workflow):
    """Asks between its steps, and searches with what the store kept."""

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
        await ctx.store.set("question", ev.query)
        await ctx.store.set("prompt", "Use this and that.")
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Sure?")  # type: ignore[call-arg]

    @step
    async def end(self, ctx: Context, ev: HumanResponseEvent) -> StopEvent:
        reply = await Llm().acomplete("Summarise what you know. " + await ctx.store.get("question"))
        return StopEvent(result=reply.text)


class Inside(Workflow):
    """Asks inside its first step, and searches with other words afterwards."""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await ctx.wait_for_event(
            HumanResponseEvent,
            waiter_id="w",
            waiter_event=InputRequiredEvent(prefix="Sure?"),  # type: ignore[call-arg]
        )
        found = await Faq().aretrieve("lab city")
        return StopEvent(result=(await Llm().acomplete("\n".join(one.text for one in found))).text)


class Typed(BaseModel):
    ticket: str = ""
    lang: str = "de"


class TypedState(Workflow):
    """Keeps the question under a name of its own in a typed state."""

    @step
    async def begin(self, ctx: Context[Typed], ev: StartEvent) -> InputRequiredEvent:
        async with ctx.store.edit_state() as state:
            state.ticket = ev.query
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Sure?")  # type: ignore[call-arg]

    @step
    async def end(self, ctx: Context[Typed], ev: HumanResponseEvent) -> StopEvent:
        ticket = (await ctx.store.get_state()).ticket
        found = await Faq().aretrieve(f"{ticket} (rewritten)")
        return StopEvent(result=(await Llm().acomplete("\n".join(one.text for one in found))).text)


class InAMessage(Workflow):
    """Keeps the question inside a text: only the model is shown it as a message."""

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
        found = await Faq().aretrieve(ev.query)
        text = "\n".join(one.text for one in found)
        await ctx.store.set("made", f"{text}\n{ev.query}")
        return InputRequiredEvent(prefix="Sure?")  # type: ignore[call-arg]

    @step
    async def end(self, ctx: Context, ev: HumanResponseEvent) -> StopEvent:
        text, _, query = (await ctx.store.get("made")).rpartition("\n")
        shown = [ChatMessage(text, role="system"), ChatMessage(query, role="user")]
        return StopEvent(result=(await Llm().achat(shown)).message.content)


class UnderItsOwnName(Workflow):
    """Keeps the question under a name of its own, shows the model all that was said, and searches no more."""

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
        await ctx.store.set("original_query", ev.query)
        await ctx.store.set("docs", [one.text for one in await Faq().aretrieve(ev.query)])
        return InputRequiredEvent(prefix="Sure?")  # type: ignore[call-arg]

    @step
    async def end(self, ctx: Context, ev: HumanResponseEvent) -> StopEvent:
        asked = await ctx.store.get("original_query")
        turns = [("user", asked), ("assistant", "Sure?"), ("user", ev.response)]
        return StopEvent(
            result=str((await Llm().achat([ChatMessage(text, role=role) for role, text in turns])).message.content)
        )


@pytest.mark.parametrize("kind", [Between, Inside, TypedState, InAMessage, UnderItsOwnName])
@pytest.mark.parametrize("serializer", [PICKLED, PLAIN], ids=["pickle", "json"])
async def test_a_workflow(keeper, kind, serializer):
    first, run, result = await resumed(kind(), keeper, serializer, query=ASKED)
    assert [told(one) for one in first] in (
        [(ASKED, "", "interrupted")],
        [],
    )  # nothing was searched before it asked
    assert (told(run), result) == ((ASKED, ANSWER, "answered"), ANSWER)


class Outer(Workflow):
    kind = Inside

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await Faq().aretrieve(ev.query)
        handler = self.kind().run(query=ev.query)
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                ctx.write_event_to_stream(event)
        return StopEvent(result=str(await handler))


class OuterBetween(Outer):
    kind = Between  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Outer, OuterBetween])
async def test_a_workflow_inside_another_is_left_waiting(keeper, kind):
    await saved_at_its_question(kind(), query=ASKED)
    await until(lambda: keeper.runs)
    assert (told(keeper.only), keeper.only.failure) == ((ASKED, "", "interrupted"), None)


class Slow(Workflow):
    """Asks, is answered, and then works for ever."""

    kind = "between"

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Sure?")  # type: ignore[call-arg]

    @step
    async def end(self, ctx: Context, ev: HumanResponseEvent) -> StopEvent:
        await asyncio.Event().wait()
        return StopEvent(result="")


class SlowInside(Workflow):
    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await Faq().aretrieve(ev.query)
        await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Sure?"))  # type: ignore[call-arg]
        await asyncio.Event().wait()
        return StopEvent(result="")


@pytest.mark.parametrize("kind", [Slow, SlowInside])
async def test_cancelled_after_the_person_answered(keeper, kind):
    handler = kind().run(query=ASKED)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
            break
    for _ in range(20):
        await asyncio.sleep(0.001)
    await handler.cancel_run()
    await until(lambda: keeper.runs)
    assert keeper.only.record.outcome == "cancelled"


class Timed(Workflow):
    """Waits for a moment, and answers without the person."""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        found = await Faq().aretrieve(ev.query)
        try:
            await ctx.wait_for_event(
                HumanResponseEvent,
                timeout=0.01,
                waiter_event=InputRequiredEvent(prefix="Sure?"),  # type: ignore[call-arg]
            )
        except TimeoutError:
            return StopEvent(result=(await Llm().acomplete("\n".join(one.text for one in found))).text)
        return StopEvent(result="")


async def test_a_wait_that_times_out(keeper):
    assert await Timed().run(query=ASKED) == ANSWER
    await until(lambda: keeper.runs)
    assert told(keeper.only) == (ASKED, ANSWER, "answered")


def test_the_loop_ends_while_a_run_waits(keeper):
    async def left():
        await saved_at_its_question(Between(), query=ASKED, is_left=False)

    asyncio.run(left())
    assert told(keeper.only) == (ASKED, "", "interrupted")


async def test_the_recorder_ends_a_run_that_waits(keeper, recorder):
    handler = Between().run(query=ASKED)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    recorder.end_all()
    assert told(keeper.only) == (ASKED, "", "interrupted")
    assert "Sure?" in keeper.only.record.interrupt
    await handler.cancel_run()


SCRIPT = """
import asyncio, json, sys
from integrations.llamaindex.tests import test_resumed as t
from llama_index.core.workflow import Context, HumanResponseEvent
from ragtrace.testing.recording import Recording
import ragtrace_llamaindex

async def go(saved):
    agent = t.FunctionAgent(tools=[t.pages(), t.confirm], llm=t.ToolCaller(replies=[t.SEARCH, t.ANSWER]))
    handler = agent.run(ctx=Context.from_dict(agent, saved, serializer=t.PICKLED))
    handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler

kept = Recording()
ragtrace_llamaindex.instrument(kept.recorder)
asyncio.run(go(json.load(sys.stdin)))
print(json.dumps([(r.record.query, r.record.answer, r.record.outcome) for r in kept.runs]))
"""


@TOOLS_WAIT
async def test_another_process_goes_on(keeper):
    agent = FunctionAgent(tools=[pages(), confirm], llm=ToolCaller(replies=[CONFIRM]))
    saved = await saved_at_its_question(agent, user_msg=ASKED)
    places = os.pathsep.join([str(ROOT), str(ROOT / "integrations" / "llamaindex")])
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", SCRIPT], input=json.dumps(saved), capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": places}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [[ASKED, ANSWER, "answered"]]
