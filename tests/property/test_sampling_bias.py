"""Pressure and forced scoring leave the weighted mean unbiased, and its interval covers the truth.

The world of a day: 10 traces a second; in 8 peak hours 80 % of the answers are good, 95 % otherwise; 5 % of the runs
are errors (no good answer), of which those not drawn are forced. The scorer keeps up with 5 % of the traffic off-peak
and with 1 % at the peak, where something else needs its model. A thousand days, each minute by minute: the probability
of a minute comes from the real `Pressure`, the sums are those that leave the library, the draws are binomial; that the
real draw is a fair coin is shown beside it.
"""

from __future__ import annotations

import math

import numpy as np

from ragtrace.model import RagRecord
from ragtrace.sampling import Load, Pressure, Rates, Sampler
from ragtrace.telemetry import Window

DAYS, MINUTES, PER_MINUTE = 1_000, 1_440, 600
P, ERRORS = 0.05, 0.05
PEAK = range(9 * 60, 17 * 60)
SERVED = {True: P / 5 * PER_MINUTE, False: P * 1.2 * PER_MINUTE}


def good_at(minute):
    return 0.80 if minute in PEAK else 0.95


TRUTH = (1 - ERRORS) * sum(good_at(minute) for minute in range(MINUTES)) / MINUTES


def probabilities():
    """Return the probability of each minute of a day, as the real pressure sets it; and the longest queue."""
    now, size, served = 0.0, 0.0, 0.0
    pressure = Pressure(lambda: Load(size=size, capacity=2_048, served=int(served)), clock=lambda: now)
    found, longest = [], 0.0
    for minute in range(MINUTES):
        now = minute * 60.0
        p = P * pressure.factor(P)
        for _ in range(PER_MINUTE - 1):
            pressure.factor(P)
        size += p * PER_MINUTE
        done = min(size, SERVED[minute in PEAK])
        size, served = size - done, served + done
        longest = max(longest, size)
        found.append(p)
    return np.array(found), longest


def window_of(*sums):
    """Return the window of a day, from its sums: scores of a thousand days one by one would take minutes."""
    window = Window(86_400.0, 0.0, 1.0)
    window._slots.append([0.0, *map(float, sums), 0.0, 0.0])
    return window


def test_the_weighted_mean_is_right_on_a_thousand_days():
    p, longest = probabilities()
    assert min(p) < 0.012  # there was pressure
    assert max(p) == P
    assert longest < 600
    chance = np.random.default_rng(7)
    is_peak = np.array([minute in PEAK for minute in range(MINUTES)])
    rate = np.where(is_peak, 0.80, 0.95) * (1 - ERRORS)
    offered = chance.poisson(PER_MINUTE, (DAYS, MINUTES))
    drawn = chance.binomial(offered, p)
    good = chance.binomial(drawn, rate)
    w = 1 / p
    w_all, w_good, w2_all, w2_good = drawn @ w, good @ w, drawn @ w**2, good @ w**2
    read = [window_of(*sums).read(0.0) for sums in zip(w_all, w_good, w2_all, w2_good, w2_good, strict=True)]
    means = np.array([one.mean for one in read])
    covered = [one.low <= TRUTH <= one.high for one in read]
    unweighted = good.sum(1) / drawn.sum(1)
    assert (w_all**2 / w2_all >= 400).all()
    assert abs(means.mean() - TRUTH) < 0.001
    assert np.abs(means - TRUTH).max() < 0.03
    assert 0.93 <= np.mean(covered) <= 0.97, np.mean(covered)
    assert abs(unweighted.mean() - TRUTH) > 0.01  # what an unweighted mean would have shown


def test_the_draw_is_a_fair_coin_and_forced_ones_are_apart():
    sampler = Sampler(Rates(rate=P, metrics={"nuggets": 0.01}))
    seen = {"random": 0, "forced": 0, "none": 0}
    nuggets = 0
    n = 40_000
    for number in range(n):
        record = RagRecord(id="1", trace_id=f"{number:032x}", outcome="error" if number % 20 == 0 else "answered")
        draw = sampler.decide(record, ("faithfulness", "nuggets"))
        seen[draw.decision] += 1
        if draw.decision == "random":
            assert draw.rates["faithfulness"] == P
            nuggets += "nuggets" in draw.rates
    assert abs(seen["random"] - n * P) < 4 * math.sqrt(n * P)
    assert abs(nuggets - n * 0.01) < 4 * math.sqrt(n * 0.01)
    assert seen["forced"] <= 0.3 / 0.7 * seen["random"] + 10
    assert seen["forced"] > 0.2 * seen["random"]
