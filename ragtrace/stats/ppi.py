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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredMean:
    """The corrected mean and the mean of the labels, with 95 % intervals.

    No mean or bound leaves the labels' scale.

    Attributes:
        mean: mean(label) + weight * (mean(score, unlabelled) - mean(score, labelled)).
        weight: how far the judge is trusted, PPI++'s lambda; 0 leaves the labels alone.
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

    Three things are ours, as the plain interval is too short where labels are few or nearly all the same. Residuals
    are those of the label left out (HC3). Four labels are added to the interval, two at either end of the scale
    (Agresti and Coull, 1998): they widen it and draw its middle from the end. And the weight is shrunk by its own
    uncertainty, so that a useless judge costs about 1 % of the squared error of the labels alone, not 3 %.

    Measured with 4 judges, 20 to 200 labels (two values, shares, grades), means from .5 to .985 of the scale and
    300 other scores: of 1,500 draws each, .94 or more of the intervals held the truth, mostly .96 to .99. Wider,
    but with its middle left in place, it held .76 where nearly all labels are the same. The added labels cost
    nothing at a mean of .5, and 8 to 27 % of the width at .9 to .97 with 50 labels.

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
    weight = _weight(y, f, rest)
    shift = weight * (float(rest.mean()) - float(f.mean())) if weight else 0.0
    beside = weight**2 * float(np.var(rest, ddof=1)) / n_rest if weight else 0.0
    labelled = float(y.mean())
    mean = min(max(labelled + shift, scale[0]), scale[1])
    low, high = _bounds(mean, n, _squares(y, f, weight), scale, n - 2, beside)
    labelled_low, labelled_high = _bounds(labelled, n, _squares(y, f, 0.0), scale, n - 1)
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


def _weight(y: Array, f: Array, rest: Array) -> float:
    """Return the weight of least variance, shrunk by its own uncertainty."""
    n, n_rest = len(y), len(rest)
    if n_rest < 2 or np.ptp(f) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    correlation = float(np.corrcoef(y, f)[0, 1])
    shrunk = max(0.0, 1.0 - 1.0 / max(n * correlation**2, 1e-9))
    together = np.concatenate([f, rest])
    covariance = float(np.cov(y, f, ddof=1)[0, 1])
    return shrunk * covariance / ((1.0 + n / n_rest) * float(np.var(together, ddof=1)))


def _squares(y: Array, f: Array, weight: float) -> float:
    """Return the sum of squared leave-one-out residuals of label - weight * score."""
    n = len(y)
    centred = f - f.mean()
    total = float((centred**2).sum())
    leverage = np.full(n, 1.0 / n)
    if weight and total > 0.0:
        leverage = np.minimum(leverage + centred**2 / total, 0.5)
    residuals = (y - y.mean() - weight * centred) / (1.0 - leverage)
    return float((residuals**2).sum())


def _bounds(
    mean: float, n: int, squares: float, scale: tuple[float, float], freedom: int, beside: float = 0.0
) -> tuple[float, float]:
    """Return the bounds around a mean of labels; `beside` is the variance of what was added to their mean."""
    found = widened(mean, n, squares, middle=(scale[0] + scale[1]) / 2.0, half=(scale[1] - scale[0]) / 2.0)
    return bounds(found._replace(variance=found.variance + beside), scale, freedom)
