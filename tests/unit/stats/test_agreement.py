"""Agreement against other implementations, and at its edges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragtrace.stats import krippendorff_alpha, mid_ranks, pearson, quadratic_kappa, spearman

if TYPE_CHECKING:
    from random import Random

LEVELS = ("nominal", "ordinal", "interval", "ratio")
lists = st.lists(st.integers(1, 5), min_size=2, max_size=30)


def slow_alpha(ratings: list[list[float | None]], level: str) -> float | None:
    """The definition, pair by pair."""
    units = [[row[u] for row in ratings if row[u] is not None] for u in range(len(ratings[0]))]
    units = [unit for unit in units if len(unit) > 1]
    flat = sorted(value for unit in units for value in unit)
    if len(set(flat)) < 2:
        return None

    def apart(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "ordinal":
            low, high = min(a, b), max(a, b)
            between = sum(low <= value <= high for value in flat)
            return (between - (flat.count(a) + flat.count(b)) / 2) ** 2 if a != b else 0.0
        return (a - b) ** 2 if level == "interval" else ((a - b) / (a + b)) ** 2 if a + b else 0.0

    observed = sum(sum(apart(a, b) for a in unit for b in unit) / (len(unit) - 1) for unit in units)
    expected = sum(apart(a, b) for a in flat for b in flat) / (len(flat) - 1)
    return 1 - observed / expected


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=3, max_size=3), min_size=1, max_size=12),
    st.sampled_from(LEVELS),
)
def test_alpha_is_that_of_the_definition(units: list[list[float | None]], level: str) -> None:
    ratings = [list(row) for row in zip(*units, strict=True)]
    found = krippendorff_alpha(ratings, level, n_resamples=0)
    assert found.value == (None if (slow := slow_alpha(ratings, level)) is None else pytest.approx(slow, abs=1e-9))


@pytest.mark.parametrize("level", LEVELS)
def test_the_interval_of_alpha_holds_alpha_and_narrows(level: str) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 400)
    ratings = [np.clip(truth + rng.integers(-1, 2, 400), 1, 5).tolist() for _ in range(3)]
    wide = krippendorff_alpha([row[:40] for row in ratings], level)
    narrow = krippendorff_alpha(ratings, level)
    assert wide.low < wide.value < wide.high
    assert narrow.low < narrow.value < narrow.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2
    assert krippendorff_alpha(ratings, level) == narrow, "the same seed gives the same interval"


def test_large_numbers_do_not_cancel() -> None:
    rows = [[1, 2, 3, 4, 5], [1, 2, 3, 5, 5]]
    far = [[value + 1e6 for value in row] for row in rows]
    near = krippendorff_alpha(rows, n_resamples=0).value
    assert krippendorff_alpha(far, n_resamples=0).value == pytest.approx(near, abs=1e-9)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([], "no unit has two ratings"),
        ([[], []], "no unit has two ratings"),
        ([[1, 2, 3]], "no unit has two ratings"),
        ([[1, None], [None, 2]], "no unit has two ratings"),
        ([[1, math.nan], [2, 2]], None),
        ([[2, 2], [2, 2]], "all ratings are the same"),
        ([[1.0, 1.0], [1.0, 1.0 - 2**-53]], "all ratings are the same"),
        ([[0.1 + 0.2, 0.3], [0.3, 0.3]], "all ratings are the same"),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_alpha_without_a_number_says_why(ratings: list[list[float | None]], reason: str | None, level: str) -> None:
    assert krippendorff_alpha(ratings, level).reason == reason


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1e-200, 1e-7, 1.0, 1e100])
def test_alpha_knows_no_scale(level: str, size: float) -> None:
    rows = [[1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 4.0, 5.0]]
    found = krippendorff_alpha([[size * rating for rating in row] for row in rows], level)
    assert found.value == pytest.approx(krippendorff_alpha(rows, level).value, abs=1e-9)
    assert krippendorff_alpha([[size * rating for rating in rows[0]]] * 2, level).value == 1.0


def test_alpha_refuses_what_is_no_table() -> None:
    with pytest.raises(ValueError, match="one place for each unit"):
        krippendorff_alpha([[1, 2], [1]])
    with pytest.raises(ValueError, match="finite"):
        krippendorff_alpha([[1, math.inf], [1, 2]])
    with pytest.raises(ValueError, match="0 or more"):
        krippendorff_alpha([[-1, 1], [1, 2]], "ratio")


@given(lists, st.randoms(use_true_random=False))
def test_kappa_is_that_of_the_definition(a: list[int], random: Random) -> None:
    b = a[:]
    random.shuffle(b)
    table = np.zeros((5, 5))
    for i, j in zip(a, b, strict=True):
        table[i - 1, j - 1] += 1
    table /= table.sum()
    weights = np.array([[1 - (i - j) ** 2 / 16 for j in range(5)] for i in range(5)])
    po, pe = (weights * table).sum(), (weights * np.outer(table.sum(1), table.sum(0))).sum()
    found = quadratic_kappa(a, b, n_resamples=0).value
    assert found == (None if pe > 1 - 1e-12 else pytest.approx((po - pe) / (1 - pe), abs=1e-9))


def test_kappa_refuses_what_is_no_grade() -> None:
    with pytest.raises(ValueError, match="1, 2, 3, 4 or 5"):
        quadratic_kappa([1, 2.5], [1, 2])
    with pytest.raises(ValueError, match="one length"):
        quadratic_kappa([1, 2], [1])
    assert quadratic_kappa([], []).reason == "there is no pair"
    assert quadratic_kappa([4, 4], [4, 4]).reason == "all grades are the same"


@given(lists, st.randoms(use_true_random=False))
def test_correlations_are_those_of_scipy(a: list[int], random: Random) -> None:
    b = [random.randint(1, 5) for _ in a]
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert pearson(a, b).reason == spearman(a, b).reason == "one side does not vary"
        return
    assert pearson(a, b, n_resamples=0).value == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)
    assert spearman(a, b, n_resamples=0).value == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    assert mid_ranks(np.array(a)).tolist() == stats.rankdata(a).tolist()


def test_the_interval_of_spearman_ranks_each_resample_anew() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, 30).astype(float)
    b = a + rng.integers(0, 3, 30)
    found = spearman(a, b, n_resamples=50)
    draws = np.random.default_rng(0).integers(0, 30, (50, 30))
    slow = [stats.spearmanr(a[row], b[row]).statistic for row in draws]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])), abs=1e-9)


@pytest.mark.parametrize("figure", [pearson, spearman])
def test_correlation_without_a_number_says_why(figure: object) -> None:
    assert figure([], []).reason == "fewer than two pairs"
    assert figure([1], [2]).reason == "fewer than two pairs"
    assert figure([1, 1], [1, 2]).reason == "one side does not vary"
    assert figure([1.0, 1.0 - 2**-53, 1.0], [1, 2, 3]).reason == "one side does not vary", "it differs by rounding"
    with pytest.raises(ValueError, match="finite"):
        figure([1, math.nan], [1, 2])
