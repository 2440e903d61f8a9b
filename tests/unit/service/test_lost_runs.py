"""Runs that get no score at all are due and missing, with the weight of all traces that they stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ragtrace
from ragtrace import semconv
from ragtrace.ingest import AssembledTrace
from ragtrace.sampling import Load, Pressure
from ragtrace.service import TraceIntake
from tests.process.observing import ask, points
from tests.unit.service.test_traces_counted import configure, reader

__all__ = ["reader"]

FAITHFUL = (semconv.GEN_AI_EVALUATION_NAME, "faithfulness")


def weights(reader):
    """Due, and missing by outcome and reason, of faithfulness."""
    due = sum(w for about, w in points(reader, semconv.SCORE_DUE_W).items() if FAITHFUL in about)
    found = points(reader, semconv.SCORE_MISSING_W).items()
    missing = {
        (dict(about)[semconv.OUTCOME], dict(about)[semconv.REASON]): w
        for about, w in found
        if w and FAITHFUL in about
    }
    return due, missing


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (Load(size=0, capacity=2_048, served=0, affordable=0.0), "budget_exceeded"),
        (Load(size=2_048, capacity=2_048, served=0), "queue_full"),
    ],
)
def test_each_run_that_cannot_be_drawn_weighs_one(reader, load, reason):
    service = configure(reader, 0.5, metrics=["faithfulness", "factual_correctness"])
    now = [0.0]
    pressure = Pressure(lambda: load, clock=lambda: now[0])
    pressure.factor(1e9)
    now[0] = 61.0
    service.sampler._pressure = pressure
    ask(20)
    assert service.pipeline.drain(30)
    assert weights(reader) == (20.0, {("skipped", reason): 20.0})
    metrics = {
        dict(about)[semconv.GEN_AI_EVALUATION_NAME] for about, w in points(reader, semconv.SCORE_DUE_W).items() if w
    }
    assert metrics == {"faithfulness"}, "without a reference no factual_correctness is due"


def test_traces_that_a_receiver_dropped_for_room_count_with_the_next_one_read(reader):
    service = configure(reader, 0.5, metrics=["faithfulness"])
    units = TraceIntake(service)._units
    for number in range(3):
        assert units.units_of(AssembledTrace(trace_id=number.to_bytes(16), end="evicted")) == []
    assert weights(reader) == (0.0, {})
    service.sampler.rates = replace(service.sampler.rates, rate=1.0)  # the next one is drawn, at any rate
    ask()
    assert ragtrace.flush(30)
    due, missing = weights(reader)
    assert (due, missing) == (7.0, {("skipped", "queue_full"): 6.0})  # each let through stands for two
