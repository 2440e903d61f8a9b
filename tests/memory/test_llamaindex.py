"""LlamaIndex: the process's one handler keeps nothing of a run that has ended, however it ended."""

from __future__ import annotations

import asyncio
import gc

import pytest
from llama_index.core.callbacks import CallbackManager

from ragtrace_llamaindex import instrumented, tracer
from ragtrace_llamaindex.instrumentation import tracer as spans
from tests.conformance.llamaindex import engine
from tests.memory import retained
from tests.memory.retained import FEWER_RUNS, GATED, PLANS, SOME_RUNS, growth

pytestmark = pytest.mark.slow


class Runs(retained.Runs):
    def __init__(self):
        super().__init__()
        self.engines = {name: engine(plan) for name, plan in PLANS.items()}
        self.streaming = {name: engine(plan, is_streaming=True) for name, plan in PLANS.items()}
        self.gated = engine(GATED)

    def __call__(self, count):
        super().__call__(count)
        # LlamaIndex's own: a list a run in each retriever's CallbackManager, with us and without (360 in 300 runs).
        for one in gc.get_objects():
            if type(one) is CallbackManager:
                one._trace_map.clear()

    def ask(self, name):
        self.engines[name].query(PLANS[name].question)

    def pieces(self, name="whole"):
        return self.streaming[name].query(PLANS[name].question).response_gen

    async def ask_gated(self):
        await self.gated.aquery("gated?")

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
    name, keep = {
        "an id a run": ("_finish", lambda _: len(kept) + 10**9),
        "streams that are left": ("_cut_short", lambda given: given[0]),
        "failed runs": ("dropped", list),
    }[leak]
    whole = getattr(tracer.Tracer, name)

    def leaking(self, *given):
        kept.append(keep(given))
        return whole(self, *given)

    monkeypatch.setattr(tracer.Tracer, name, leaking)
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
