"""LlamaIndex: the process's one handler keeps nothing of a run that has ended, however it ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest
from llama_index.core.callbacks import CallbackManager

from ragtrace.testing.plan import Gate, PlannedFailure, plan_of
from ragtrace_llamaindex import instrumented, tracer
from ragtrace_llamaindex.handlers import tracer as spans
from tests.conformance.llamaindex import engine
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
    """One application of each kind, for as many runs as are wanted; every way to end among them."""

    def __init__(self):
        self.recorder, self.listener = recorder()
        self.engines = {name: engine(plan) for name, plan in PLANS.items()}
        self.streaming = {name: engine(plan, is_streaming=True) for name, plan in PLANS.items()}
        self.gated = engine(GATED)
        self.ways = (
            self.fails, self.half_read, self.never_read, self.leaked, self.breaks, self.cancelled, self.at_once,
            self.asked, self.asked, self.streamed,
        )  # fmt: skip

    def __call__(self, count):
        for number in range(count):
            self.ways[number % len(self.ways)](number)
        gc.collect()
        self.recorder.sweep(now=1e12)
        # LlamaIndex's own: a list a run in each retriever's CallbackManager, with us and without (360 in 300 runs).
        for one in gc.get_objects():
            if type(one) is CallbackManager:
                one._trace_map.clear()

    def pieces(self, name="whole"):
        return self.streaming[name].query(PLANS[name].question).response_gen

    def asked(self, number):
        self.engines["whole"].query("whole?")

    def streamed(self, number):
        assert "".join(self.pieces()) == PLANS["whole"].answer

    def fails(self, number):
        name = ("no retriever", "no reranker", "no model")[number // 10 % 3]
        with contextlib.suppress(PlannedFailure):
            self.engines[name].query(PLANS[name].question)

    def half_read(self, number):
        pieces = self.pieces()
        next(pieces)
        del pieces

    def never_read(self, number):
        self.pieces()

    def leaked(self, number):
        pieces = self.pieces()
        next(pieces)
        self.recorder.sweep(now=1e12)  # the time limit ends it; the reader lets go of it later
        del pieces

    def breaks(self, number):
        with contextlib.suppress(PlannedFailure):
            list(self.pieces("no model"))

    def cancelled(self, number):
        async def one():
            task = asyncio.ensure_future(self.gated.aquery("gated?"))
            await GATED.gate.reached.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        GATED.gate.__init__()
        asyncio.run(one())

    def at_once(self, number):
        async def three():
            await asyncio.gather(*(self.engines["whole"].aquery("whole?") for _ in range(3)))

        asyncio.run(three())


@pytest.fixture
def some(monkeypatch):
    monkeypatch.setattr(spans._buried, "limit", 32)  # so that what is bounded is full before the first count
    made = Runs()
    with instrumented(made.recorder):
        yield made


def test_a_thousand_runs_retain_nothing(some):
    growth(some).check()
    assert (len(spans), spans.takers, spans._unstarted, spans._lazy) == (0, {}, {}, {})
    assert some.recorder.open_runs == 0
    assert some.listener.begun == some.listener.ended > 1_200


@pytest.mark.parametrize("leak", ["an id a run", "streams that are left", "failed runs"])
def test_a_planted_leak_is_seen(some, monkeypatch, leak):
    kept = []
    kind = tracer.Tracer
    whole = {name: getattr(kind, name) for name in ("_finish", "_cut_short", "dropped")}
    if leak == "an id a run":
        monkeypatch.setattr(
            kind,
            "_finish",
            lambda self, tree, *rest: (kept.append(len(kept) + 10**9), whole["_finish"](self, tree, *rest)),
        )
    elif leak == "streams that are left":
        monkeypatch.setattr(
            kind, "_cut_short", lambda self, tree: (kept.append(tree), whole["_cut_short"](self, tree))
        )
    else:
        monkeypatch.setattr(
            kind,
            "dropped",
            lambda self, id_, error: (kept.append([id_, error]), whole["dropped"](self, id_, error)),
        )
    with pytest.raises(AssertionError):
        growth(some, SOME_RUNS if leak == "an id a run" else FEWER_RUNS).check()
    assert kept


def test_a_tree_that_is_not_forgotten_is_seen(some, monkeypatch):
    monkeypatch.setattr(tracer.Tracer, "_forget", lambda self, tree, *, is_late_expected=False: None)
    try:
        with pytest.raises(AssertionError):
            growth(some, FEWER_RUNS).check()
    finally:
        for part in (spans.spans, spans.takers, spans._unstarted, spans._lazy):
            part.clear()
