"""The mean of a second judge's scores over all runs, from its scores of a part and a first judge's of all.

The estimator is the difference estimator of two-phase sampling (Saerndal, Swensson, Wretman, Model Assisted Survey
Sampling, 1992, chapter 9) with a cross-fitted curve from the first score to the second (PPI with cross-fitting,
Zrnic and Candes, 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.stats import intervals
from ragtrace.stats.intervals import ADDED_LABELS, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_PAIRS = 10
"""Runs with a value of the second judge, below which no mean is given."""
_FOLDS = 5
_STEPS = 15  # of Newton; from 0 it needs 5 to 8
_RIDGE = 0.1  # a curve from few pairs bends towards the flat one, which judges nothing and is unbiased as well
_MOST_LOGIT = 30.0
_PRIOR_RUNS = 2.0
_LEAST_EVENNESS = 0.75  # Kish's share where weights are at most three times another's: 4 * 3 / (1 + 3)^2
_LEAST_PART = 0.1  # of the variance, where nearly every run of the window was judged


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """One run of a random sample, with the scores of both judges as far as there are some.

    Attributes:
        weight: 1 / probability with which the run was sampled for the first judge.
        first: the first judge's score in [0, 1]; None where it gave none.
        probability: with which the second judge had to score it; None where it was not drawn for that judge.
        second: the second judge's score in [0, 1]; None where it gave none.
        is_missing: the second judge failed or was away; it did not say that there is nothing to score.
    """

    weight: float
    first: float | None
    probability: float | None = None
    second: float | None = None
    is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedMean:
    """Mean of the second judge's score over all runs, with a 95 % interval.

    Attributes:
        mean: in [0, 1].
        low: lower bound.
        high: upper bound.
        n: runs of the sample.
        n_second: of these the ones with a value of the second judge.
    """

    mean: float
    low: float
    high: float
    n: int
    n_second: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Expected score of the second judge at a score of the first one: a logistic curve.

    Example:
        >>> Curve(0.0, 0.0).at(np.array([0.2, 0.9])).tolist()
        [0.5, 0.5]
    """

    level: float
    slope: float

    def at(self, first: Array) -> Array:
        """Return the expected scores, in (0, 1)."""
        logit = np.clip(self.level + self.slope * (first - 0.5), -_MOST_LOGIT, _MOST_LOGIT)
        return np.asarray(1.0 / (1.0 + np.exp(-logit)), dtype=np.float64)


def fitted_curve(first: Array, second: Array) -> Curve:
    """Return the logistic curve of least deviance, drawn towards a flat one.

    Shares count as well as 0 and 1 (quasi-likelihood). Without pairs the curve is flat at .5.

    Args:
        first: scores of the first judge.
        second: scores of the second judge in [0, 1], of the same runs.

    Example:
        >>> curve = fitted_curve(np.array([0.1, 0.2, 0.8, 0.9] * 9), np.array([0.0, 0.0, 1.0, 1.0] * 9))
        >>> curve.at(np.array([0.1, 0.9])).round(1).tolist()
        [0.0, 1.0]
    """
    design = np.column_stack([np.ones_like(first), first - 0.5])
    ridge = _RIDGE * np.eye(2)
    beta = np.zeros(2)
    for _ in range(_STEPS):
        fit = Curve(float(beta[0]), float(beta[1])).at(first)
        bend = (design * (fit * (1.0 - fit))[:, None]).T @ design + ridge
        beta = beta + np.linalg.solve(bend, design.T @ (second - fit) - ridge @ beta)
    return Curve(float(beta[0]), float(beta[1]))


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs as columns; `second` is 0 where there is no value, and `first` where the first judge gave none."""

    weight: Array
    first: Array
    has_first: NDArray[np.bool_]
    probability: Array
    second: Array
    has_value: NDArray[np.bool_]
    has_answered: NDArray[np.bool_]
    is_drawn: NDArray[np.bool_]

    @classmethod
    def of(cls, runs: Sequence[JudgedRun]) -> _Runs:
        drawn = np.array([run.probability is not None for run in runs])
        return cls(
            np.array([run.weight for run in runs]),
            np.array([run.first or 0.0 for run in runs]),
            np.array([run.first is not None for run in runs]),
            np.array([run.probability or 1.0 for run in runs]),
            np.array([run.second or 0.0 for run in runs]),
            np.array([run.second is not None for run in runs]),
            drawn & np.array([not run.is_missing for run in runs]),
            drawn,
        )


def combined_mean(runs: Sequence[JudgedRun], past: Sequence[JudgedRun] = ()) -> CombinedMean | None:
    """Return the mean of the second judge's score over all runs that have one, and its 95 % interval.

    The sum of expected scores over all runs is corrected by the weighted differences between second and expected
    score of the part that was drawn. The expected score comes from a curve that was fitted without the run's own
    fold, so that the estimate is unbiased whatever the first judge is worth. Runs for which the second judge says
    that there is nothing to score (a refusal) leave the mean: numerator and denominator are both estimated.

    Within thirds of the first score the weights of the judged runs are calibrated to all runs there. So they stand
    for drawn runs too of which the second judge's answer is missing. This is right where the failure does not
    depend on the second score, given the first.

    The variance is that of the estimating equation, less that of the mean over all runs itself: the interval is for
    the runs of this window, not for others like them. Runs are drawn one by one, so that runs of one session count
    as any others here. The interval is Student's with four labels added at the ends of the scale, as
    `ragtrace.stats.ppi.powered_mean` adds them.

    Args:
        runs: of the window, each drawn on its own.
        past: earlier runs, from which the curve learns as well.

    Returns:
        None with fewer than 10 runs that have a value of the second judge.

    Raises:
        ValueError: a score outside [0, 1], a weight below 1, or a probability outside (0, 1].

    Example:
        >>> sure = [JudgedRun(weight=1.0, first=0.9) for _ in range(90)]
        >>> drawn = [JudgedRun(weight=1.0, first=0.9, probability=0.1, second=1.0) for _ in range(10)]
        >>> combined_mean(sure + drawn).mean > 0.99
        True
        >>> combined_mean(sure) is None
        True
    """
    _check(runs)
    n_second = sum(run.second is not None for run in runs)
    if n_second < LEAST_PAIRS:
        return None
    table = _Runs.of(runs)
    fold = np.arange(len(runs), dtype=np.int64) % _FOLDS
    worth, weighed = _expected(table, fold, _Runs.of(past) if past else None)
    return _estimate(table, worth, weighed, n_second)


def _check(runs: Sequence[JudgedRun]) -> None:
    for run in runs:
        scores = [score for score in (run.first, run.second) if score is not None]
        if not all(0.0 <= score <= 1.0 for score in scores):
            raise ValueError(f"a score lies between 0 and 1, got {scores}")
        if not 1.0 <= run.weight < math.inf:
            raise ValueError(f"a weight is 1 / probability and so at least 1, got {run.weight}")
        if run.probability is not None and not 0.0 < run.probability <= 1.0:
            raise ValueError(f"a probability lies above 0 and is at most 1, got {run.probability}")


def _expected(runs: _Runs, fold: NDArray[np.int64], past: _Runs | None) -> tuple[Array, Array]:
    """Return for each run the expected (score times has-a-score) and the expected has-a-score."""
    worth, weighed = np.empty(len(fold)), np.empty(len(fold))
    for number in range(_FOLDS):
        inside = fold == number
        if not inside.any():
            continue
        known = [(runs, ~inside & runs.has_answered)]
        if past is not None:
            known.append((past, past.has_answered))
        first, has_first, second, has_value = (
            np.concatenate([getattr(part, name)[chosen] for part, chosen in known])
            for name in ("first", "has_first", "second", "has_value")
        )
        pairs = has_first & has_value
        curve = fitted_curve(first[pairs], second[pairs])
        overall = (second.sum() + _PRIOR_RUNS / 2) / (has_value.sum() + _PRIOR_RUNS)
        without = ~has_first
        flat = (second[without].sum() + _PRIOR_RUNS * overall) / (has_value[without].sum() + _PRIOR_RUNS)
        share = [_share(has_value[group]) for group in (has_first, without)]
        weighed[inside] = np.where(runs.has_first[inside], share[0], share[1])
        worth[inside] = weighed[inside] * np.where(runs.has_first[inside], curve.at(runs.first[inside]), flat)
    return worth, weighed


def _share(has_value: NDArray[np.bool_]) -> float:
    return float((has_value.sum() + _PRIOR_RUNS / 2) / (len(has_value) + _PRIOR_RUNS))


def _estimate(runs: _Runs, worth: Array, weighed: Array, n_second: int) -> CombinedMean:
    group = _groups(runs)
    step = _calibrated(runs, group)
    # The differences of a group move the expectations of all its runs.
    worth = worth + _mean_by(group, step, runs.second * runs.has_value - worth)
    weighed = weighed + _mean_by(group, step, runs.has_value - weighed)
    bottom = float((runs.weight * weighed).sum())
    mean = min(max(float((runs.weight * worth).sum()) / bottom, 0.0), 1.0) if bottom > 0.0 else 0.0
    rest = worth - mean * weighed
    parts = runs.weight * rest + step * (runs.has_value * (runs.second - mean) - rest)
    total = float((parts**2).sum()) / max(bottom, 1.0) ** 2
    has_value = step * runs.has_value
    spread = float((has_value * (runs.second - mean) ** 2).sum() / max(has_value.sum(), 1.0))
    variance = max(total - spread / max(bottom, 1.0), _LEAST_PART * total)
    low, high = bounds(mean, variance, _effective(runs, has_value))
    return CombinedMean(mean=mean, low=low, high=high, n=len(worth), n_second=n_second)


def _groups(runs: _Runs) -> NDArray[np.int64]:
    """Return thirds of the first score, and runs without one; a group of few answers joins the largest."""
    thirds = np.quantile(runs.first[runs.is_drawn], [1 / 3, 2 / 3])
    group = np.where(runs.has_first, np.searchsorted(thirds, runs.first), len(thirds) + 1).astype(np.int64)
    answered = np.bincount(group, weights=runs.has_answered.astype(np.float64), minlength=len(thirds) + 2)
    few = np.flatnonzero(answered < LEAST_PAIRS)
    return np.where(np.isin(group, few), answered.argmax(), group)


def _calibrated(runs: _Runs, group: NDArray[np.int64]) -> Array:
    """Return weights of the answered runs that add up to the weights of all runs in each group."""
    inverse = runs.weight / runs.probability * runs.has_answered
    all_runs = np.bincount(group, weights=runs.weight)
    answered = np.bincount(group, weights=inverse)
    return np.asarray(inverse * (all_runs / np.maximum(answered, 1e-12))[group], dtype=np.float64)


def _mean_by(group: NDArray[np.int64], weights: Array, values: Array) -> Array:
    """Return for each run the weighted mean of the values in its group."""
    totals = np.maximum(np.bincount(group, weights=weights), 1e-12)
    return np.asarray((np.bincount(group, weights=weights * values) / totals)[group], dtype=np.float64)


def _effective(runs: _Runs, weights: Array) -> float:
    """Return the runs with a value, lowered by the inequality of the weights of both draws (Kish).

    Of the second draw only what exceeds weights up to three times another's counts: the variance knows these.
    """
    evenness = float(runs.weight.sum() ** 2 / (len(runs.weight) * (runs.weight**2).sum()))
    judged = float(weights.sum() ** 2 / max((weights**2).sum(), 1e-12))
    return max(min(float(runs.has_value.sum()) * evenness, judged / _LEAST_EVENNESS), 2.0)


def bounds(mean: float, variance: float, n: float) -> tuple[float, float]:
    """Return the 95 % bounds of a mean in [0, 1] from its variance and its effective number of labels, from 2 on.

    The middle moves by all four added labels. By three, the interval held up to .977 of the simulated days.

    Example:
        >>> low, high = bounds(0.9, 0.0009, 100)
        >>> round(low, 3), round(high, 3)
        (0.822, 0.947)
    """
    found = widened(mean, n, variance * n * n, middle=0.5, half=0.5, moved=ADDED_LABELS)
    return intervals.bounds(found, intervals.UNIT, max(int(n) - 1, 3))
