"""Differences of means: intervals that hold what they promise, over pairs, clusters and two samples."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats import clustered_interval, paired_difference, unpaired_difference


def test_pairs_that_go_together_have_the_narrower_interval() -> None:
    rng = np.random.default_rng(3)
    hard = rng.uniform(size=400) * 0.8
    first, second = hard + rng.normal(0, 0.02, 400), hard + 0.05 + rng.normal(0, 0.02, 400)
    paired = paired_difference(first.tolist(), second.tolist())
    unpaired = unpaired_difference(first.tolist(), second.tolist())
    assert paired.value == pytest.approx(unpaired.value)
    assert paired.high - paired.low < (unpaired.high - unpaired.low) / 3
    assert (paired.is_significant, unpaired.is_significant) == (True, True)
    assert (paired.n, paired.n_units, paired.is_paired) == ((400,), 400, True)
    assert (unpaired.n, unpaired.n_units, unpaired.is_paired) == ((400, 400), 400, False)


@pytest.mark.parametrize("n", [10, 30, 100])
def test_a_true_difference_of_nothing_is_called_one_at_most_one_time_in_twenty(n: int) -> None:
    rng = np.random.default_rng(4)
    calls = {"paired": 0, "unpaired": 0, "clustered": 0, "without ends": 0}
    for _ in range(400):
        first, second = (rng.random((2, n)) < 0.9).astype(float).tolist()
        turns = [x for x in first for _ in range(3)], [x for x in second for _ in range(3)]
        clusters = [place for place in range(n) for _ in range(3)]
        calls["paired"] += bool(paired_difference(first, second).is_significant)
        calls["unpaired"] += bool(unpaired_difference(first, second).is_significant)
        calls["clustered"] += bool(paired_difference(*turns, clusters).is_significant)
        many = (20 + rng.normal(size=(2, n))).tolist()
        calls["without ends"] += bool(paired_difference(*many, ends=None).is_significant)
    assert all(count <= 33 for count in calls.values()), calls  # three standard errors above .05 of 400 are 33


def test_without_their_clusters_turns_of_one_session_look_like_evidence() -> None:
    rng = np.random.default_rng(5)
    calls = {"clustered": 0, "as if no clusters": 0}
    clusters = [place for place in range(30) for _ in range(5)]
    for _ in range(200):
        first, second = ([x for x in side for _ in range(5)] for side in rng.random((2, 30)).tolist())
        calls["clustered"] += bool(paired_difference(first, second, clusters).is_significant)
        calls["as if no clusters"] += bool(paired_difference(first, second).is_significant)
    assert calls["clustered"] <= 20
    assert calls["as if no clusters"] > 60


@pytest.mark.parametrize(("units", "verdict"), [(2, None), (9, None), (10, True)])
def test_nothing_is_said_of_fewer_than_ten_units(units, verdict) -> None:
    zeros, ones, clusters = [0.0] * units, [0.9 + 0.01 * n for n in range(units)], list(range(units))
    for found in (
        paired_difference(zeros, ones),
        paired_difference(zeros * 3, ones * 3, clusters * 3),
        unpaired_difference(zeros, ones),
        unpaired_difference([0.0] * 50, ones),
        unpaired_difference([0.0] * 50, ones * 3, None, clusters * 3),
    ):
        assert (found.is_significant, found.to_json()["significant"], found.n_units) == (verdict, verdict, units)
        assert found.low < found.value


def test_one_cluster_leaves_every_difference_possible() -> None:
    paired = paired_difference([0.0, 0.0], [1.0, 1.0], ["a", "a"])
    assert (paired.value, paired.low, paired.high, paired.is_significant) == (1.0, -1.0, 1.0, None)
    lengths = paired_difference([10.0, 12.0], [11.0, 15.0], ["a", "a"], ends=None)
    assert (lengths.value, lengths.low, lengths.high) == (2.0, None, None)
    found = unpaired_difference([0.0, 1.0], [1.0, 1.0], None, ["a", "a"])
    assert (found.value, found.low, found.high, found.n_units) == (0.5, -1.0, 1.0, 1)


def test_nothing_to_compare() -> None:
    assert paired_difference([], []) is None
    assert unpaired_difference([], [1.0]) is None
    assert unpaired_difference([1.0], []) is None
    assert paired_difference([0.0], [1.0], ends=None).to_json() == {
        "value": 1.0, "low": None, "high": None, "significant": None, "paired": True, "n": [1], "units": 1,
    }  # fmt: skip


def test_equal_sides_do_not_differ_but_twelve_pairs_prove_little() -> None:
    found = paired_difference([0.1, 0.7, 0.3] * 4, [0.1, 0.7, 0.3] * 4)
    assert (found.value, found.is_significant) == (0.0, False)
    assert found.low == pytest.approx(-found.high)
    assert found.high > 0.1


def test_the_scale_of_the_values_does_not_matter() -> None:
    rng = np.random.default_rng(6)
    first, second = rng.random((2, 25))
    for difference in (paired_difference, unpaired_difference):
        one = difference(first.tolist(), second.tolist())
        other = difference((1 + 4 * first).tolist(), (1 + 4 * second).tolist(), ends=(1.0, 5.0))
        assert (other.low / 4, other.high / 4) == pytest.approx((one.low, one.high))
        metres = difference(first.tolist(), second.tolist(), ends=None)
        feet = difference((3.28 * first).tolist(), (3.28 * second).tolist(), ends=None)
        assert (feet.low / 3.28, feet.high / 3.28) == pytest.approx((metres.low, metres.high))


def test_a_huge_second_side_leaves_the_interval_of_the_first() -> None:
    rng = np.random.default_rng(8)
    first, second = rng.random(20).tolist(), rng.random(20_000).tolist()
    found, alone = unpaired_difference(first, second), clustered_interval(first)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.01)


@pytest.mark.parametrize("arguments", [([0.1], [0.1, 0.2]), ([0.1, 0.2], [0.1, 0.2], ["a"])])
def test_lists_that_do_not_fit_are_refused(arguments) -> None:
    with pytest.raises(ValueError, match="every"):
        paired_difference(*arguments)
