"""Intervals against an independent formulation and against the textbook."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, t

from ragtrace.stats import (
    Interval,
    Sums,
    bootstrap_mean_ci,
    cluster_sums,
    clustered_interval,
    mean_interval,
    student_t,
    wilson,
)


@pytest.mark.parametrize("n", [2, 37, 4_100, 9_000])  # from 4,001 on the draws are made in blocks
def test_the_bootstrap_is_one_draw_of_all_resamples_to_the_bit(n: int) -> None:
    values = np.random.default_rng(5).random(n)
    means = values[np.random.default_rng(3).integers(0, n, (1000, n))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    assert bootstrap_mean_ci(list(values), seed=3) == (values.mean(), low, high)


def test_without_values_there_is_no_number_and_with_one_no_bounds() -> None:
    assert bootstrap_mean_ci([]) == Interval(None, None, None)
    assert bootstrap_mean_ci([0.25]) == Interval(0.25, None, None)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(0, 5))
def test_the_bootstrap_brackets_within_the_range_of_the_values(values: list[float], seed: int) -> None:
    mean, low, high = bootstrap_mean_ci(values, seed=seed, n_resamples=50)
    assert mean is not None
    assert low is not None
    assert high is not None
    slack = 1e-12
    assert min(values) - slack <= low <= high <= max(values) + slack
    assert bootstrap_mean_ci(values, seed=seed, n_resamples=50) == (mean, low, high)


def test_the_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for trial in range(200):
        _, low, high = bootstrap_mean_ci(rng.random(60).tolist(), n_resamples=300, seed=trial)
        assert low is not None
        assert high is not None
        hits += low <= 0.5 <= high
    assert 180 <= hits <= 199


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 10), (10, 10), (480, 500)])
def test_wilson_agrees_with_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((successes / n, expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("freedom", [3, 4, 8, 20, 100, 10_000])
def test_students_t_is_that_of_scipy(freedom: int) -> None:
    assert student_t(freedom) == pytest.approx(t.ppf(0.975, freedom), abs=0.03)


@pytest.mark.parametrize("freedom", [0.0, 0.5, 1.0, 1.5, 2.0])
def test_students_t_never_ends_where_there_is_hardly_any_freedom(freedom: float) -> None:
    assert 4.0 < student_t(freedom) < 14.0


def test_without_weights_and_clusters_it_is_the_textbooks_interval_once_scores_are_many() -> None:
    values = np.random.default_rng(1).random(100_000)
    found = clustered_interval(values.tolist())
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=2e-5)


def test_ten_perfect_scores_are_no_certainty() -> None:
    found = clustered_interval([1.0] * 10)
    assert (found.mean, found.high) == (1.0, 1.0)
    assert 0.6 < found.low < 0.75  # the least share that gives ten of ten in one case of forty is .69


scores = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 20), st.integers(0, 9)), min_size=1, max_size=40)


@given(scores)
def test_the_interval_lies_on_the_scale_and_holds_the_mean(rows: list[tuple[float, float, int]]) -> None:
    values, weights, clusters = map(list, zip(*rows, strict=True))
    found = clustered_interval(values, clusters, weights)
    assert 0.0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1.0
    if len(set(clusters)) == 1:
        assert (found.low, found.high) == (0.0, 1.0)


@given(scores)
def test_five_grades_have_the_interval_of_their_shares(rows: list[tuple[float, float, int]]) -> None:
    values, weights, clusters = map(list, zip(*rows, strict=True))
    shares = clustered_interval(values, clusters, weights)
    grades = clustered_interval([1 + 4 * x for x in values], clusters, weights, ends=(1.0, 5.0))
    assert tuple((bound - 1) / 4 for bound in grades) == pytest.approx(shares, abs=1e-7)


def test_weights_that_are_all_alike_change_nothing() -> None:
    values = np.random.default_rng(2).random(30).tolist()
    assert clustered_interval(values, None, [7.0] * 30) == pytest.approx(clustered_interval(values))


def test_turns_of_a_session_count_as_one() -> None:
    values = np.random.default_rng(3).random(30).tolist()
    turns = [x for x in values for _ in range(4)]
    sessions = [place for place in range(30) for _ in range(4)]
    assert clustered_interval(turns, sessions) == pytest.approx(clustered_interval(values))
    assert clustered_interval(turns).high < clustered_interval(turns, sessions).high


def test_values_without_ends_have_bounds_in_their_own_unit() -> None:
    lengths = [120.0, 90.0, 150.0, 130.0, 80.0, 100.0]
    found = clustered_interval(lengths, ends=None)
    assert 0.0 < found.low < found.mean < found.high < 230.0
    tenfold = clustered_interval([10 * x for x in lengths], ends=None)
    assert tuple(x / 10 for x in tenfold) == pytest.approx(tuple(found))
    same = clustered_interval([3.0] * 6, ends=None)
    assert same.low < 3.0 < same.high
    assert clustered_interval([3.0], ends=None) == Interval(3.0, None, None)


def test_no_weight_is_no_mean() -> None:
    assert clustered_interval([]) == mean_interval(Sums(0.0, 0.0, 0.0, 0.0, 0.0)) == Interval(None, None, None)


@pytest.mark.parametrize("arguments", [([0.1], ["a", "b"]), ([0.1], None, [1.0, 2.0])])
def test_lists_that_do_not_fit_are_refused(arguments) -> None:
    with pytest.raises(ValueError, match="every value"):
        cluster_sums(*arguments)
