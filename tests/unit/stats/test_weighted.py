"""Weighted sums: the formulas of MONITORING.md 3, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.stats.intervals import Interval
from ragtrace.stats.weighted import VARIANCE_FLOOR, WeightedSums

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 50)), min_size=1, max_size=40)


def sums_of(pairs: list[tuple[float, float]]) -> WeightedSums:
    sums = WeightedSums()
    for x, weight in pairs:
        sums.add(x, weight, is_low=x < 0.8)
    return sums


@given(PAIRS)
def test_the_formulas_agree_with_their_definitions(pairs: list[tuple[float, float]]) -> None:
    sums = sums_of(pairs)
    x, w = np.array(pairs).T
    mean = np.average(x, weights=w)
    assert sums.n == len(pairs)
    assert sums.mean == pytest.approx(mean)
    assert sums.n_eff == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert sums.variance_of_mean == pytest.approx(((w * (x - mean)) ** 2).sum() / w.sum() ** 2, abs=1e-12)
    assert sums.low_w == pytest.approx(w[x < 0.8].sum())


@given(PAIRS, st.floats(0.1, 20))
def test_only_the_ratio_of_weights_matters(pairs: list[tuple[float, float]], factor: float) -> None:
    once, scaled = sums_of(pairs), sums_of([(x, w * factor) for x, w in pairs])
    assert scaled.mean == pytest.approx(once.mean)
    assert scaled.n_eff == pytest.approx(once.n_eff)
    assert scaled.interval() == pytest.approx(once.interval(), nan_ok=False) or once.n < 2


def test_equal_weights_give_the_plain_variance_with_divisor_n() -> None:
    sums = sums_of([(x, 1.0) for x in (0.2, 0.4, 0.9, 1.0)])
    assert sums.variance_of_mean == pytest.approx(np.var([0.2, 0.4, 0.9, 1.0]) / 4)


def test_without_scores_nothing_is_claimed() -> None:
    sums = WeightedSums()
    assert (sums.mean, sums.variance_of_mean, sums.n_eff) == (None, None, 0.0)
    assert sums.interval() == Interval(None, None, None)
    sums.add(0.5)
    assert sums.interval() == Interval(0.5, None, None)


def test_a_perfect_window_does_not_claim_certainty() -> None:
    mean, low, high = sums_of([(1.0, 1.0)] * 10).interval()
    assert (mean, high) == (1.0, 1.0)
    assert low == pytest.approx(1.0 - 1.959963984540054 * math.sqrt(VARIANCE_FLOOR / 10))


def test_the_weighted_mean_undoes_unequal_sampling_and_its_interval_covers() -> None:
    """The bias of MONITORING.md 5: bad traces always kept, the others at .1."""
    rng = np.random.default_rng(2)
    naive, weighted, hits = [], [], 0
    for _ in range(200):
        is_bad = rng.random(4_000) < 0.1
        scores = np.clip(np.where(is_bad, rng.normal(0.6, 0.2, 4_000), rng.normal(0.9, 0.1, 4_000)), 0, 1)
        probability = np.where(is_bad, 1.0, 0.1)
        kept = rng.random(4_000) < probability
        sums = sums_of(list(zip(scores[kept], 1 / probability[kept], strict=True)))
        truth = scores.mean()
        naive.append(scores[kept].mean() - truth)
        assert sums.mean is not None
        weighted.append(sums.mean - truth)
        _, low, high = sums.interval()
        assert low is not None
        assert high is not None
        hits += low <= truth <= high
    assert np.mean(naive) < -0.1
    assert abs(np.mean(weighted)) < 0.002
    assert hits >= 184  # .92; the floor of the variance makes it wider than .95
