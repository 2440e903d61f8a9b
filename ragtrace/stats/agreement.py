"""Agreement of raters: Krippendorff's alpha, quadratic kappa, Pearson and Spearman.

All figures take bootstrap weights as an array. A library's function takes one sample at a time: for 1,000 resamples
of 200 units, scikit-learn and krippendorff needed 1 to 20 s of CPU a figure, and these need .02 s.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragtrace.stats.figure import Figure, bootstrapped, bounds
from ragtrace.stats.intervals import RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Level = Literal["nominal", "ordinal", "interval", "ratio"]
GRADES = (1, 2, 3, 4, 5)
_ROUNDING = 1e-12  # of the numbers that went in: what is left of a difference is noise


def krippendorff_alpha(
    ratings: Sequence[Sequence[float | None]],
    level: Level = "interval",
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """Return Krippendorff's alpha with a bootstrap interval over units.

    It is 1 - observed / expected disagreement, at most 1 (all agree). 0 is chance, below 0 is worse than chance.
    It counts as good from .8 on, and as tentative from .667 on. Units with fewer than 2 ratings are dropped.
    Source: Krippendorff, Content Analysis (2004).

    Args:
        ratings: one row a coder, one column a unit; None or NaN for a rating that is missing.
        level: how far apart two ratings are: nominal, ordinal, interval or ratio (ratings of 0 or more).
        n_resamples: of the interval; 0 for none.
        seed: of the resamples.

    Returns:
        A figure over the units with at least two ratings; no value without such a unit, or where the ratings differ
        by rounding alone.

    Raises:
        ValueError: rows of different length, an infinite rating, or ratio ratings below 0.

    Example:
        >>> round(krippendorff_alpha([[1, 2, 3, None], [1, 2, 4, 5]]).value, 3)
        0.878
        >>> krippendorff_alpha([[3, 3], [3, 3]]).reason
        'all ratings are the same'
    """
    table = _table(ratings)
    counted = np.isfinite(table).sum(axis=0) if table.size else np.zeros(0)
    table = table[:, counted >= 2] if table.size else table
    n = table.shape[1] if table.size else 0
    if n == 0:
        return Figure(n=0, reason="no unit has two ratings")
    values = np.unique(table[np.isfinite(table)])
    if level == "ratio" and values[0] < 0:
        raise ValueError("the ratio level is for ratings of 0 or more")
    if not _varies(values):
        return Figure(n=n, reason="all ratings are the same")
    if level == "interval":  # its values may be as many as its ratings: no table of counts
        sums = _sums(table)

        def statistic(weights: Array) -> Array:
            return _interval_alpha(*sums, weights)
    else:
        counts = np.stack([(table == value).sum(axis=0) for value in values], axis=1).astype(np.float64)

        def statistic(weights: Array) -> Array:
            return _alpha(counts, values, level, weights)

    undefined = "the ratings are beyond what can be computed"
    return bootstrapped(statistic, n, seed=seed, n_resamples=n_resamples, undefined=undefined)


def quadratic_kappa(
    a: Sequence[float], b: Sequence[float], *, n_resamples: int = RESAMPLES, seed: int = 0
) -> Figure:
    """Return Cohen's kappa with quadratic weights over grades 1 to 5.

    At most 1; 0 is chance. kappa = (po - pe) / (1 - pe), with weights 1 - (i - j)^2 / 16.

    Returns:
        No value without a pair, or when both raters give one and the same grade throughout.

    Raises:
        ValueError: lists of different length, or a grade that is not one of 1, 2, 3, 4, 5.

    Example:
        >>> round(quadratic_kappa([1, 2, 3, 4, 5], [1, 2, 3, 4, 4]).value, 3)
        0.941
        >>> quadratic_kappa([3, 3], [3, 3]).reason
        'all grades are the same'
    """
    first, second = _pairs(a, b)
    if not (np.isin(first, GRADES).all() and np.isin(second, GRADES).all()):
        raise ValueError("grades are 1, 2, 3, 4 or 5")
    n = len(first)
    if n == 0:
        return Figure(n=0, reason="there is no pair")
    values = np.asarray(GRADES, dtype=np.float64)
    ones, twos = (first[:, None] == values).astype(np.float64), (second[:, None] == values).astype(np.float64)
    squares = (first - second) ** 2
    distance = (values[:, None] - values[None, :]) ** 2

    def statistic(weights: Array) -> Array:
        observed = weights @ squares
        expected = np.einsum("bi,ij,bj->b", weights @ ones, distance, weights @ twos) / weights.sum(axis=1)
        return _one_minus(observed, expected)

    return bootstrapped(statistic, n, seed=seed, n_resamples=n_resamples, undefined="all grades are the same")


def pearson(a: Sequence[float], b: Sequence[float], *, n_resamples: int = RESAMPLES, seed: int = 0) -> Figure:
    """Return Pearson's correlation with a bootstrap interval over pairs.

    Raises:
        ValueError: lists of different length, or a value that is not finite.

    Example:
        >>> round(pearson([1, 2, 3, 4], [2, 4, 6, 8]).value, 9), pearson([1, 1], [1, 2]).reason
        (1.0, 'one side does not vary')
    """
    first, second = _pairs(a, b)
    return _correlation(first, second, n_resamples=n_resamples, seed=seed)


def spearman(a: Sequence[float], b: Sequence[float], *, n_resamples: int = RESAMPLES, seed: int = 0) -> Figure:
    """Return Spearman's rank correlation; ties share their mean rank.

    The bootstrap interval resamples pairs and ranks each resample anew. None at zero variance.

    Raises:
        ValueError: lists of different length, or a value that is not finite.

    Example:
        >>> round(spearman([1, 2, 3, 3], [1, 10, 100, 1000]).value, 3)
        0.949
    """
    first, second = _pairs(a, b)
    why = _uncorrelated(first, second)
    if why is not None:
        return Figure(n=len(first), reason=why)
    found = _correlation(mid_ranks(first), mid_ranks(second), n_resamples=0, seed=seed)
    codes = [np.unique(side, return_inverse=True)[1] for side in (first, second)]

    def statistic(weights: Array) -> Array:
        one, two = (_weighted_ranks(side, weights) for side in codes)
        return _weighted_correlation(one, two, weights)

    low, high = bounds(statistic, found.n, seed=seed, n_resamples=n_resamples)
    return Figure(value=found.value, low=low, high=high, n=found.n)


def mid_ranks(values: Array) -> Array:
    """Return ranks from 1; equal values share the mean of their ranks.

    Example:
        >>> mid_ranks(np.array([10.0, 20.0, 20.0])).tolist()
        [1.0, 2.5, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    return ranks


def _table(ratings: Sequence[Sequence[float | None]]) -> Array:
    if len({len(row) for row in ratings}) > 1:
        raise ValueError("every coder has one place for each unit")
    table = np.array([[math.nan if r is None else float(r) for r in row] for row in ratings], dtype=np.float64)
    if np.isinf(table).any():
        raise ValueError("a rating must be finite")
    return table if table.size else table.reshape(len(ratings), 0)


def _alpha(counts: Array, values: Array, level: Level, weights: Array) -> Array:
    """Return alpha for each row of unit weights.

    Args:
        counts: how often each value was given, units by values.
        values: the distinct values, ascending.
        level: of the ratings.
        weights: resamples by units.
    """
    per_unit = 1.0 / (counts.sum(axis=1) - 1.0)
    totals = weights @ counts
    n = totals.sum(axis=1)
    if level == "ordinal":
        places = np.cumsum(totals, axis=1) - totals / 2.0  # the squared difference of these is the ordinal distance
        observed = np.einsum("bu,bu->b", weights, _spread(counts[None, :, :], places[:, None, :]) * per_unit)
        return _one_minus(observed, _spread(totals, places) / (n - 1.0))
    apart = _distance(values, level)
    within = np.einsum("ui,ij,uj->u", counts, apart, counts, optimize=True)
    total = np.einsum("bi,ij,bj->b", totals, apart, totals, optimize=True)
    return _one_minus(weights @ (within * per_unit), total / (n - 1.0))


def _sums(table: Array) -> tuple[Array, Array, Array]:
    """Return number, sum and sum of squares of the ratings of each unit.

    Ratings are centred overall, so that the squares do not cancel, and of a spread of 1, so that none is too small.
    """
    centred = (table - np.nanmean(table)) / (np.nanmax(table) - np.nanmin(table))
    return (
        np.isfinite(table).sum(axis=0).astype(np.float64),
        np.nansum(centred, axis=0),
        np.nansum(centred**2, axis=0),
    )


def _interval_alpha(number: Array, first: Array, second: Array, weights: Array) -> Array:
    within = _left(number * second, first**2) / (number - 1.0)
    n = weights @ number
    total = _left(n * (weights @ second), (weights @ first) ** 2) / (n - 1.0)
    return _one_minus(weights @ within, total)


def _spread(counts: Array, places: Array) -> Array:
    """Return the sum of squared differences over ordered pairs, from moments."""
    zeroth, first = counts.sum(axis=-1), (counts * places).sum(axis=-1)
    second = (counts * places**2).sum(axis=-1)
    return 2.0 * _left(zeroth * second, first**2)


def _left(whole: Array, part: Array) -> Array:
    """Return a difference, 0 where rounding alone is left of it."""
    left = whole - part
    kept: Array = np.where(left > _ROUNDING * whole, left, 0.0)
    return kept


def _varies(values: Array) -> bool:
    return bool(np.ptp(values) > _ROUNDING * np.abs(values).max())


def _distance(values: Array, level: Level) -> Array:
    across, down = values[None, :], values[:, None]
    if level == "nominal":
        apart: Array = (across != down).astype(np.float64)
        return apart
    total = across + down
    share: Array = np.divide(across - down, total, out=np.zeros_like(total), where=total > 0.0)
    return share**2


def _one_minus(observed: Array, expected: Array) -> Array:
    return 1.0 - np.divide(observed, expected, out=np.full_like(expected, np.nan), where=expected > 0.0)


def _pairs(a: Sequence[float], b: Sequence[float]) -> tuple[Array, Array]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"pairs need two lists of one length, got {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a value must be finite")
    return first, second


def _correlation(first: Array, second: Array, *, n_resamples: int, seed: int) -> Figure:
    n = len(first)
    why = _uncorrelated(first, second)
    if why is not None:
        return Figure(n=n, reason=why)

    def statistic(weights: Array) -> Array:
        return _weighted_correlation(first, second, weights)

    return bootstrapped(statistic, n, seed=seed, n_resamples=n_resamples, undefined="one side does not vary")


def _uncorrelated(first: Array, second: Array) -> str | None:
    if len(first) < 2:
        return "fewer than two pairs"
    return None if _varies(first) and _varies(second) else "one side does not vary"


def _weighted_correlation(first: Array, second: Array, weights: Array) -> Array:
    total = weights.sum(axis=1, keepdims=True)
    one = first - (weights * first).sum(axis=1, keepdims=True) / total
    two = second - (weights * second).sum(axis=1, keepdims=True) / total
    both = (weights * one * two).sum(axis=1)
    squares = (weights * one**2).sum(axis=1), (weights * two**2).sum(axis=1)
    size = np.sqrt(squares[0]) * np.sqrt(squares[1])
    found = np.divide(both, size, out=np.full_like(size, np.nan), where=size > 1e-300)
    clipped: Array = np.clip(found, -1.0, 1.0)
    return clipped


def _weighted_ranks(codes: NDArray[np.intp], weights: Array) -> Array:
    """Return mid-ranks within each resample; `codes` number the values in order."""
    totals = np.stack([np.bincount(codes, weights=row, minlength=int(codes.max()) + 1) for row in weights])
    ranks: Array = (np.cumsum(totals, axis=1) - (totals - 1.0) / 2.0)[:, codes]
    return ranks
