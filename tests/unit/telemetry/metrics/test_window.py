"""The window of the gauges: its formulas, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.stats import clustered_interval
from ragtrace.telemetry import ClusterSums, Window, WindowMean

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 50), st.integers(0, 9)), min_size=1, max_size=40)


def filled(window: Window, scores: list[tuple[float, float, object]]) -> Window:
    """Add scores with their weights and clusters."""
    sums = ClusterSums(lambda: 0.0)
    for x, weight, cluster in scores:
        window.add(0.0, x, weight, sums.join("series", cluster, x, weight), is_pass=x >= 0.8)
    return window


def alone(values: list[float], weight: float = 1.0) -> list[tuple[float, float, object]]:
    return [(x, weight, place) for place, x in enumerate(values)]


def read(scores: list[tuple[float, float, object]]) -> WindowMean:
    found = filled(Window(60.0, 0.0, 1.0), scores).read(0.0)
    assert found is not None
    return found


@given(PAIRS)
def test_the_window_has_the_interval_of_its_clusters(scores: list[tuple[float, float, int]]) -> None:
    found = read(scores)
    values, weights, clusters = map(list, zip(*scores, strict=True))
    expected = clustered_interval(values, clusters, weights)
    assert (found.mean, found.low, found.high) == pytest.approx(tuple(expected), abs=1e-6)
    passing = sum(w for x, w in zip(values, weights, strict=True) if x >= 0.8)
    assert found.passed == pytest.approx(passing / sum(weights))


def test_a_perfect_window_does_not_claim_certainty() -> None:
    found = read(alone([1.0] * 10))
    assert (found.mean, found.high) == (1.0, 1.0)
    assert 0.6 < found.low < 0.75


def test_a_session_of_twenty_turns_says_what_one_score_says() -> None:
    found = read([(0.9, 1.0, "session")] * 20)
    assert (found.mean, found.low, found.high) == (pytest.approx(0.9), 0.0, 1.0)


def test_the_weighted_mean_undoes_unequal_sampling_and_its_interval_covers() -> None:
    """Bad traces always kept, the others at .1."""
    rng = np.random.default_rng(2)
    naive, weighted, hits = [], [], 0
    for _ in range(200):
        is_bad = rng.random(4_000) < 0.1
        scores = np.clip(np.where(is_bad, rng.normal(0.6, 0.2, 4_000), rng.normal(0.9, 0.1, 4_000)), 0, 1)
        probability = np.where(is_bad, 1.0, 0.1)
        kept = rng.random(4_000) < probability
        places = range(int(kept.sum()))
        found = read(list(zip(scores[kept].tolist(), (1 / probability[kept]).tolist(), places, strict=True)))
        truth = scores.mean()
        naive.append(scores[kept].mean() - truth)
        weighted.append(found.mean - truth)
        hits += found.low <= truth <= found.high
    assert np.mean(naive) < -0.1
    assert abs(np.mean(weighted)) < 0.002
    assert hits >= 184


@pytest.mark.parametrize(
    ("low", "high", "values", "most"),
    [
        (0.0, 2_000.0, [3.0] * 40, 0.4),  # it once was 0 to 557
        (0.0, 2_000.0, [2.0, 4.0] * 20, 0.5),
        (-math.inf, math.inf, [0.3] * 10, 0.13),
        (-1.0, 1.0, [0.5] * 10, 0.2),
    ],
)
def test_a_wide_range_does_not_widen_the_interval(low, high, values, most) -> None:
    found, mean = filled(Window(60.0, low, high), alone(values, 5.0)).read(0.0), float(np.mean(values))
    assert (found.mean - found.low) == pytest.approx(found.high - found.mean)
    assert 0.0 < found.high - mean < most


def test_one_length_alone_has_no_bounds() -> None:
    found = filled(Window(60.0, 0.0, 2_000.0), alone([400.0])).read(0.0)
    assert (found.mean, found.low, found.high) == (400.0, None, None)


def test_it_slides() -> None:
    window = Window(60.0, 0.0, 1.0)
    sums = ClusterSums(lambda: 0.0)
    for second in range(120):
        x = float(second >= 60)
        window.add(float(second), x, 1.0, sums.join("series", second, x, 1.0), is_pass=None)
    assert window.read(119.0).mean == 1.0
    assert window.read(119.0).low == pytest.approx(clustered_interval([1.0] * 60).low), "of sixty scores"


def test_a_session_that_began_before_the_window_widens_it_and_never_narrows() -> None:
    window, sums = Window(60.0, 0.0, 1.0), ClusterSums(lambda: 0.0)
    rng = np.random.default_rng(4)
    scores = (rng.random(120) < 0.8).astype(float).tolist()
    for second, x in enumerate(scores):
        window.add(float(second), x, 1.0, sums.join("series", second % 20, x, 1.0), is_pass=None)
    found = window.read(119.0)
    exact = clustered_interval(scores[60:], [second % 20 for second in range(60)])
    assert found.mean == pytest.approx(exact.mean)
    assert found.high - found.low > exact.high - exact.low
