"""Weighted sums of scores, from which mean, effective n and interval follow (MONITORING.md 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragtrace.stats.intervals import Z95, Interval

# A perfect window has variance 0 and would claim certainty after a handful of answers.
VARIANCE_FLOOR = 0.02


@dataclass(slots=True)
class WeightedSums:
    """Sums over scores x with weights w = 1 / inclusion probability.

    Example:
        >>> sums = WeightedSums()
        >>> sums.add(1.0, 1.0); sums.add(0.0, 3.0)
        >>> sums.mean
        0.25
    """

    n: int = 0
    w: float = 0.0
    wx: float = 0.0
    w2: float = 0.0
    w2x: float = 0.0
    w2x2: float = 0.0
    low_w: float = 0.0

    def add(self, x: float, weight: float = 1.0, *, is_low: bool = False) -> None:
        """Add one score; `is_low` says that it missed its threshold."""
        square = weight * weight
        self.n += 1
        self.w += weight
        self.wx += weight * x
        self.w2 += square
        self.w2x += square * x
        self.w2x2 += square * x * x
        if is_low:
            self.low_w += weight

    @property
    def mean(self) -> float | None:
        """Hajek estimate of the population's mean, sum wx / sum w; None without scores."""
        return self.wx / self.w if self.w > 0 else None

    @property
    def n_eff(self) -> float:
        """Effective number of scores, (sum w)^2 / sum w^2; 0.0 without scores."""
        return self.w * self.w / self.w2 if self.w2 > 0 else 0.0

    @property
    def variance_of_mean(self) -> float | None:
        """Linearised variance of the mean, with divisor n (not n - 1); None without scores."""
        m = self.mean
        if m is None:
            return None
        return max(self.w2x2 - 2 * m * self.w2x + m * m * self.w2, 0.0) / (self.w * self.w)

    def interval(self, low: float = 0.0, high: float = 1.0, z: float = Z95) -> Interval:
        """Return the mean with its bounds, clipped to [low, high]; bounds are None below two scores."""
        m, variance, n_eff = self.mean, self.variance_of_mean, self.n_eff
        if m is None or variance is None:
            return Interval(None, None, None)
        if self.n < 2:
            return Interval(m, None, None)
        half = z * math.sqrt(max(n_eff * variance, VARIANCE_FLOOR) / n_eff)
        return Interval(m, max(low, m - half), min(high, m + half))
