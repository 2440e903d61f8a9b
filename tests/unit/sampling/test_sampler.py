"""Rules, the rates of metrics, and a pressure that leaves nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from ragtrace.sampling import Load, Pressure, Rates, Rule, Sampler
from tests import make

METRICS = ("faithfulness", "nuggets")


def decided(sampler, n=1_000, **facts):
    draws = [sampler.decide(make.record(n=number, **facts), METRICS) for number in range(n)]
    return Counter((draw.decision, draw.reason, draw.probability) for draw in draws)


def test_a_rule_of_rate_0_scores_nothing_and_the_others_go_on():
    rates = Rates(rate=1.0, metrics={"nuggets": 0.5}, rules=(Rule(rate=0.0, workflow="healthcheck"),))
    sampler = Sampler(rates)
    assert decided(sampler, workflow="healthcheck") == {("none", "not_sampled", 0.0): 1_000}
    assert sampler.decide(make.record(workflow="healthcheck", outcome="error"), METRICS).decision == "none"
    assert decided(sampler, workflow="shop") == {("random", None, 1.0): 1_000}


def test_a_rule_of_rate_0_of_a_rate_of_0():
    sampler = Sampler(Rates(rate=0.0, rules=(Rule(rate=0.0),)))
    assert decided(sampler) == {("none", "not_sampled", 0.0): 1_000}


@pytest.mark.parametrize(("rate", "own", "expected"), [(0.5, 0.2, 0.4), (0.25, 0.1, 0.1), (1.0, 0.8, 1.0)])
def test_a_rule_scales_the_rates_of_metrics_alike(rate, own, expected):
    rates = Rates(rate=0.25, metrics={"nuggets": own}, rules=(Rule(rate=rate, workflow="a"),))
    found = [Sampler(rates).decide(make.record(n=number, workflow="a"), METRICS).rates for number in range(500)]
    assert {one["nuggets"] for one in found if "nuggets" in one} == {expected}
    assert {one["faithfulness"] for one in found if "faithfulness" in one} == {rate}


@pytest.mark.parametrize("rate", [1.0, 0.05, 0.0005])
def test_a_pressure_that_leaves_nothing_drops_and_says_so(rate):
    now = [0.0]
    pressure = Pressure(lambda: Load(size=2_048, capacity=2_048, served=0), clock=lambda: now[0])
    sampler = Sampler(Rates(rate=rate), pressure=pressure)
    decided(sampler)
    now[0] = 61.0
    assert decided(sampler) == {("dropped", "pressure", 0.0): 1_000}


def test_a_rate_of_0_is_no_pressure():
    now = [0.0]
    pressure = Pressure(lambda: Load(size=2_048, capacity=2_048, served=0), clock=lambda: now[0])
    pressure.factor(1_000.0)
    now[0] = 61.0
    sampler = Sampler(Rates(rate=0.0), pressure=pressure)
    assert decided(sampler) == {("none", "not_sampled", 0.0): 1_000}


def held(load):
    """A sampler whose pressure has seen one window, and was told of this load."""
    now = [0.0]
    pressure = Pressure(lambda: load, clock=lambda: now[0])
    pressure.factor(1_000.0)
    now[0] = 61.0
    return pressure


NO_MONEY = Load(size=0, capacity=2_048, served=10_000, affordable=0.0)
NO_ROOM = Load(size=2_048, capacity=2_048, served=0)


@pytest.mark.parametrize(
    ("load", "reason", "cause"),
    [(NO_MONEY, "budget_exceeded", "budget_exceeded"), (NO_ROOM, "pressure", "queue_full")],
)
def test_what_cannot_be_drawn_is_told_for_each_metric_that_was_wanted(load, reason, cause):
    sampler = Sampler(Rates(rate=1.0, metrics={"nuggets": 0.0}), pressure=held(load))
    draw = sampler.decide(make.record(), METRICS, seen=0.25)
    assert (draw.decision, draw.reason) == ("dropped", reason)
    assert (dict(draw.undrawn), draw.undrawn_for) == ({"faithfulness": 0.25}, cause)


def test_a_forced_run_is_undrawn_in_the_random_stratum_all_the_same():
    draw = Sampler(Rates(rate=1.0), pressure=held(NO_MONEY)).decide(make.record(outcome="error"), METRICS)
    assert (draw.decision, set(draw.undrawn)) == ("forced", set(METRICS))


def test_what_is_drawn_or_left_to_chance_is_stood_for_by_weights():
    sampler = Sampler(Rates(rate=0.5), pressure=held(Load(size=0, capacity=2_048, served=10**6, affordable=50.0)))
    draws = [sampler.decide(make.record(n=number), METRICS) for number in range(400)]
    assert {draw.decision for draw in draws} == {"random", "none"}
    (probability,) = {draw.probability for draw in draws}
    assert probability == pytest.approx(0.5 * 50 / 1_000, rel=0.02)
    assert not any(draw.undrawn for draw in draws)
