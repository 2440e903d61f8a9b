"""Failures of every stage reach the application unchanged, and the run says what failed."""

from __future__ import annotations

import asyncio
import gc

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode

from integrations.llamaindex.tests.parts import Best, Broken, Faq, First, Llm, checked, engine, until
from ragtrace.capture import internal_errors
from ragtrace.capture.lineage import Lineage
from ragtrace_llamaindex import mark_selected
from ragtrace_llamaindex import tracer as tracing
from ragtrace_llamaindex.instrumentation import RagtraceSpanHandler
from tests.kept import ANSWER, ids


class Down(RuntimeError):
    """Not a ValueError: LlamaIndex's refining synthesizer swallows those."""


async def test_async_stream_that_breaks(keeper):
    response = await engine(llm=Llm(error=Down("no")), streaming=True).aquery("Where?")
    with pytest.raises(Down):
        [piece async for piece in response.async_response_gen()]
    assert (keeper.only.record.outcome, keeper.only.failure.kind) == ("error", "Down")


async def test_chat_stream_that_breaks(keeper):
    chat = ContextChatEngine.from_defaults(Faq(), llm=Llm(error=Down("no")))
    response = await chat.astream_chat("Where?")
    with pytest.raises(Down):
        [piece async for piece in response.async_response_gen()]
    assert (keeper.only.record.outcome, keeper.only.failure.kind) == ("error", "Down")


def test_bare_stream_that_breaks(keeper):
    with pytest.raises(Down):
        list(Llm(error=Down("no")).stream_complete("Where?"))
    assert (keeper.only.record.outcome, keeper.only.failure.kind) == ("error", "Down")


async def test_cancelled_while_a_stream_is_read(keeper):
    begun = asyncio.Event()

    class Slow(Llm):
        async def astream_complete(self, prompt, **kwargs):
            async def pieces():
                begun.set()
                await asyncio.Event().wait()
                yield

            return pieces()

    response = await engine(llm=Slow(), streaming=True).aquery("Where?")

    async def read():
        return [piece async for piece in response.async_response_gen()]

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: keeper.runs)
    assert keeper.only.record.outcome == "cancelled"


def test_a_failure_that_the_application_catches_is_none_of_the_run(keeper):
    class Fallback(Faq):
        def _retrieve(self, query_bundle):
            try:
                return Broken().retrieve(query_bundle)
            except ConnectionError:
                return super()._retrieve(query_bundle)

    assert str(engine(Fallback()).query("Where?")) == ANSWER
    run = keeper.only
    assert (run.record.outcome, run.failure, len(ids(run, "retrieved"))) == ("answered", None, 6)


@pytest.mark.parametrize("site", ["search", "choice", "settle", "shows"])
@pytest.mark.usefixtures("loses")
def test_our_own_failure_is_counted_and_harmless(keeper, recorder, monkeypatch, site):
    def broken(*_, **__):
        raise RuntimeError("inside")

    monkeypatch.setattr(getattr(Lineage, site), "__wrapped__", broken)
    name = f"ragtrace.capture.lineage.Lineage.{site}"
    before = internal_errors().get(name, 0)
    assert str(engine().query("Where?")) == ANSWER
    assert internal_errors()[name] > before
    assert keeper.only.record.answer == ANSWER
    assert (recorder.open_runs, len(tracing.reading.get() or ())) == (0, 0)


@pytest.mark.parametrize("hook", ["span_enter", "span_exit", "span_drop"])
@pytest.mark.usefixtures("loses")
def test_every_hook_is_guarded(monkeypatch, hook):
    def broken(*_, **__):
        raise RuntimeError("inside")

    monkeypatch.setattr(getattr(RagtraceSpanHandler, hook), "__wrapped__", broken)
    assert str(engine(streaming=True).query("Where?")) == ANSWER
    with pytest.raises(ConnectionError):
        engine(Broken()).query("Where?")


class Hostile:
    def __repr__(self):
        raise RuntimeError("repr")

    __str__ = __repr__


def cyclic():
    facts = {"page": 1, "hostile": Hostile()}
    facts["self"] = facts
    return facts


ODD = {
    "an image": NodeWithScore(node=ImageNode(id_="x", image_url="x.png"), score=0.5),
    "no score": NodeWithScore(node=TextNode(id_="x", text="Oslo.")),
    "not a number": NodeWithScore(node=TextNode(id_="x", text="Oslo."), score=float("nan")),
    "lone surrogate": NodeWithScore(node=TextNode(id_="x", text="Os\ud800lo."), score=0.5),
    "empty text": NodeWithScore(node=TextNode(id_="x", text=""), score=0.5),
    "None text": NodeWithScore.model_construct(
        node=TextNode.model_construct(id_="x", text=None, metadata={}), score=1
    ),
    "cyclic metadata": NodeWithScore.model_construct(
        node=TextNode.model_construct(id_="x", text="Oslo.", metadata=cyclic()), score=0.5
    ),
    "5 MB": NodeWithScore(node=TextNode(id_="x", text="Oslo " * 1_000_000), score=0.5),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_nodes(keeper, odd):
    found = [NodeWithScore(node=TextNode(id_="a", text="The lab moved."), score=0.9), odd]

    class Raw(Faq):
        def retrieve(self, str_or_query_bundle):  # LlamaIndex's own hashes them in old versions
            return found

    assert Raw().retrieve("Where?") is found
    assert ids(keeper.only, "retrieved") == ["a", "x"]


@pytest.mark.parametrize("odd", ["a text", None, 7, Hostile()], ids=["text", "None", "number", "hostile"])
def test_what_is_no_node(keeper, odd):
    class Odd(Faq):
        def retrieve(self, str_or_query_bundle):  # LlamaIndex's own would fail on it
            return [odd]

    assert Odd().retrieve("Where?") == [odd]
    assert len(ids(keeper.only, "retrieved")) == 1


def test_duplicate_ids(keeper):
    found = [NodeWithScore(node=TextNode(id_="a", text=f"Text {i}."), score=i / 10) for i in range(3)]

    class Thrice(Faq):
        def retrieve(self, str_or_query_bundle):  # LlamaIndex's own drops all but the first
            return found

    engine(Thrice(), [First(n=2)]).query("Where?")
    run = keeper.only
    assert [p.text for p in run.record.pool("retrieved")] == ["Text 0.", "Text 1.", "Text 2."]
    assert [p.text for p in run.record.pool("reranked")] == ["Text 0.", "Text 1."]


def test_a_query_that_is_no_text(keeper):
    with pytest.raises(Exception):  # noqa: B017 - LlamaIndex's own
        engine().query(Hostile())
    assert [run.record.outcome for run in keeper.runs] in ([], ["error"])


def test_mark_outside_a_run_does_nothing(keeper):
    found = [object()]
    assert mark_selected(found) is found
    assert keeper.runs == []


def test_a_swept_run_s_late_calls_open_none(keeper, recorder):
    class Late(Faq):
        def _retrieve(self, query_bundle):
            recorder.sweep(now=1e12)
            return super()._retrieve(query_bundle)

    assert str(engine(Late()).query("Where?")) == ANSWER
    gc.collect()
    assert [run.record.outcome for run in keeper.runs] == ["partial"]
    engine(postprocessors=[Best(callback_manager=CallbackManager())]).query("Where?")
    checked(keeper.runs[1])
