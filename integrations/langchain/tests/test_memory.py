"""Nothing is kept of runs that have ended."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import nullcontext

import pytest

from integrations.langchain.tests.parts import lcel
from ragtrace.capture import Recorder
from ragtrace_langchain import RagtraceHandler
from ragtrace_langchain.open_runs import MAX_BURIED, RunMap


class Forgetful:
    """A listener that keeps nothing, so that what is kept is the handler's."""

    def on_start(self, workflow, started_ns):
        return self

    def on_end(self, root, ended):
        return None

    trace_id = "0" * 32
    span_id = "0" * 16


def own():
    """Return how many objects of ours there are, by type."""
    found = (type(one) for one in gc.get_objects())
    return Counter(kind.__qualname__ for kind in found if kind.__module__.startswith("ragtrace"))


def test_buried_ids_are_bounded():
    runs = RunMap()
    for number in range(5 * MAX_BURIED):
        runs.bury(number)
    assert runs.is_buried(5 * MAX_BURIED - 1)
    assert not runs.is_buried(0)
    assert len(runs._buried) <= 2 * MAX_BURIED + 1


def test_a_swept_tree_leaves_the_map_with_the_next_roots():
    recorder = Recorder(Forgetful())
    handler = RagtraceHandler(recorder)
    config = {"callbacks": [handler]}
    leaked = [lcel().stream("?", config) for _ in range(20)]
    for stream in leaked:
        next(stream)
    assert len(handler._runs) >= 20
    recorder.sweep(now=1e12)
    for _ in range(20):
        lcel().invoke("?", config)
    assert len(handler._runs) == 0


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_run_that_has_ended_is_freed_without_the_garbage_collector(is_joined):
    recorder = Recorder(Forgetful())
    config = {"callbacks": [RagtraceHandler(recorder)]}
    gc.disable()
    try:
        for number in range(5):
            with recorder.start(query="?") if is_joined else nullcontext():
                lcel().invoke("?", config)
            if not number:
                before = own()  # with what is made once in a process
        assert own() == before
    finally:
        gc.enable()
