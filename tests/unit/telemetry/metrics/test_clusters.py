"""Sums over clusters: exact, never falling, bounded in number and time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.stats import cluster_sums
from ragtrace.telemetry import ClusterSums

SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 50), st.integers(0, 9)), min_size=1, max_size=40)


@given(SCORES)
def test_increments_add_up_to_the_sums_over_clusters(scores: list[tuple[float, float, int]]) -> None:
    sums = ClusterSums(lambda: 0.0)
    parts = [sums.join("series", cluster, x, w) for x, w, cluster in scores]
    assert min(min(part) for part in parts) >= 0.0
    values, weights, clusters = map(list, zip(*scores, strict=True))
    expected = cluster_sums(values, clusters, weights)
    assert np.sum(parts, axis=0) == pytest.approx(expected[2:])


def test_series_are_kept_apart() -> None:
    sums = ClusterSums(lambda: 0.0)
    assert sums.join("mrr", "session", 1.0, 1.0) == sums.join("p_at_k", "session", 1.0, 1.0) == (1.0, 1.0, 1.0)


def test_a_cluster_is_forgotten_a_lifetime_after_its_first_score_however_often_it_comes() -> None:
    now = 0.0
    sums = ClusterSums(lambda: now, lifetime_s=100.0)
    found = []
    for second in range(0, 250, 10):
        now = float(second)
        found.append(sums.join("series", "hot question", 1.0, 1.0).w2)
    assert found == [1.0 + 2.0 * (place % 10) for place in range(25)]


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    sums = ClusterSums(lambda: 0.0, most=100)
    for number in range(1_000):
        sums.join("series", number, 1.0, 1.0)
    assert len(sums) == 100
    again = {number: sums.join("series", number, 1.0, 1.0).w2 for number in (999, 950, 1)}
    assert again == {999: 3.0, 950: 3.0, 1: 1.0}


def test_no_text_of_a_cluster_stays() -> None:
    sums = ClusterSums(lambda: 0.0)
    sums.join("series", "what is my salary", 1.0, 1.0)
    kept = defaultdict(int)
    for key, values in sums._known.items():
        kept[type(key)] += 1
        assert all(type(value) is float for value in values)
    assert kept == {int: 1}
