"""Prediction-powered inference of a mean from labels and a judge's scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.stats.intervals import bounds, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


_NOTHING = 1e-12  # of a sum of squares: less is what rounding leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredMean:
    """The corrected mean and the mean of the labels, with 95 % intervals.

    No mean or bound leaves the labels' scale.

    Attributes:
        mean: mean of label + weight * (mean(score, unlabelled) - score) over the labelled units.
        weight: how far the judge is trusted, PPI++'s lambda, on average over the units; 0 leaves the labels alone.
        labelled_mean: mean of the labels alone, with its own bounds.
        n: labelled units.
        n_unlabelled: units with a score alone.
    """

    mean: float
    low: float
    high: float
    weight: float
    labelled_mean: float
    labelled_low: float
    labelled_high: float
    n: int
    n_unlabelled: int


def powered_mean(
    labels: Sequence[float],
    scores: Sequence[float],
    unlabelled_scores: Sequence[float],
    *,
    scale: tuple[float, float],
) -> PoweredMean | None:
    """Return the mean of human labels over all units, with a valid interval.

    Valid whatever the judge is worth, provided that the labelled units are a random draw from all of them: a judge
    that does not go with the labels gets the weight 0. The judge's scale does not matter. The weight that costs the
    least variance is cov(label, score) / ((1 + n / N) var(score)) (Angelopoulos, Duchi, Zrnic, PPI++, 2023).

    Four things are ours, as the plain interval is too short where labels are few or nearly all the same.

    - The score of a unit has the weight that the other units give (cross-fitting). One weight from all labels is
      small just where they came out too good: it put the mean of 20 labels 0.02 to 0.03 too high where 0.9 are so.
    - A weight is shrunk by its own uncertainty, so that a useless judge costs 1 to 2 % of the squared error of 20
      labels alone, and less of more labels.
    - Residuals are those of the label left out.
    - Four labels are added to the interval, two at either end of the scale (Agresti and Coull, 1998). They widen it
      and draw its middle from the end.

    Measured with 4 judges, 20 to 200 labels (two values, shares, grades), means from 0.5 to 0.985 of the scale and
    300 other scores: of 1,500 draws each, 0.94 or more of the intervals held the truth, mostly 0.96 to 0.99. The
    mean of 20 labels was off by 0.005 of the scale at most, and that of 50 by 0.002; the draws leave as much open.
    Where hardly one of 20 labels differs, at a mean of 0.985, the squared error is up to 7 % above that of the
    labels alone. The added labels make the interval of 50 labels of two values 10 to 36 % wider at a mean of 0.9,
    and 34 to 48 % at 0.95.

    Args:
        labels: of the labelled units.
        scores: the judge's, of the same units.
        unlabelled_scores: the judge's, of all other units; without any, the labels stand alone.
        scale: lowest and highest possible label.

    Returns:
        None with fewer than 4 labels.

    Raises:
        ValueError: labels and scores of different length, a value that is not finite, or a label off the scale.

    Example:
        >>> labels, scores = [1, 0, 1, 1, 0, 1, 1, 0] * 4, [0.9, 0.3, 0.8, 0.7, 0.4, 0.9, 0.8, 0.2] * 4
        >>> found = powered_mean(labels, scores, [0.9, 0.8, 0.3] * 50, scale=(0, 1))
        >>> found.labelled_mean, round(found.mean, 2)
        (0.625, 0.68)
        >>> found.high - found.low < found.labelled_high - found.labelled_low
        True
    """
    y, f, rest = (np.asarray(side, dtype=np.float64) for side in (labels, scores, unlabelled_scores))
    if y.shape != f.shape:
        raise ValueError(f"every label has one score, got {len(y)} and {len(f)}")
    if not all(np.isfinite(side).all() for side in (y, f, rest)):
        raise ValueError("a label or score must be finite")
    if len(y) and not scale[0] <= y.min() <= y.max() <= scale[1]:
        raise ValueError(f"a label is off the scale of {scale[0]:g} to {scale[1]:g}")
    n, n_rest = len(y), len(rest)
    if n < 4:
        return None
    weights = _weights(y, f, rest)
    weight = float(weights.mean())
    corrected = y + weights * (rest.mean() - f) if weight else y
    beside = weight**2 * float(np.var(rest, ddof=1)) / n_rest if weight else 0.0
    labelled = float(y.mean())
    mean = min(max(float(corrected.mean()), scale[0]), scale[1])
    low, high = _bounds(mean, n, _squares(corrected, f if weight else None), scale, n - 2, beside)
    labelled_low, labelled_high = _bounds(labelled, n, _squares(y), scale, n - 1)
    return PoweredMean(
        mean=mean,
        low=low,
        high=high,
        weight=weight,
        labelled_mean=labelled,
        labelled_low=labelled_low,
        labelled_high=labelled_high,
        n=n,
        n_unlabelled=n_rest,
    )


def _weights(y: Array, f: Array, rest: Array) -> Array:
    """Return for each labelled unit the weight of least variance among the others.

    It is shrunk by its own uncertainty, the spread of the products of which the covariance is the mean.
    """
    n, n_rest = len(y) - 1, len(rest)
    if n_rest < 2:
        return np.zeros(len(y))
    y, rest, f = y - y.mean(), rest - f.mean(), f - f.mean()
    a, b = _others(y) / n, _others(f) / n
    yy, ff, yf = _others(y * y) - n * a * a, _others(f * f) - n * b * b, _others(y * f) - n * a * b
    products = (
        _others(y * y * f * f)
        - 2.0 * (b * _others(y * y * f) + a * _others(y * f * f))
        + (b * b * _others(y * y) + 4.0 * a * b * _others(y * f) + a * a * _others(f * f))
        - 3.0 * n * a * a * b * b
    )  # sum of ((y - a) (f - b))^2 over the others
    both = n + n_rest
    spread = _others(f * f) + np.dot(rest, rest) - (_others(f) + rest.sum()) ** 2 / both
    varies = (yy > _NOTHING * np.dot(y, y)) & (ff > _NOTHING * np.dot(f, f)) & (yf**2 > _NOTHING * yy * ff)
    yf, spread = np.where(varies, yf, 1.0), np.where(varies, spread, 1.0)
    shrunk = np.clip(1.0 - (products / yf**2 - 1.0 / n), 0.0, 1.0)
    return np.where(varies, shrunk * (yf / (n - 1)) / ((1.0 + n / n_rest) * spread / (both - 1)), 0.0)


def _others(values: Array) -> Array:
    """Return for each value the sum of all others."""
    sums: Array = values.sum() - values
    return sums


def _squares(parts: Array, f: Array | None = None) -> float:
    """Return the sum of squared residuals, each of the mean of the others; `f` are scores with a weight."""
    n = len(parts)
    squares = ((parts - parts.mean()) * n / (n - 1)) ** 2
    if f is not None:
        centred = (f - f.mean()) ** 2
        squares = squares / (1.0 - np.minimum(centred / centred.sum(), 0.5))
    return float(squares.sum())


def _bounds(
    mean: float, n: int, squares: float, scale: tuple[float, float], freedom: int, beside: float = 0.0
) -> tuple[float, float]:
    """Return the bounds around a mean of labels; `beside` is the variance of what was added to their mean."""
    found = widened(mean, n, squares, middle=(scale[0] + scale[1]) / 2.0, half=(scale[1] - scale[0]) / 2.0)
    return bounds(found._replace(variance=found.variance + beside), scale, freedom)
