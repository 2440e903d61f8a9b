"""`instrument`, `uninstrument` and the scoped form: idempotent, nestable, thread-safe."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index_instrumentation import get_dispatcher

import ragtrace_llamaindex
from integrations.llamaindex.tests.parts import checked, engine
from ragtrace.capture import Recorder
from ragtrace_llamaindex import instrument, instrumented, is_instrumented, uninstrument
from ragtrace_llamaindex.instrumentation import RagtraceEventHandler, RagtraceSpanHandler
from tests.kept import ANSWER, Keeper


def installed():
    root = get_dispatcher()
    spans = sum(isinstance(one, RagtraceSpanHandler) for one in root.span_handlers)
    return spans, sum(isinstance(one, RagtraceEventHandler) for one in root.event_handlers)


def test_the_public_names():
    assert ragtrace_llamaindex.__all__ == [
        "LlamaIndexInstrumentor",
        "instrument",
        "instrumented",
        "is_instrumented",
        "mark_retrieved",
        "mark_selected",
        "request",
        "uninstrument",
    ]


def test_two_calls_count_once_and_the_later_holds(keeper, recorder):  # class 9
    instrument(recorder, workflow="other")
    assert installed() == (1, 1)
    engine().query("Where?")
    checked(keeper.only)
    assert keeper.only.record.workflow == "other"


def test_calls_from_many_threads(recorder):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: instrument(recorder), range(200)))
    assert installed() == (1, 1)


def test_uninstrument_takes_both_off(keeper):
    uninstrument()
    uninstrument()
    assert (installed(), is_instrumented()) == ((0, 0), False)
    assert str(engine().query("Where?")) == ANSWER
    assert keeper.runs == []


def test_other_handlers_stay(recorder):
    root = get_dispatcher()
    before = [one for one in root.span_handlers if not isinstance(one, RagtraceSpanHandler)]
    uninstrument()
    assert root.span_handlers == before
    instrument(recorder)
    assert root.span_handlers[:-1] == before


def test_a_block_inside_instrument(keeper, recorder):
    second = Keeper()
    with instrumented(Recorder(second), workflow="inner"):
        assert installed() == (1, 1)
        engine().query("Where?")
    engine().query("Then?")
    checked(second.only)
    assert second.only.record.workflow == "inner"
    checked(keeper.only, "Then?")


def test_a_block_leaves_nothing(keeper, recorder):
    uninstrument()
    with instrumented(recorder, tags=["outer"]):
        with instrumented(recorder, tags=["inner"]):
            engine().query("a?")
        engine().query("b?")
    assert (installed(), is_instrumented()) == ((0, 0), False)
    engine().query("c?")
    assert [(run.record.query, run.record.tags) for run in keeper.runs] == [("a?", ("inner",)), ("b?", ("outer",))]


async def test_blocks_of_concurrent_tasks_keep_their_own_settings(keeper, recorder):
    uninstrument()
    gate = asyncio.Barrier(8)

    async def ask(number):
        async with instrumented(recorder, session=f"s{number}"):
            await gate.wait()
            await engine().aquery(f"{number}?")
            await gate.wait()

    await asyncio.gather(*(ask(number) for number in range(8)))
    assert {run.record.session: run.record.query for run in keeper.runs} == {f"s{n}": f"{n}?" for n in range(8)}
    assert not is_instrumented()


def test_an_argument_that_is_none_is_said():
    uninstrument()
    for capture in (instrument, instrumented):
        with pytest.raises(TypeError, match="wrkflow"):
            capture(wrkflow="support")
    assert not is_instrumented()


def test_uninstrumented_in_the_middle_of_a_stream(keeper):
    response = engine(streaming=True).query("Where?")
    uninstrument()
    assert str(response) == ANSWER
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", ANSWER)


def test_instrumented_inside_a_span_that_began_before(keeper, recorder):
    uninstrument()

    @get_dispatcher("tests.app").span
    def main():
        instrument(recorder)
        engine().query("Where?")

    main()
    checked(keeper.only)


def test_a_shut_down_dispatcher_is_harmless(keeper):
    shutdown = getattr(get_dispatcher(), "shutdown", None)  # newer versions have it
    if shutdown is not None:
        shutdown()
    engine().query("Where?")
    checked(keeper.only)


def test_without_llama_index_the_extra_is_named(monkeypatch):  # class 18
    import importlib
    import sys

    from ragtrace.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "llama_index.core.instrumentation", None)
    with pytest.raises(MissingExtra, match="llamaindex"):
        importlib.reload(ragtrace_llamaindex)
