"""Nothing is kept of runs that have ended."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from integrations.llamaindex.tests.parts import Broken, Faq, Llm, engine
from ragtrace.capture import Recorder, finished_run
from ragtrace.capture.values import Doc
from ragtrace_llamaindex import instrumented
from ragtrace_llamaindex.instrumentation import tracer
from ragtrace_llamaindex.tracer import MAX_BURIED, MAX_UNSTARTED, Tracer


class Forgetful:
    """A listener that keeps nothing, so that what is kept is the integration's."""

    trace_id = "0" * 32
    span_id = "0" * 16

    def on_start(self, workflow, started_ns):
        return self

    def on_end(self, root, ended):
        finished_run(ended)


def tracked():
    gc.collect()
    return Counter(f"{type(one).__module__}.{type(one).__name__}" for one in gc.get_objects())


def some(n):
    whole, broken, streaming = engine(), engine(Broken()), engine(streaming=True)
    failing = engine(llm=Llm(error=RuntimeError("no")), streaming=True)
    for i in range(n):
        if i % 10 == 0:
            with pytest.raises(ConnectionError):
                broken.query("?")
        elif i % 10 == 1:
            next(streaming.query("?").response_gen)
        elif i % 10 == 2:
            streaming.query("?")
        elif i % 10 == 3:
            with pytest.raises(RuntimeError):
                list(failing.query("?").response_gen)
        elif i % 10 == 4:
            str(streaming.query("?"))
        else:
            whole.query("?")


def test_a_run_is_freed_without_a_garbage_collection():
    recorder = Recorder(Forgetful())
    with instrumented(recorder):
        some(20)
        gc.collect()
        gc.disable()
        try:
            before = Counter(
                type(one).__name__ for one in gc.get_objects() if str(type(one).__module__).startswith("ragt")
            )
            some(50)
            after = Counter(
                type(one).__name__ for one in gc.get_objects() if str(type(one).__module__).startswith("ragt")
            )
        finally:
            gc.enable()
    assert (after - before)["OpenRun"] <= 10  # a failure's traceback may be a cycle of the application's own
    assert (after - before)["Passage"] <= 80


def test_buried_spans_are_bounded():
    own = Tracer(lambda: None)
    for number in range(5 * MAX_BURIED):
        own._buried.add(str(number))
    assert str(5 * MAX_BURIED - 1) in own._buried
    assert "0" not in own._buried
    assert len(own._buried) <= 2 * MAX_BURIED + 1


def test_outermost_spans_that_never_end_are_bounded(recorder):
    import inspect

    from ragtrace.capture import Defaults

    own = Tracer(lambda: Defaults(recorder=recorder))
    bound = inspect.signature(lambda query: None).bind("Where?")
    for number in range(3 * MAX_UNSTARTED):
        own.entered(f"f-{number:036d}", bound, None, None)
    assert len(own) == len(own._unstarted) == MAX_UNSTARTED


def test_swept_runs_leave_the_map(keeper, recorder):
    held = [engine(streaming=True).query("?").response_gen for _ in range(20)]
    for pieces in held:
        next(pieces)
    assert len(tracer) > 20
    recorder.sweep(now=1e12)
    assert len(tracer) == 0
    assert {run.record.outcome for run in keeper.runs} == {"partial"}


def test_the_recorder_s_own_limit_ends_the_longest_idle(loses):
    from ragtrace.capture import Limits

    recorder = Recorder(Forgetful(), limits=Limits(open_runs=3))
    with instrumented(recorder):
        held = [engine(Faq(size=1), [], streaming=True).query("?").response_gen for _ in range(10)]
        for pieces in held:
            next(pieces, None)
        assert recorder.open_runs == 3
        del held, pieces
    gc.collect()
    assert (recorder.open_runs, len(tracer)) == (0, 0)


class Waiting(Forgetful):
    """A listener that looks at the events of a run before they are read."""

    def on_end(self, root, ended):
        self.events = [event for event, _ in ended._waiting]


def test_what_a_retriever_s_own_function_found_is_kept_once():
    listener = Waiting()
    with instrumented(Recorder(listener)):
        engine().query("?")
    assert [len(one.data) for one in listener.events if one.kind == "search" and one.ended_ns] == [6]
    offered = [part for one in listener.events if one.kind == "offer" for part in one.data.values()]
    assert not any(type(part) is list and type(part[0]) is Doc for part in offered)
