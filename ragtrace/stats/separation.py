"""Separation of two classes by a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.stats.figure import Figure, bootstrapped
from ragtrace.stats.intervals import RESAMPLES

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


def auroc(
    scores: Sequence[float], is_high: Sequence[bool], *, n_resamples: int = RESAMPLES, seed: int = 0
) -> Figure:
    """Return the probability that a high unit has the higher score.

    Ties count half. In [0, 1]; .5 is chance. The bootstrap interval resamples units.
    Source: Hanley and McNeil (1982).

    Returns:
        No value when a class is empty.

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
    codes = np.unique(values, return_inverse=True)[1]

    def statistic(weights: Array) -> Array:
        size = int(codes.max()) + 1
        high = np.stack([np.bincount(codes, weights=row * truth, minlength=size) for row in weights])
        low = np.stack([np.bincount(codes, weights=row * ~truth, minlength=size) for row in weights])
        won = (high * (np.cumsum(low, axis=1) - low / 2.0)).sum(axis=1)
        pairs = high.sum(axis=1) * low.sum(axis=1)
        share: Array = np.divide(won, pairs, out=np.full_like(won, np.nan), where=pairs > 0.0)
        return share

    return bootstrapped(statistic, n, seed=seed, n_resamples=n_resamples)


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
