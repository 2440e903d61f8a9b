"""Intervals against an independent formulation and against the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from ragtrace.stats.intervals import Interval, bootstrap_mean_ci, wilson


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
