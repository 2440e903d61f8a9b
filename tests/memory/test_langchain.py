"""LangChain: a long-lived handler keeps nothing of a run that has ended, however it ended."""

from __future__ import annotations

import pytest

from ragtrace_langchain import RagtraceHandler, open_runs
from ragtrace_langchain.open_runs import runs_of
from tests.conformance.langchain import LcelApplication
from tests.memory import retained
from tests.memory.retained import FEWER_RUNS, GATED, PLANS, SOME_RUNS, growth

pytestmark = pytest.mark.slow


class Runs(retained.Runs):
    def __init__(self, handler=None):
        super().__init__()
        self.config = {"callbacks": [handler(self.recorder) if handler else RagtraceHandler(self.recorder)]}
        self.chain = LcelApplication().chain([*PLANS.values(), GATED])

    def ask(self, name):
        self.chain.invoke({"question": f"{name}?"}, self.config)

    def pieces(self, name="whole"):
        return self.chain.stream({"question": f"{name}?"}, self.config)

    async def ask_gated(self):
        await self.chain.ainvoke({"question": "gated?"}, self.config)

    def at_once(self, number):
        self.chain.batch([{"question": "whole?"}] * 3, self.config)


@pytest.fixture(autouse=True)
def _bounds_are_reached_early(monkeypatch):
    monkeypatch.setattr(open_runs, "MAX_BURIED", 32)


def test_a_thousand_runs_retain_nothing():
    some = Runs()
    growth(some).check()
    assert (len(runs_of(some.recorder)), some.recorder.open_runs) == (0, 0)
    assert some.listener.begun == some.listener.ended > 1_200


class KeepsAnId(RagtraceHandler):
    """One integer a run is kept."""

    kept: list = []  # noqa: RUF012 - the leak

    def on_chain_end(self, outputs, *, run_id, parent_run_id=None, **kwargs):
        if parent_run_id is None:
            self.kept.append(run_id.int)
        super().on_chain_end(outputs, run_id=run_id, **kwargs)


class KeepsFailedOnes(RagtraceHandler):
    """An error's node is not taken off the map: as ``order_map`` of LangChain's own tracer is not."""

    kept: dict = {}  # noqa: RUF012 - the leak

    def on_chain_error(self, error, *, run_id, **kwargs):
        self.kept[run_id] = [self._runs.get(run_id)]
        super().on_chain_error(error, run_id=run_id, **kwargs)


@pytest.mark.parametrize(("leak", "count"), [(KeepsAnId, SOME_RUNS), (KeepsFailedOnes, FEWER_RUNS)])
def test_a_planted_leak_is_seen(leak, count):
    with pytest.raises(AssertionError):
        growth(Runs(leak), count).check()
    leak.kept.clear()


def test_events_that_stay_on_the_map_are_seen(monkeypatch):
    monkeypatch.setattr(open_runs.RunMap, "pop_open", open_runs.RunMap.opened)
    with pytest.raises(AssertionError):
        growth(Runs(), FEWER_RUNS).check()
