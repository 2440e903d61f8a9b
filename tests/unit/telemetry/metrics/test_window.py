"""The window of the gauges: its formulas, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.semconv import SCORE_VARIANCE_FLOOR
from ragtrace.telemetry.metrics.series import Window, WindowMean

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 50)), min_size=1, max_size=40)


def read(pairs: list[tuple[float, float]]) -> WindowMean:
    window = Window(60.0, 0.0, 1.0)
    for x, weight in pairs:
        window.add(0.0, x, weight, is_pass=x >= 0.8)
    found = window.read(0.0)
    assert found is not None
    return found


@given(PAIRS)
def test_the_formulas_agree_with_their_definitions(pairs: list[tuple[float, float]]) -> None:
    found = read(pairs)
    x, w = np.array(pairs).T
    mean = np.average(x, weights=w)
    n_eff = w.sum() ** 2 / (w**2).sum()
    variance_of_mean = ((w * (x - mean)) ** 2).sum() / w.sum() ** 2
    half = 1.96 * math.sqrt(max(n_eff * variance_of_mean, SCORE_VARIANCE_FLOOR) / n_eff)
    assert found.mean == pytest.approx(mean)
    assert (found.low, found.high) == pytest.approx((max(mean - half, 0.0), min(mean + half, 1.0)))
    assert found.passed == pytest.approx(w[x >= 0.8].sum() / w.sum())


@given(PAIRS, st.floats(0.1, 20))
def test_only_the_ratio_of_weights_matters(pairs: list[tuple[float, float]], factor: float) -> None:
    once, scaled = read(pairs), read([(x, w * factor) for x, w in pairs])
    assert (scaled.mean, scaled.low, scaled.high) == pytest.approx((once.mean, once.low, once.high))


def test_a_perfect_window_does_not_claim_certainty() -> None:
    found = read([(1.0, 1.0)] * 10)
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1.0 - 1.96 * math.sqrt(SCORE_VARIANCE_FLOOR / 10))


def test_the_weighted_mean_undoes_unequal_sampling_and_its_interval_covers() -> None:
    """Bad traces always kept, the others at .1."""
    rng = np.random.default_rng(2)
    naive, weighted, hits = [], [], 0
    for _ in range(200):
        is_bad = rng.random(4_000) < 0.1
        scores = np.clip(np.where(is_bad, rng.normal(0.6, 0.2, 4_000), rng.normal(0.9, 0.1, 4_000)), 0, 1)
        probability = np.where(is_bad, 1.0, 0.1)
        kept = rng.random(4_000) < probability
        found = read(list(zip(scores[kept], 1 / probability[kept], strict=True)))
        truth = scores.mean()
        naive.append(scores[kept].mean() - truth)
        weighted.append(found.mean - truth)
        hits += found.low <= truth <= found.high
    assert np.mean(naive) < -0.1
    assert abs(np.mean(weighted)) < 0.002
    assert hits >= 184  # .92; the floor of the variance makes it wider than .95


@pytest.mark.parametrize(
    ("low", "high", "values", "half"),
    [
        (0.0, 2_000.0, [3.0] * 40, 1.96 * 3 * math.sqrt(0.02 / 40)),  # it once was 0 to 557
        (0.0, 2_000.0, [2.0, 4.0] * 20, 1.96 * math.sqrt(1 / 40)),
        (-math.inf, math.inf, [0.3] * 10, 1.96 * 0.3 * math.sqrt(0.02 / 10)),
        (-1.0, 1.0, [0.5] * 10, 1.96 * 2 * math.sqrt(0.02 / 10)),
        (0.0, 2_000.0, [0.0] * 10, 0.0),
    ],
)
def test_a_wide_range_does_not_widen_the_interval(low, high, values, half) -> None:
    window = Window(60.0, low, high)
    for value in values:
        window.add(0.0, value, 5.0, is_pass=None)
    found, mean = window.read(0.0), float(np.mean(values))
    assert (found.low, found.high) == pytest.approx((max(mean - half, low), mean + half))


def test_it_slides() -> None:
    window = Window(60.0, 0.0, 1.0)
    for second in range(120):
        window.add(float(second), float(second >= 60), 1.0, is_pass=None)
    assert window.read(119.0).mean == 1.0
    assert window.read(119.0).low == pytest.approx(1 - 1.96 * math.sqrt(0.02 / 60)), "of sixty scores"
