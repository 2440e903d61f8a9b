"""LangChain: a long-lived handler keeps nothing of a run that has ended, however it ended."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ragtrace.testing.plan import Gate, PlannedFailure, plan_of
from ragtrace_langchain import RagtraceHandler, run_state
from ragtrace_langchain.run_state import runs_of
from tests.conformance.langchain import LcelApplication
from tests.memory.retained import FEWER_RUNS, SOME_RUNS, growth, recorder

pytestmark = pytest.mark.slow

CHOICE = ((3, 0.9), (1, 0.8))
PLANS = {
    name: plan_of(4, f"{name}-", choice=CHOICE, question=f"{name}?", **facts)
    for name, facts in {
        "whole": {},
        "no retriever": {"fails": "retriever"},
        "no reranker": {"fails": "reranker"},
        "no model": {"fails": "model"},
    }.items()
}
GATED = plan_of(4, "gated-", choice=CHOICE, question="gated?", gate=Gate())


class Runs:
    """One application and one handler, for as many runs as are wanted; every tenth kind of end among them."""

    def __init__(self, handler=None):
        self.recorder, self.listener = recorder()
        self.config = {"callbacks": [handler(self.recorder) if handler else RagtraceHandler(self.recorder)]}
        self.chain = LcelApplication().chain([*PLANS.values(), GATED])
        self.ways = (
            self.fails, self.half_read, self.never_read, self.leaked, self.breaks, self.cancelled, self.batch,
            self.asked, self.asked, self.streamed,
        )  # fmt: skip

    def __call__(self, count):
        for number in range(count):
            self.ways[number % len(self.ways)](number)
        self.recorder.sweep(now=1e12)

    def given(self, name="whole"):
        return {"question": f"{name}?"}

    def asked(self, number):
        self.chain.invoke(self.given(), self.config)

    def streamed(self, number):
        assert "".join(self.chain.stream(self.given(), self.config)) == PLANS["whole"].answer

    def fails(self, number):
        name = ("no retriever", "no reranker", "no model")[number // 10 % 3]
        with contextlib.suppress(PlannedFailure):
            self.chain.invoke(self.given(name), self.config)

    def half_read(self, number):
        stream = self.chain.stream(self.given(), self.config)
        next(stream)
        del stream

    def never_read(self, number):
        self.chain.stream(self.given(), self.config)

    def leaked(self, number):
        stream = self.chain.stream(self.given(), self.config)
        next(stream)
        self.recorder.sweep(now=1e12)  # the time limit ends it; the reader lets go of it later
        del stream

    def breaks(self, number):
        with contextlib.suppress(PlannedFailure):
            list(self.chain.stream(self.given("no model"), self.config))

    def cancelled(self, number):
        async def one():
            task = asyncio.ensure_future(self.chain.ainvoke(self.given("gated"), self.config))
            await GATED.gate.reached.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        GATED.gate.__init__()
        asyncio.run(one())

    def batch(self, number):
        self.chain.batch([self.given()] * 3, self.config)


@pytest.fixture(autouse=True)
def _bounds_are_reached_early(monkeypatch):
    monkeypatch.setattr(run_state, "MAX_BURIED", 32)


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
    monkeypatch.setattr(run_state.RunMap, "pop_open", run_state.RunMap.opened)
    with pytest.raises(AssertionError):
        growth(Runs(), FEWER_RUNS).check()
