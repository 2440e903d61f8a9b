"""A statistic with an interval, or the reason why it is not defined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.stats.intervals import RESAMPLES, clustered_interval, drawn, percentile_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ragtrace.stats.intervals import Ends

DEFINED_SHARE = 0.9  # of the resamples; with fewer the bounds would speak of the lucky ones alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A statistic over `n` units; either `value` or `reason` is None.

    Attributes:
        value: the statistic; never NaN.
        low: lower bound of the 95 % interval, None where there is none.
        high: upper bound.
        n: units that entered.
        reason: why there is no value, as half a sentence for a person.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a figure has either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a figure must be finite, got {self.value}")

    def to_json(self) -> dict[str, object]:
        """Return n, and value with bounds or the reason, as JSON-ready values."""
        if self.value is None:
            return {"n": self.n, "value": None, "reason": self.reason}
        return {"n": self.n, "value": self.value, "low": self.low, "high": self.high}


def resampled(n: int, seed: int, n_resamples: int = RESAMPLES) -> Iterator[NDArray[np.float64]]:
    """Yield bootstrap weights in blocks of rows, the counts of each unit.

    One stream of ``numpy.random.default_rng(seed)``, so that a block's size changes nothing.
    """
    rng = np.random.default_rng(seed)
    for rows in drawn(rng, n, n_resamples):
        yield np.stack([np.bincount(row, minlength=n) for row in rows]).astype(np.float64)


def bootstrapped(
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    n: int,
    *,
    seed: int,
    n_resamples: int = RESAMPLES,
    undefined: str = "the statistic is not defined",
) -> Figure:
    """Return a statistic of weights with its interval; `undefined` is the reason."""
    value = float(statistic(np.ones((1, n)))[0])
    if not math.isfinite(value):
        return Figure(n=n, reason=undefined)
    low, high = bounds(statistic, n, seed=seed, n_resamples=n_resamples)
    return Figure(value=value, low=low, high=high, n=n)


def mean_figure(values: Sequence[float], undefined: str, *, ends: Ends) -> Figure:
    """Return the mean with its interval; `ends` are the lowest and highest value, `undefined` is the reason."""
    found = clustered_interval(values, ends=ends)
    if found.mean is None:
        return Figure(n=0, reason=undefined)
    return Figure(value=found.mean, low=found.low, high=found.high, n=len(values))


def bounds(
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], n: int, *, seed: int, n_resamples: int
) -> tuple[float | None, float | None]:
    """Return the 95 % percentile bootstrap bounds of a statistic of weights.

    Args:
        statistic: takes weights of shape (B, n), returns B values, NaN where a resample leaves it undefined.
        n: number of units that are resampled; with fewer than 2 there are no bounds.
        seed: of the resamples.
        n_resamples: their number; 0 for no bounds.

    Returns:
        Two None where fewer than 90 % of the resamples define the statistic.
    """
    if n < 2 or n_resamples < 1:
        return None, None
    values = np.concatenate([statistic(weights) for weights in resampled(n, seed, n_resamples)])
    defined = values[np.isfinite(values)]
    if len(defined) < DEFINED_SHARE * n_resamples:
        return None, None
    return percentile_bounds(defined)
