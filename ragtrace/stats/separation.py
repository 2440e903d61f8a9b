"""Separation of two classes by a score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.stats.figure import Figure, bootstrapped
from ragtrace.stats.intervals import RESAMPLES, Z95, student_t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Truth = NDArray[np.bool_]

FOLDS = 10


class Roc(NamedTuple):
    """Rates of true and of false positives at each threshold."""

    false_rate: list[float]
    true_rate: list[float]
    threshold: list[float | None]


def auroc(scores: Sequence[float], is_high: Sequence[bool]) -> Figure:
    """Return the probability that a high unit has the higher score.

    Ties count half. In [0, 1]; .5 is chance. Source: Hanley and McNeil (1982).

    The interval is DeLong's (1988), built on the logit, with Student's t and the degrees of freedom of Welch. A
    perfect separation has no DeLong variance, and few units of a class too little of it. So the interval is at
    least as wide as with the variance of Hanley and McNeil. Where logit and variance have no end, the lower bound
    sees half a unit on either wrong side, and the upper bound one pair.

    Measured over normal, exponential, graded and two-valued scores, AUROC .6 to .98 and 20 to 200 units with 5 or
    more of a class: .938 or more of the intervals held the truth, .98 on average. Of DeLong's plain ones .24 to .95
    did.

    Returns:
        No value when a class is empty; no bounds when one has a single unit.

    Raises:
        ValueError: lists of different length, or a score that is not finite.

    Example:
        >>> auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]).value
        0.875
        >>> auroc([0.9], [True]).reason
        'only one class is there'
    """
    values, truth = _checked(scores, is_high)
    n = len(values)
    if _is_one_class(truth):
        return Figure(n=n, reason="only one class is there")
    won = _placements(values, truth)
    value = float(won[truth].mean())
    if min(truth.sum(), (~truth).sum()) < 2:
        return Figure(value=value, n=n)
    low, high = _logit_bounds(value, won[truth], won[~truth])
    return Figure(value=value, low=low, high=high, n=n)


def _placements(values: Array, truth: Truth) -> Array:
    """Return for each unit the share of the other class that it is on the right side of."""
    codes = np.unique(values, return_inverse=True)[1]
    size = int(codes.max()) + 1
    high, low = (np.bincount(codes[group], minlength=size) for group in (truth, ~truth))
    above_low = (np.cumsum(low) - low / 2.0) / low.sum()
    below_high = 1.0 - (np.cumsum(high) - high / 2.0) / high.sum()
    placed: Array = np.where(truth, above_low[codes], below_high[codes])
    return placed


def _logit_bounds(value: float, high: Array, low: Array) -> tuple[float, float]:
    if value < 0.5:
        below, above = _logit_bounds(1.0 - value, 1.0 - high, 1.0 - low)
        return 1.0 - above, 1.0 - below
    m, n = len(high), len(low)
    parts = float(high.var(ddof=1)) / m, float(low.var(ddof=1)) / n
    delong = 0.0
    if sum(parts) > 0.0:
        freedom = sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (n - 1))
        delong = student_t(freedom) * math.sqrt(sum(parts))

    def bound(area: float, side: float) -> float:
        reach = max(delong, Z95 * math.sqrt(_hanley_mcneil(area, m, n)))
        return 0.5 + 0.5 * math.tanh(0.5 * (math.log(area / (1.0 - area)) + side * reach / (area * (1.0 - area))))

    a_unit_lost, a_pair_lost = (value * (m + n) + 0.5) / (m + n + 1.0), (value * m * n + 1.0) / (m * n + 2.0)
    return min(value, bound(a_unit_lost, -1.0)), max(value, bound(a_pair_lost, 1.0))


def _hanley_mcneil(area: float, m: int, n: int) -> float:
    """Return the variance of an AUROC over classes of average size, as Newcombe (2006) has it."""
    more = (m + n) / 2.0 - 1.0
    return area * (1.0 - area) * (1.0 + more * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))) / (m * n)


def balanced_accuracy(
    scores: Sequence[float],
    is_high: Sequence[bool],
    threshold: float,
    *,
    is_strict: bool = False,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figure:
    """Return the mean of the two classes' accuracies at a threshold.

    Scores at or above `threshold` count as high. In [0, 1]; .5 is chance. The bootstrap interval resamples units.

    Args:
        scores: one a unit.
        is_high: the class of each.
        threshold: of the score.
        is_strict: scores above it alone count as high.
        n_resamples: of the interval; 0 for none.
        seed: of the resamples.

    Returns:
        No value when a class is empty.

    Example:
        >>> balanced_accuracy([0.9, 0.5, 0.4, 0.1], [True, True, True, False], 0.5).value
        0.8333333333333333
    """
    values, truth = _checked(scores, is_high)
    n = len(values)
    if _is_one_class(truth):
        return Figure(n=n, reason="only one class is there")
    said = values > threshold if is_strict else values >= threshold
    right = said == truth

    def statistic(weights: Array) -> Array:
        shares: list[Array] = []
        for group in (truth, ~truth):
            total = weights @ group.astype(np.float64)
            hit = weights @ (group & right).astype(np.float64)
            shares.append(np.divide(hit, total, out=np.full_like(total, np.nan), where=total > 0.0))
        mean: Array = (shares[0] + shares[1]) / 2.0
        return mean

    return bootstrapped(statistic, n, seed=seed, n_resamples=n_resamples)


def best_threshold(scores: Sequence[float], is_high: Sequence[bool]) -> float | None:
    """Return the threshold of the highest balanced accuracy, None without one.

    It lies half-way between two neighbouring scores; of several equally good ones it is the one with the widest gap
    around it, as that is the one least likely to be chance. Balanced accuracy at it is optimistic on the same data:
    see `cross_validated`.

    Example:
        >>> best_threshold([0.9, 0.8, 0.2, 0.1], [True, True, False, False])
        0.5
    """
    values, truth = _checked(scores, is_high)
    if _is_one_class(truth):
        return None
    return _best(values, truth)


def cross_validated(scores: Sequence[float], is_high: Sequence[bool], *, seed: int = 0) -> Figure:
    """Return the balanced accuracy of thresholds in 10-fold cross-validation.

    The folds are drawn within each class. With fewer than 10 units of a class it leaves one out at a time of it.

    Returns:
        No value when a class has fewer than 2 units, or no score differs.

    Example:
        >>> cross_validated([0.9, 0.8, 0.7, 0.2, 0.1, 0.0], [True] * 3 + [False] * 3).value
        1.0
    """
    values, truth = _checked(scores, is_high)
    if min(truth.sum(), (~truth).sum()) < 2:
        return Figure(n=len(values), reason="a class has fewer than 2 units")
    rng = np.random.default_rng(seed)
    fold = np.zeros(len(values), dtype=np.intp)
    for group in (np.flatnonzero(truth), np.flatnonzero(~truth)):
        fold[rng.permutation(group)] = np.arange(len(group)) % FOLDS
    said = np.zeros(len(values), dtype=np.bool_)
    for place in range(FOLDS):
        held = fold == place
        threshold = _best(values[~held], truth[~held])
        if threshold is None:
            return Figure(n=len(values), reason="all scores are the same")
        said[held] = values[held] >= threshold
    value = (said[truth].mean() + (~said[~truth]).mean()) / 2.0
    return Figure(value=float(value), n=len(values))


def roc(scores: Sequence[float], is_high: Sequence[bool]) -> Roc:
    """Return the ROC curve, empty when a class is empty.

    Example:
        >>> roc([0.9, 0.5, 0.1], [True, False, False]).true_rate
        [0.0, 1.0, 1.0, 1.0]
    """
    values, truth = _checked(scores, is_high)
    if _is_one_class(truth):
        return Roc([], [], [])
    levels = np.unique(values)[::-1]
    true_rate = [float((values[truth] >= level).mean()) for level in levels]
    false_rate = [float((values[~truth] >= level).mean()) for level in levels]
    return Roc([0.0, *false_rate], [0.0, *true_rate], [None, *map(float, levels)])


def _best(values: Array, truth: Truth) -> float | None:
    levels, codes = np.unique(values, return_inverse=True)
    if len(levels) < 2:
        return None
    high = np.bincount(codes, weights=truth, minlength=len(levels))
    low = np.bincount(codes, weights=~truth, minlength=len(levels))
    # Between level i and i + 1: what lies above counts as high.
    caught = 1.0 - np.cumsum(high)[:-1] / high.sum()
    spared = np.cumsum(low)[:-1] / low.sum()
    quality = caught + spared
    gaps = np.diff(levels)
    best = np.flatnonzero(quality >= quality.max() - 1e-12)
    chosen = best[np.argmax(gaps[best])]
    return float((levels[chosen] + levels[chosen + 1]) / 2.0)


def _is_one_class(truth: Truth) -> bool:
    return bool(truth.all() or not truth.any())


def _checked(scores: Sequence[float], is_high: Sequence[bool]) -> tuple[Array, Truth]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(is_high, dtype=np.bool_)
    if values.shape != truth.shape or values.ndim != 1:
        raise ValueError(f"every score has one class, got {values.shape} and {truth.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a score must be finite")
    return values, truth
