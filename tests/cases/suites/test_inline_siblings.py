"""An application over an asynchronous text model sees the same events with ragtrace as without it.

LangChain's `AsyncCallbackManager.on_llm_start` starts the inline handlers alone as soon as there is one. Each test runs
one application plainly, then with a `RagtraceHandler` in its callbacks, a copy of one, two of them, and with
`instrument()`, and compares what the application saw. Each also reads the run that ragtrace captured.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import re
import threading
from collections import Counter
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    UsageMetadataCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.language_models import (
    BaseLLM,
    FakeListChatModel,
    FakeListLLM,
    FakeStreamingListLLM,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.base import AsyncBaseTracer
from langchain_core.tracers.context import collect_runs
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from ragtrace.capture import Recorder, internal_errors
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.kept import Keeper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Callbacks = list[BaseCallbackHandler]
    Application = Callable[[Callbacks], Awaitable[Any]]

QUESTION = "Where is the lab?"
SAID = "In Oslo."
HOW = ["handler", "copy", "deepcopy", "two handlers", "subclass", "instrument"]


class Subclass(RagtraceHandler):
    """As an application may have one."""


@contextmanager
def traced(how: str) -> Iterator[tuple[Callbacks, list[Keeper]]]:
    """Give the callbacks that switch ragtrace on, and what its listeners keep."""
    keeper = Keeper()
    recorder = Recorder(keeper)
    if how == "instrument":
        instrument(recorder)
        try:
            yield [], [keeper]
        finally:
            uninstrument()
    elif how == "two handlers":
        other = Keeper()
        yield [RagtraceHandler(recorder), RagtraceHandler(Recorder(other))], [keeper, other]
    elif how in {"copy", "deepcopy"}:
        yield [getattr(copy, how)(RagtraceHandler(recorder))], [keeper]
    else:
        yield [(Subclass if how == "subclass" else RagtraceHandler)(recorder)], [keeper]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """LangChain's own log without the ids of runs."""
    said = [one.getMessage() for one in caplog.records if one.name.startswith("langchain_core")]
    return sorted(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", one) for one in said)


@pytest.fixture(params=HOW)
def compare(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Callable[..., Awaitable[None]]:
    """Run an application plainly and with ragtrace, and compare what it saw and what LangChain logged."""

    async def run(application: Application, answers: list[str] | None = None) -> None:
        caplog.set_level(logging.WARNING, logger="langchain_core")
        plain = await application([])
        said = warnings(caplog)
        caplog.clear()
        before = internal_errors()
        with traced(request.param) as (callbacks, keepers):
            got = await application(callbacks)
        assert got == plain
        assert plain, "the application saw nothing"
        assert warnings(caplog) == said
        assert internal_errors() == before
        # A copy may keep its own recorder: what it captured is then not in our listener's hands.
        for keeper in keepers if request.param != "deepcopy" else []:
            captured = sorted(str(run.record.answer) for run in keeper.runs)
            assert captured == sorted(answers or [SAID])

    return run


class Written(BaseLLM):
    """A text model of the lowest kind: several prompts in one call."""

    is_broken: bool = False

    @property
    def _llm_type(self) -> str:
        return "written"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        if self.is_broken:
            raise ConnectionError("the model is down")
        return LLMResult(generations=[[Generation(text=f"{prompt} {SAID}")] for prompt in prompts])

    async def _agenerate(self, prompts, stop=None, run_manager=None, **kwargs):
        await asyncio.sleep(0)
        return self._generate(prompts)


class Tokens(FakeStreamingListLLM):
    """A text model that reports tokens from inside a plain call, as Ollama and OpenAI's completions do."""

    started: Any = None

    async def _acall(self, *args, run_manager=None, **kwargs):
        if self.started is not None:
            self.started.set()
        for token in SAID.split():
            await asyncio.sleep(0.005)
            await run_manager.on_llm_new_token(token)
        await asyncio.sleep(0.005)  # LangChain's iterator may lose a token that comes together with the end
        return SAID


class Log(BaseCallbackHandler):
    """Writes events of models and chains; the first part of each is the handler's own name."""

    def __init__(self, log: list[tuple[str, ...]], name: str = "sync") -> None:
        self.log, self.name = log, name

    def on_chain_start(self, *args, **kwargs):
        self.log.append((self.name, "chain start"))

    def on_chain_end(self, *args, **kwargs):
        self.log.append((self.name, "chain end"))

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.log.append((self.name, "chat start", messages[0][-1].text))

    def on_llm_start(self, serialized, prompts, **kwargs):
        self.log.append((self.name, "llm start", *prompts))

    def on_llm_new_token(self, token, **kwargs):
        self.log.append((self.name, "token", token))

    def on_llm_end(self, response, **kwargs):
        self.log.append((self.name, "llm end", response.generations[0][0].text))

    def on_llm_error(self, error, **kwargs):
        self.log.append((self.name, "llm error", repr(error)))


class InlineLog(Log):
    run_inline = True


class AsyncLog(AsyncCallbackHandler):
    def __init__(self, log: list[tuple[str, ...]], name: str = "async") -> None:
        self.log, self.name = log, name

    async def on_chat_model_start(self, serialized, messages, **kwargs):
        self.log.append((self.name, "chat start", messages[0][-1].text))

    async def on_llm_start(self, serialized, prompts, **kwargs):
        self.log.append((self.name, "llm start", *prompts))

    async def on_llm_new_token(self, token, **kwargs):
        self.log.append((self.name, "token", token))

    async def on_llm_end(self, response, **kwargs):
        self.log.append((self.name, "llm end", response.generations[0][0].text))

    async def on_llm_error(self, error, **kwargs):
        self.log.append((self.name, "llm error", repr(error)))


class AsyncInlineLog(AsyncLog):
    run_inline = True


class OwnTracer(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str, int]] = []

    def _persist_run(self, run):
        self.kept.append((run.name, run.run_type, len(run.child_runs)))


class OwnAsyncTracer(AsyncBaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str, int]] = []

    async def _persist_run(self, run):
        self.kept.append((run.name, run.run_type, len(run.child_runs)))


def text(value: Any) -> str:
    """The words of an event's data, without ids."""
    if isinstance(value, dict):
        return " ".join(f"{name}={text(one)}" for name, one in sorted(value.items()))
    if isinstance(value, list | tuple):
        return " ".join(map(text, value))
    if isinstance(value, LLMResult):
        return " ".join(one.text for many in value.generations for one in many)
    return str(getattr(value, "content", getattr(value, "text", value)))


async def events(runnable, asked: Any, callbacks: Callbacks, version: str = "v2") -> list[tuple[str, str, str]]:
    config = {"callbacks": callbacks} if callbacks else {}
    return [
        (one["event"], one["name"], text(one["data"]))
        async for one in runnable.astream_events(asked, config=config, version=version)
    ]


def prompt_and(model):
    return ChatPromptTemplate.from_messages([("human", "{q}")]) | model


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("is_streaming", [True, False])
async def test_astream_events_tells_of_a_text_model(compare, version, is_streaming):
    model = FakeStreamingListLLM if is_streaming else FakeListLLM

    async def application(callbacks):
        seen = await events(prompt_and(model(responses=[SAID])), {"q": QUESTION}, callbacks, version)
        assert {one[0] for one in seen} >= {"on_chain_start", "on_chain_end"}
        return seen

    await compare(application)


async def test_astream_events_has_start_stream_and_end_of_the_model(compare):
    async def application(callbacks):
        seen = await events(FakeStreamingListLLM(responses=[SAID]), QUESTION, callbacks)
        count = Counter(one[0] for one in seen)
        return {name: count[name] for name in ("on_llm_start", "on_llm_stream", "on_llm_end")}

    await compare(application)


@pytest.mark.parametrize("model", [FakeStreamingListLLM, FakeListChatModel])
async def test_astream_events_of_a_nested_chain(compare, model):
    """Prompt, a step, a chain within a function, and a parser."""
    inner = PromptTemplate.from_template("Say it again: {text}") | model(responses=["Again."]) | StrOutputParser()

    async def twice(said, config):
        return await inner.ainvoke({"text": said}, config)

    chain = prompt_and(model(responses=[SAID])) | StrOutputParser() | RunnableLambda(twice)

    async def application(callbacks):
        return await events(chain, {"q": QUESTION}, callbacks)

    await compare(application, ["Again."])


async def test_astream_log_has_the_model(compare):
    chain = prompt_and(FakeStreamingListLLM(responses=[SAID]))

    async def application(callbacks):
        config = {"callbacks": callbacks} if callbacks else {}
        patches = [patch async for patch in chain.astream_log({"q": QUESTION}, config=config)]
        return [(one["op"], one["path"]) for patch in patches for one in patch.ops]

    await compare(application)


class OwnIterator(AsyncCallbackHandler):
    """LangChain's `AsyncIteratorCallbackHandler`: `on_llm_start` clears what ended the stream before."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.done = asyncio.Event()

    async def on_llm_start(self, *args, **kwargs):
        self.done.clear()

    async def on_llm_new_token(self, token, **kwargs):
        self.queue.put_nowait(token)

    async def on_llm_end(self, *args, **kwargs):
        self.done.set()

    async def aiter(self):
        while not self.queue.empty() or not self.done.is_set():
            waiting = [asyncio.ensure_future(self.queue.get()), asyncio.ensure_future(self.done.wait())]
            done, other = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in other:
                one.cancel()
            if waiting[0] in done:
                yield waiting[0].result()
            else:
                break


@pytest.mark.parametrize("whose", ["own", "langchain_classic"])
async def test_an_iterator_handler_gives_each_stream_whole(compare, whose):
    made = OwnIterator
    if whose == "langchain_classic":
        module = pytest.importorskip("langchain_classic.callbacks.streaming_aiter")
        made = module.AsyncIteratorCallbackHandler

    async def application(callbacks):
        handler, shown = made(), []
        for _ in range(3):
            model = Tokens(responses=[SAID], started=asyncio.Event())
            task = asyncio.create_task(model.ainvoke(QUESTION, config={"callbacks": [handler, *callbacks]}))
            await model.started.wait()
            async with asyncio.timeout(5):
                shown.append([token async for token in handler.aiter()])
            await task
        return shown

    await compare(application, [SAID] * 3)


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_collect_runs_has_the_run(compare, is_streamed):
    async def application(callbacks):
        config = {"callbacks": callbacks} if callbacks else None
        with collect_runs() as collected:
            model = FakeStreamingListLLM(responses=[SAID])
            if is_streamed:
                assert "".join([part async for part in model.astream(QUESTION, config=config)]) == SAID
            else:
                assert await model.ainvoke(QUESTION, config=config) == SAID
        return [(run.name, run.run_type, text(run.outputs)[:40], run.error) for run in collected.traced_runs]

    await compare(application)


@pytest.mark.parametrize("made", [OwnTracer, OwnAsyncTracer])
@pytest.mark.parametrize("model", [FakeListLLM, FakeListChatModel])
async def test_a_tracer_of_the_application_has_root_and_children(compare, made, model):
    async def application(callbacks):
        alone, nested = made(), made()
        await model(responses=[SAID]).ainvoke(QUESTION, config={"callbacks": [*callbacks, alone]})
        chain = prompt_and(model(responses=[SAID])) | StrOutputParser()
        await chain.ainvoke({"q": QUESTION}, config={"callbacks": [nested, *callbacks]})
        return alone.kept, nested.kept

    await compare(application, [SAID] * 2)


async def test_listeners_of_a_model_are_called(compare):
    async def application(callbacks):
        seen: list[str] = []
        model = FakeListLLM(responses=[SAID]).with_listeners(
            on_start=lambda run: seen.append(f"start {run.name}"),
            on_end=lambda run: seen.append(f"end {run.name}"),
            on_error=lambda run: seen.append(f"error {run.name}"),
        )
        await model.ainvoke(QUESTION, config={"callbacks": callbacks} if callbacks else None)
        return seen

    await compare(application)


@pytest.mark.parametrize("given", ["handler", "block"])
async def test_usage_is_counted(compare, given):
    def model():
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        said = AIMessage(SAID, usage_metadata=usage, response_metadata={"model_name": "m"})
        return prompt_and(GenericFakeChatModel(messages=iter([said])))

    async def application(callbacks):
        if given == "handler":
            usage = UsageMetadataCallbackHandler()
            await model().ainvoke({"q": QUESTION}, config={"callbacks": [usage, *callbacks]})
            return usage.usage_metadata
        with get_usage_metadata_callback() as usage:
            await model().ainvoke({"q": QUESTION}, config={"callbacks": callbacks} if callbacks else None)
        return usage.usage_metadata

    await compare(application)


PROMPTS = ["Where?", "When?", "Who?"]


@pytest.mark.parametrize("ours", ["first", "last"])
async def test_each_prompt_of_agenerate_starts_once_for_every_handler(compare, ours):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        own = [Log(log), AsyncLog(log), AsyncLog(log, "second")]
        both = [*callbacks, *own] if ours == "first" else [*own, *callbacks]
        await Written().agenerate(PROMPTS, callbacks=both)
        starts = Counter(one for one in log if one[1] == "llm start")
        return starts, sorted(log)

    await compare(application, [f"{one} {SAID}" for one in PROMPTS])


async def test_each_prompt_of_abatch_starts_once_for_every_handler(compare):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        config = {"callbacks": [Log(log), *callbacks, AsyncLog(log)]}
        await Written().abatch(PROMPTS, config=config)
        async for _ in Written().abatch_as_completed(PROMPTS[:1], config=config):
            pass
        return sorted(log)

    await compare(application, [f"{one} {SAID}" for one in [*PROMPTS, PROMPTS[0]]])


async def test_a_cached_prompt_starts_as_often_as_without(compare):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        model = Written(cache=InMemoryCache())
        config = {"callbacks": [AsyncLog(log), *callbacks]}
        for asked in (PROMPTS[0], PROMPTS[0], PROMPTS[1]):
            await model.ainvoke(asked, config=config)
        return log

    # A cached reply starts no model, so that it is no run.
    await compare(application, [f"{one} {SAID}" for one in PROMPTS[:2]])


@pytest.mark.parametrize("model", [FakeStreamingListLLM, FakeListChatModel, Tokens])
@pytest.mark.parametrize("inline", [InlineLog, AsyncInlineLog, None])
@pytest.mark.parametrize("ours", ["first", "last"])
async def test_events_of_all_kinds_of_handlers_keep_their_order(compare, model, inline, ours):
    """With an inline handler of the application, LangChain does what it does without ragtrace."""

    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        own = [AsyncLog(log), *([inline(log, "inline")] if inline else []), Log(log)]
        both = [*callbacks, *own] if ours == "first" else [*own, *callbacks]
        chain = prompt_and(model(responses=[SAID]))
        await chain.ainvoke({"q": QUESTION}, config={"callbacks": both})
        # A synchronous handler runs in a thread: against an asynchronous one its order is chance.
        return [[one for one in log if one[0] == name] for name in ("async", "sync", "inline")]

    await compare(application)


@pytest.mark.parametrize("inline", [InlineLog, AsyncInlineLog])
async def test_an_inline_handler_comes_before_the_others(compare, inline):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        both = [AsyncLog(log), *callbacks, inline(log, "inline"), AsyncLog(log, "third")]
        await FakeListChatModel(responses=[SAID]).ainvoke(QUESTION, config={"callbacks": both})
        await FakeListLLM(responses=[SAID]).ainvoke(QUESTION, config={"callbacks": both})
        return log

    await compare(application, [SAID] * 2)


async def test_an_inline_handler_in_the_block_of_collect_runs(compare):
    """LangChain's own fault with an inline handler of the application stays what it is."""

    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        with collect_runs() as collected:
            await FakeListLLM(responses=[SAID]).ainvoke(
                QUESTION, config={"callbacks": [InlineLog(log), *callbacks]}
            )
        return log, len(collected.traced_runs)

    await compare(application)


async def test_a_model_that_fails_tells_every_handler(compare):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        collected = RunCollectorCallbackHandler()
        with pytest.raises(ConnectionError):
            await Written(is_broken=True).ainvoke(
                QUESTION, config={"callbacks": [AsyncLog(log), collected, *callbacks, Log(log)]}
            )
        runs = [(run.run_type, (run.error or "")[:15]) for run in collected.traced_runs]
        return sorted(log), runs

    await compare(application, [""])


async def test_a_fallback_tells_every_handler(compare):
    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        tracer = OwnTracer()
        model = Written(is_broken=True).with_fallbacks([FakeListLLM(responses=[SAID])])
        await model.ainvoke(QUESTION, config={"callbacks": [tracer, AsyncLog(log), *callbacks]})
        return log, tracer.kept

    await compare(application)


async def test_parallel_models_of_one_chain(compare):
    chain = RunnableParallel(
        one=prompt_and(FakeStreamingListLLM(responses=[SAID])), two=prompt_and(FakeListLLM(responses=[SAID]))
    ) | RunnableLambda(itemgetter("one"))

    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        with collect_runs() as collected:
            await chain.ainvoke({"q": QUESTION}, config={"callbacks": [AsyncLog(log), *callbacks]})
        (root,) = collected.traced_runs
        return sorted(log), sorted(await events(chain, {"q": QUESTION}, callbacks)), len(root.child_runs)

    await compare(application, [SAID] * 2)


async def test_many_questions_at_once(compare):
    questions = [f"Question {number}?" for number in range(20)]

    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        own = AsyncLog(log)

        async def ask(question):
            with collect_runs() as collected:
                await Written().ainvoke(question, config={"callbacks": [own, *callbacks]})
            return len(collected.traced_runs)

        counts = await asyncio.gather(*map(ask, questions))
        streams = await asyncio.gather(*(events(Written(), one, callbacks) for one in questions))
        return counts, sorted(log), streams

    await compare(application, [f"{one} {SAID}" for one in questions] * 2)


@pytest.mark.parametrize("mode", ["messages", "updates", "values", "events", "invoke"])
@pytest.mark.parametrize("model", [FakeStreamingListLLM, FakeListChatModel])
async def test_a_graph_streams_as_without(compare, mode, model):
    graphs = pytest.importorskip("langgraph.graph")

    class State(TypedDict, total=False):
        question: str
        answer: str

    async def answer(state, config):
        said = await model(responses=[SAID]).ainvoke(state["question"], config)
        return {"answer": text(said)}

    built = graphs.StateGraph(State)
    built.add_node("answer", answer)
    built.add_edge(graphs.START, "answer")
    graph = built.compile()

    async def application(callbacks):
        log: list[tuple[str, ...]] = []
        asked, config = {"question": QUESTION}, {"callbacks": [AsyncLog(log), *callbacks]}
        if mode == "events":
            seen = await events(graph, asked, callbacks)
        elif mode == "invoke":
            with collect_runs() as collected:
                seen = [(await graph.ainvoke(asked, config))["answer"]]
            seen.append(sorted(run.name for run in collected.traced_runs))
        else:
            seen = [
                text(one[0] if mode == "messages" else one)
                async for one in graph.astream(asked, config, stream_mode=mode)
            ]
        return seen, log, mode

    await compare(application)


async def test_ragtrace_is_called_in_the_loop_s_own_thread():
    """Where it is not inline, LangChain calls it in a thread of an executor, and starts come late."""
    threads: list[int] = []

    class Threads(RagtraceHandler):
        def on_llm_start(self, *args, **kwargs):
            threads.append(threading.get_ident())
            return super().on_llm_start(*args, **kwargs)

        def on_llm_end(self, *args, **kwargs):
            threads.append(threading.get_ident())
            return super().on_llm_end(*args, **kwargs)

    keeper, log = Keeper(), []
    handler = Threads(Recorder(keeper))
    await FakeListLLM(responses=[SAID]).ainvoke(QUESTION, config={"callbacks": [AsyncLog(log), handler]})
    await FakeListChatModel(responses=[SAID]).ainvoke(QUESTION, config={"callbacks": [AsyncLog(log), handler]})
    assert set(threads) == {threading.get_ident()}
    assert [run.record.query for run in keeper.runs] == [QUESTION] * 2
