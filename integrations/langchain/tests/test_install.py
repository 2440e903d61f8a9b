"""The global install: all calls, in all threads, once each; and gone again."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain_core.tracers import context

from integrations.langchain.tests.parts import lcel
from ragtrace.capture import Recorder
from ragtrace_langchain import RagtraceHandler, instrument, is_instrumented, uninstrument
from tests.kept import ANSWER, ids


@pytest.fixture
def installed(recorder):
    instrument(recorder, workflow="support")
    yield
    uninstrument()


def test_a_call_without_a_handler_is_captured(keeper, installed):
    assert lcel().invoke("Where?") == ANSWER
    assert (keeper.only.record.workflow, ids(keeper.only, "reranked")) == ("support", ["d3", "d2"])


async def test_async_and_in_parallel(keeper, installed):
    await asyncio.gather(*(lcel().ainvoke(f"Where is {i}?") for i in range(8)))
    assert sorted(run.record.query for run in keeper.runs) == [f"Where is {i}?" for i in range(8)]


def test_in_another_thread(keeper, installed):
    thread = threading.Thread(target=lambda: lcel().invoke("Where?"))
    thread.start()
    thread.join()
    assert keeper.only.record.answer == ANSWER


def test_twice_is_once(keeper, recorder, installed):
    hooks = len(context._configure_hooks)
    instrument(recorder, workflow="again")
    instrument(recorder, workflow="again")
    assert len(context._configure_hooks) == hooks
    lcel().invoke("Where?")
    assert keeper.only.record.workflow == "again"


def test_a_handler_in_the_call_captures_it_alone(keeper, recorder, installed):
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(recorder, workflow="own")]})
    assert keeper.only.record.workflow == "own"


def test_a_handler_of_another_recorder_captures_it_alone(keeper, installed):
    other = type(keeper)()
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(Recorder(other))]})
    assert (other.only.record.answer, keeper.runs) == (ANSWER, [])


def test_uninstrument_and_again(keeper, recorder, installed):
    uninstrument()
    uninstrument()
    lcel().invoke("Where?")
    assert (keeper.begun, is_instrumented()) == (0, False)
    instrument(recorder)
    lcel().invoke("Where?")
    assert (keeper.begun, is_instrumented()) == (1, True)


def test_a_run_that_is_open_goes_on(keeper, recorder, installed):
    stream = lcel().stream("Where?")
    next(stream)
    uninstrument()
    list(stream)
    assert (keeper.only.record.answer, recorder.open_runs) == (ANSWER, 0)


def test_an_argument_that_is_none_is_said(recorder):
    with pytest.raises(TypeError, match="wrkflow"):
        instrument(recorder, wrkflow="support")
    assert not is_instrumented()
