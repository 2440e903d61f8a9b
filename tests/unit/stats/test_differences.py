"""Differences of means: bit by bit as written down, and intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats.differences import clustered_mean_ci, paired_difference, unpaired_difference
from ragtrace.stats.intervals import bootstrap_mean_ci


def test_paired_is_the_bootstrap_of_the_changes() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.uniform(size=(2, 40)).tolist()
    found = paired_difference(first, second, seed=3)
    expected = bootstrap_mean_ci([b - a for a, b in zip(first, second, strict=True)], seed=3)
    assert (found.value, found.low, found.high) == expected
    assert (found.n, found.n_units, found.is_paired) == ((40,), 40, True)


def test_unpaired_draws_the_first_side_and_then_the_second() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.uniform(size=30), rng.uniform(size=50)
    found = unpaired_difference(first.tolist(), second.tolist(), seed=5)
    draw = np.random.default_rng(5)
    means = -first[draw.integers(0, 30, (1000, 30))].mean(axis=1) + second[draw.integers(0, 50, (1000, 50))].mean(
        axis=1
    )
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])), abs=1e-12)
    assert found.n == (30, 50)


def test_pairs_that_go_together_have_the_narrower_interval() -> None:
    rng = np.random.default_rng(3)
    hard = rng.uniform(size=100)
    first, second = hard + rng.normal(0, 0.05, 100), hard + 0.05 + rng.normal(0, 0.05, 100)
    paired, unpaired = paired_difference(first, second), unpaired_difference(first, second)
    assert paired.value == pytest.approx(unpaired.value)
    assert paired.high - paired.low < (unpaired.high - unpaired.low) / 3
    assert (paired.is_significant, unpaired.is_significant) == (True, False)


def test_a_true_difference_of_nothing_is_called_one_about_one_time_in_twenty() -> None:
    rng = np.random.default_rng(4)
    calls = {"paired": 0, "unpaired": 0, "clustered": 0, "as if no clusters": 0}
    clusters = np.repeat(np.arange(30), 5)
    for seed in range(200):
        first, second = rng.uniform(size=(2, 60))
        calls["paired"] += paired_difference(first, second, n_resamples=400, seed=seed).is_significant
        calls["unpaired"] += unpaired_difference(first, second, n_resamples=400, seed=seed).is_significant
        change = np.repeat(rng.normal(size=30), 5) + rng.normal(0, 0.3, 150)
        zeros = np.zeros(150)
        calls["clustered"] += paired_difference(zeros, change, clusters, n_resamples=400, seed=seed).is_significant
        calls["as if no clusters"] += paired_difference(zeros, change, n_resamples=400, seed=seed).is_significant
    assert all(2 <= calls[name] <= 24 for name in ("paired", "unpaired", "clustered")), calls
    assert calls["as if no clusters"] > 60  # what clusters are for


@pytest.mark.parametrize(("units", "verdict"), [(2, None), (9, None), (10, True)])
def test_nothing_is_said_of_fewer_than_ten_units(units, verdict) -> None:
    zeros, ones, clusters = [0.0] * units, [0.5 + 0.01 * n for n in range(units)], list(range(units))
    for found in (
        paired_difference(zeros, ones),
        paired_difference(zeros * 3, ones * 3, clusters * 3),
        unpaired_difference(zeros, ones),
        unpaired_difference([0.0] * 50, ones),
        unpaired_difference([0.0] * 50, ones * 3, None, clusters * 3),
    ):
        assert (found.is_significant, found.to_json()["significant"], found.n_units) == (verdict, verdict, units)
        assert 0.0 < found.low < found.high


def test_clusters_of_one_are_no_clusters() -> None:
    values = [0.1, 0.5, 0.25, 1.0]
    assert clustered_mean_ci(values, "abcd") == bootstrap_mean_ci(values)
    assert clustered_mean_ci(values) == bootstrap_mean_ci(values)


def test_one_cluster_has_no_bounds() -> None:
    assert clustered_mean_ci([0.0, 1.0], ["a", "a"]) == (0.5, None, None)
    assert paired_difference([0.0, 0.0], [1.0, 1.0], ["a", "a"]).is_significant is None
    found = unpaired_difference([0.0, 1.0], [1.0, 1.0], None, ["a", "a"])
    assert (found.value, found.low, found.is_significant, found.n_units) == (0.5, None, None, 1)


def test_nothing_to_compare() -> None:
    assert paired_difference([], []) is None
    assert unpaired_difference([], [1.0]) is None
    assert unpaired_difference([1.0], []) is None
    assert paired_difference([0.0], [1.0]).to_json() == {
        "value": 1.0, "low": None, "high": None, "significant": None, "paired": True, "n": [1], "units": 1,
    }  # fmt: skip


def test_equal_sides_do_not_differ() -> None:
    found = paired_difference([0.1, 0.7, 0.3] * 4, [0.1, 0.7, 0.3] * 4)
    assert (found.value, found.low, found.high, found.is_significant) == (0.0, 0.0, 0.0, False)


@pytest.mark.parametrize("arguments", [([0.1], [0.1, 0.2]), ([0.1, 0.2], [0.1, 0.2], ["a"])])
def test_lists_that_do_not_fit_are_refused(arguments) -> None:
    with pytest.raises(ValueError, match="every"):
        paired_difference(*arguments)


def test_large_samples_are_drawn_in_blocks_that_change_nothing(monkeypatch) -> None:
    values, clusters = np.random.default_rng(6).uniform(size=60).tolist(), list(range(20)) * 3
    whole = clustered_mean_ci(values, clusters)
    monkeypatch.setattr("ragtrace.stats.intervals._BLOCK_CELLS", 70)
    assert clustered_mean_ci(values, clusters) == whole
