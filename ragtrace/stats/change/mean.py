"""The change of a weighted, clustered mean between two periods, its p-value, and its time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ragtrace.stats.intervals import UNIT, Sums, estimate, mean_interval, student_t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

Worse = Literal[-1, 1]
"""Sign of a change for the worse: -1 where lower is worse, 1 where higher is worse."""
_MOST_FREEDOM = 1_000.0
_LEAST_FREEDOM = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoPeriods:
    """Weighted scores of the time before and of a window, as arrays of one length.

    Attributes:
        values: scores in any unit.
        weights: above 0.
        clusters: number of the cluster of each score, from 0; scores of one session, or of one question, are not
            independent.
        is_window: True for a score of the window, False for one of the time before.
        ends: lowest and highest score that there can be; None where there are no such.
    """

    values: Array
    weights: Array
    clusters: NDArray[np.intp]
    is_window: Mask
    ends: tuple[float, float] | None = UNIT

    def only(self, mask: Mask) -> TwoPeriods:
        """Return the scores where the mask is True."""
        return TwoPeriods(
            values=self.values[mask],
            weights=self.weights[mask],
            clusters=self.clusters[mask],
            is_window=self.is_window[mask],
            ends=self.ends,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A weighted mean of one period with its 95 % interval over clusters.

    Attributes:
        mean: in the unit of the scores; None without a score.
        low: lower bound; None below two clusters.
        high: upper bound.
        n: number of scores.
        n_eff: effective number of clusters, Kish's (sum of w)^2 / sum of w^2 over their weights.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    n_eff: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of a weighted mean from the time before to the window.

    Attributes:
        before: the mean of the time before.
        window: the mean of the window.
        value: window minus before; 0 where a side has no score.
        low: lower bound of its 95 % interval, None where a side has fewer than two clusters.
        high: upper bound.
        p: one-sided p-value of a change for the worse, 1 without an interval.
    """

    before: Mean
    window: Mean
    value: float
    low: float | None
    high: float | None
    p: float


def mean_change(scores: TwoPeriods, *, worse: Worse = -1, wander: float = 0.0) -> Change:
    """Return the change of the weighted mean, with an interval over clusters.

    The standard error is cluster-robust, and t has Welch's degrees of freedom. As in the interval of a mean, four
    labels are added to the spread of each period, two at either end of the scale: twenty perfect scores prove
    little.

    Args:
        scores: of both periods.
        worse: sign of a change for the worse.
        wander: variance by which means of such periods differ at any time; it widens the interval.

    Example:
        >>> scores = TwoPeriods(
        ...     values=np.array([0.9, 1.0, 1.0, 0.9] * 5 + [0.2, 0.4, 0.3, 0.3] * 5),
        ...     weights=np.ones(40),
        ...     clusters=np.arange(40),
        ...     is_window=np.arange(40) >= 20,
        ... )
        >>> found = mean_change(scores)
        >>> round(found.value, 3), round(found.low, 3), round(found.high, 3), found.p < 0.001
        (-0.65, -0.796, -0.504, True)
    """
    before, window = (_mean(scores.only(side)) for side in (~scores.is_window, scores.is_window))
    if before.mean is None or window.mean is None:
        return Change(before=before, window=window, value=0.0, low=None, high=None, p=1.0)
    value = window.mean - before.mean
    spread = spread_of(scores, influence(scores), (before.n_eff, window.n_eff))
    if spread is None or min(before.n_eff, window.n_eff) < 2.0:
        return Change(before=before, window=window, value=value, low=None, high=None, p=1.0)
    added = sum(_added_variance(scores.only(side)) for side in (~scores.is_window, scores.is_window))
    spread = spread._replace(error=math.hypot(spread.error, math.sqrt(added + wander)))
    half, p = spread.half, spread.p(worse * value)
    return Change(before=before, window=window, value=value, low=value - half, high=value + half, p=p)


def change_place(
    values: Array,
    weights: Array,
    *,
    worse: Worse = -1,
    least: int = 10,
    places: NDArray[np.intp] | None = None,
) -> int | None:
    """Return the place in time from which on a mean is worse: the number of scores before the change.

    The place with the largest weighted sum of squares between the scores before it and those from it on, which is
    the most likely time of a single step. It is an estimate: small steps are placed worse than large ones.

    Args:
        values: scores in the order of their times.
        weights: their weights.
        worse: sign of a change for the worse.
        least: scores on either side at least.
        places: those that are looked at, in order; None = all.

    Returns:
        None with fewer than twice `least` scores, or where no place has a worse mean behind it.

    Example:
        >>> change_place(np.array([0.9] * 30 + [0.5] * 12), np.ones(42))
        30
    """
    inner = np.arange(least, len(values) - least + 1)
    places = inner if places is None else places[(places >= least) & (places <= len(values) - least)]
    if not len(places):
        return None
    total, before = float(weights.sum()), np.cumsum(weights)[places - 1]
    sums = np.cumsum(weights * values)
    lower, upper = sums[places - 1] / before, (sums[-1] - sums[places - 1]) / (total - before)
    evidence = np.where(worse * (upper - lower) > 0.0, before * (total - before) * (upper - lower) ** 2, 0.0)
    best = int(evidence.argmax())
    return int(places[best]) if evidence[best] > 0.0 else None


def adjusted(p_values: Array) -> Array:
    """Return p-values adjusted for false discoveries, after Benjamini and Hochberg (1995).

    Example:
        >>> adjusted(np.array([0.01, 0.04, 0.03, 0.5])).round(3).tolist()
        [0.04, 0.053, 0.053, 0.5]
    """
    n = len(p_values)
    order = np.argsort(p_values)[::-1]
    scaled = p_values[order] * n / np.arange(n, 0, -1)
    result = np.empty(n)
    result[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return result


class Spread(NamedTuple):
    """Standard error of a statistic, and its degrees of freedom."""

    error: float
    freedom: float

    @property
    def half(self) -> float:
        """Half the width of its 95 % interval."""
        return student_t(self.freedom) * self.error

    def p(self, worsening: float) -> float:
        """Return the one-sided p-value of a value above 0, with the normal value of t after Wallace (1959)."""
        if self.error <= 0.0:
            return 0.0 if worsening > 0.0 else 1.0
        t, v = worsening / self.error, self.freedom
        z = (8 * v + 1) / (8 * v + 3) * math.sqrt(v * math.log1p(t * t / v))
        return 0.5 * math.erfc(math.copysign(z, t) / math.sqrt(2.0))


def influence(scores: TwoPeriods, mask: Mask | None = None) -> Array:
    """Return the influence of each score on the change of the mean, or of that of the masked runs.

    Example:
        >>> scores = TwoPeriods(
        ...     values=np.array([0.5, 1.0, 0.0, 0.5]),
        ...     weights=np.ones(4),
        ...     clusters=np.arange(4),
        ...     is_window=np.array([False, False, True, True]),
        ... )
        >>> influence(scores).tolist()
        [0.125, -0.125, -0.125, 0.125]
    """
    result = np.zeros(len(scores.values))
    for side, sign in ((~scores.is_window, -1.0), (scores.is_window, 1.0)):
        own = side if mask is None else side & mask
        weights, values = scores.weights[own], scores.values[own]
        total = weights.sum()
        if total > 0.0:
            result[own] = sign * weights * (values - (weights * values).sum() / total) / total
    return result


def spread_of(scores: TwoPeriods, influences: Array, n_eff: tuple[float, float]) -> Spread | None:
    """Return the spread of a statistic from the influences of its scores.

    Args:
        scores: of both periods.
        influences: of each score on the statistic.
        n_eff: effective clusters behind it, before and in the window.

    Returns:
        None where neither period has two clusters.

    Example:
        >>> scores = TwoPeriods(
        ...     values=np.array([0.5, 1.0, 0.0, 0.5]),
        ...     weights=np.ones(4),
        ...     clusters=np.arange(4),
        ...     is_window=np.array([False, False, True, True]),
        ... )
        >>> round(spread_of(scores, influence(scores), (2.0, 2.0)).error, 3)
        0.354
    """
    if max(n_eff) < 2.0:
        return None
    sums = np.bincount(scores.clusters, weights=influences)
    variance = float((sums * sums).sum())
    parts = 0.0
    for side, n in zip((~scores.is_window, scores.is_window), n_eff, strict=True):
        own = np.bincount(scores.clusters[side], weights=influences[side])
        parts += float((own * own).sum()) ** 2 / (n - 1.0) if n > 1.0 else 0.0
    freedom = variance * variance / parts if parts > 0.0 else _MOST_FREEDOM
    least = min(n for n in n_eff if n >= 2.0)
    error = math.sqrt(variance * least / (least - 1.0))
    return Spread(error, min(max(freedom, _LEAST_FREEDOM), _MOST_FREEDOM))


def effective(scores: TwoPeriods, mask: Mask) -> float:
    """Return the effective number of clusters of the masked scores, Kish's (sum of w)^2 / sum of w^2; 0 for none.

    Example:
        >>> scores = TwoPeriods(
        ...     values=np.zeros(4),
        ...     weights=np.ones(4),
        ...     clusters=np.array([0, 0, 1, 1]),
        ...     is_window=np.zeros(4, dtype=np.bool_),
        ... )
        >>> effective(scores, ~scores.is_window)
        2.0
    """
    if not mask.any():
        return 0.0
    sums = np.bincount(scores.clusters[mask], weights=scores.weights[mask])
    return float(sums.sum()) ** 2 / float((sums * sums).sum())


def _mean(scores: TwoPeriods) -> Mean:
    n = len(scores.values)
    if not n:
        return Mean(mean=None, low=None, high=None, n=0, n_eff=0.0)
    sums = sums_of(scores.values, scores.weights, scores.clusters)
    found = mean_interval(sums, scores.ends)
    return Mean(mean=found.mean, low=found.low, high=found.high, n=n, n_eff=sums.w**2 / sums.w2)


def _added_variance(scores: TwoPeriods) -> float:
    """Return the variance of a mean that comes from added labels, and not from its scores."""
    sums = sums_of(scores.values, scores.weights, scores.clusters)
    mean = sums.wx / sums.w
    own = (sums.w2x2 - 2.0 * mean * sums.w2x + mean * mean * sums.w2) / sums.w**2
    return max(estimate(sums, scores.ends).variance - own, 0.0)


def sums_of(values: Array, weights: Array, clusters: NDArray[np.intp] | NDArray[np.int32]) -> Sums:
    """Return the sums of `ragtrace.stats.intervals.mean_interval` from arrays; clusters are numbers from 0."""
    w = np.bincount(clusters, weights=weights)
    wx = np.bincount(clusters, weights=weights * values)
    found = (w.sum(), wx.sum(), (w * w).sum(), (w * wx).sum(), (wx * wx).sum())
    return Sums(*map(float, found))
