"""Async text models: every other handler is started as without ours, and ours stays in the run's own context."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel, FakeStreamingListLLM
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs
from langgraph.graph import END, START, MessagesState, StateGraph

from integrations.langchain.tests.parts import Faq
from ragtrace.capture import Recorder, internal_errors
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.kept import Keeper, ids


class Listens:
    """Keeps the model events that LangChain sends it."""

    def __init__(self):
        super().__init__()
        self.seen = []


class Sync(Listens, BaseCallbackHandler):
    def on_llm_start(self, serialized, prompts, **kwargs):
        self.seen.append(("start", *prompts))

    def on_llm_end(self, response, **kwargs):
        self.seen.append(("end", response.generations[0][0].text))


class Inline(Sync):
    run_inline = True


class Async(Listens, AsyncCallbackHandler):
    async def on_llm_start(self, serialized, prompts, **kwargs):
        self.seen.append(("start", *prompts))

    async def on_llm_end(self, response, **kwargs):
        self.seen.append(("end", response.generations[0][0].text))


class TextModel(FakeStreamingListLLM):
    """Tells its tokens as models of providers do."""

    responses: list[str] = ["In Oslo."]  # noqa: RUF012 - a field of pydantic

    async def _acall(self, prompt, stop=None, run_manager=None, **kwargs):
        for token in ("In ", "Oslo."):
            await asyncio.sleep(0)
            await run_manager.on_llm_new_token(token)
        return "In Oslo."


def text_model():
    return TextModel()


async def once(config):
    await text_model().ainvoke("Where?", config)


async def three_prompts(config):
    await text_model().agenerate(["Where?", "When?", "Why?"], callbacks=config["callbacks"])


async def batch(config):
    await text_model().abatch(["Where?", "When?"], config)


async def stream(config):
    return "".join([piece async for piece in text_model().astream("Where?", config)])


async def events(config):
    chain = ChatPromptTemplate.from_messages([("human", "{q}")]) | text_model()
    return [(e["event"], e["name"]) async for e in chain.astream_events({"q": "Where?"}, config, version="v2")]


async def log(config):
    chain = ChatPromptTemplate.from_messages([("human", "{q}")]) | text_model()
    patches = [patch async for patch in chain.astream_log({"q": "Where?"}, config=config)]
    return [[(op["op"], op["path"]) for op in patch.ops] for patch in patches]


async def collected(config):
    with collect_runs() as kept:
        await text_model().ainvoke("Where?", config)
    return [(run.run_type, run.outputs["generations"][0][0]["text"]) for run in kept.traced_runs]


async def graph_messages(config):
    async def node(state):
        return {"messages": [("ai", await text_model().ainvoke(state["messages"]))]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").add_edge("node", END).compile()
    inputs = {"messages": [("human", "Where?")]}
    return [piece.content async for piece, _ in graph.astream(inputs, config, stream_mode="messages")]


async def chat_model(config):
    return (await FakeListChatModel(responses=["In Oslo."]).ainvoke("Where?", config)).content


WAYS = [once, three_prompts, batch, stream, events, log, collected, graph_messages, chat_model]
OTHERS = {
    "none": [],
    "async": [Async],
    "sync": [Sync],
    "both": [Async, Sync],
    "inline": [Inline],
    "inline-and-async": [Inline, Async],
    "async-and-inline": [Async, Inline],
}


def shown_by(way, others, ours=()):
    """Return what the application gets, and what each of its handlers sees."""
    handlers = [other() for other in others]
    got = asyncio.run(way({"callbacks": [*ours, *handlers] or None}))
    return got, [sorted(handler.seen) for handler in handlers]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_other_handlers_see_what_they_see_without_ours(keeper, recorder, handler, way, others):
    plain = shown_by(way, others)
    assert shown_by(way, others, ours=[handler]) == plain
    assert {run.record.answer for run in keeper.runs} == {"In Oslo."}
    assert all(run.record.query for run in keeper.runs)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_instrument_is_seen_by_no_other_handler(keeper, recorder, way):
    plain = shown_by(way, [Async, Sync])
    instrument(recorder)
    try:
        assert shown_by(way, [Async, Sync]) == plain
    finally:
        uninstrument()
    assert keeper.runs


def test_two_of_ours_and_another(keeper, handler):
    second = Keeper()
    both = [handler, RagtraceHandler(Recorder(second))]
    assert shown_by(once, [Async], ours=both) == shown_by(once, [Async])
    assert [kept.only.record.answer for kept in (keeper, second)] == ["In Oslo."] * 2


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_ours_stays_on_the_thread_and_in_order(recorder, others):
    called = []

    class Called(RagtraceHandler):
        def on_llm_start(self, *args, **kwargs):
            called.append(("start", threading.get_ident()))
            super().on_llm_start(*args, **kwargs)

        def on_llm_new_token(self, *args, **kwargs):
            called.append(("token", threading.get_ident()))
            super().on_llm_new_token(*args, **kwargs)

        def on_llm_end(self, *args, **kwargs):
            called.append(("end", threading.get_ident()))
            super().on_llm_end(*args, **kwargs)

    shown_by(once, others, ours=[Called(recorder)])
    assert called == [(event, threading.get_ident()) for event in ("start", "token", "token", "end")]


def test_a_text_model_beside_a_retriever_is_one_run(keeper, config):
    async def asked(question):
        found = await Faq().ainvoke(question)
        return await text_model().ainvoke(f"{question} {found[0].page_content}")

    assert asyncio.run(
        RunnableLambda(asked).ainvoke("Where?", {**config, "callbacks": [Async(), *config["callbacks"]]})
    )
    record = keeper.only.record
    assert (record.query, record.answer, [one.id for one in record.contexts]) == ("Where?", "In Oslo.", ["d0"])
    assert len(ids(keeper.only, "retrieved")) == 6


def test_an_application_may_still_set_it(recorder):
    class Never(RagtraceHandler):
        run_inline = False

    handler = RagtraceHandler(recorder)
    assert (handler.run_inline, RagtraceHandler.run_inline, Never(recorder).run_inline) == (True, True, False)
    handler.run_inline = False
    assert handler.run_inline is False


def test_a_fault_of_ours_leaves_the_model_call_whole(keeper, handler, loses):
    """Another handler answers LangChain, and not us."""

    class Picky(Sync):
        @property
        def run_inline(self):
            if sys._getframe(1).f_globals["__name__"].startswith("ragtrace"):
                raise RuntimeError("inside")
            return False

    before = sum(internal_errors().values())
    asyncio.run(text_model().ainvoke("Where?", {"callbacks": [handler, Picky()]}))
    assert sum(internal_errors().values()) > before
    assert keeper.only.record.answer == "In Oslo."
