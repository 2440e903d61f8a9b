"""CUSUM: the fastest detector of a drop under control, in process (MONITORING.md 4, item 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

State = Literal["learning", "ok", "warning", "alarm"]
STATE_NUMBERS: dict[State, int] = {"learning": 0, "ok": 1, "warning": 2, "alarm": 3}
SD_FLOOR = 0.1  # a baseline of all 1.0 has none, and one bad answer would be an alarm
WARNING_SHARE = 0.5  # of the threshold


@dataclass(frozen=True, slots=True)
class Baseline:
    """What "normal" is: mean and standard deviation over n scores."""

    mean: float
    sd: float
    n: int


def arl(h: float, k: float) -> float:
    """Return Siegmund's average run length to a false alarm of threshold h and allowance k, in scores.

    ARL = (exp(2 k b) - 2 k b - 1) / (2 k^2) with b = h + 1.166 (Siegmund 1985).

    Example:
        >>> round(arl(29.0, 0.127))
        65649
    """
    b = h + 1.166
    return (math.exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k)


def threshold_for(target_arl: float, k: float) -> float:
    """Return the threshold h whose `arl` is the target, by bisection; k > 0."""
    low, high = 0.0, 1.0
    while arl(high, k) < target_arl:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if arl(middle, k) < target_arl else (low, middle)
    return high


class Cusum:
    """A one-sided CUSUM that learns its baseline first, then accumulates evidence of a drop.

    S <- max(0, S + w' (m0 - delta/2 - x) / sd), alarm at S >= h, with h from Siegmund's run length; w' are weights
    scaled to mean 1 over the baseline. After an alarm the statistic stays until `reset`.

    Args:
        learn: scores of the baseline.
        delta: the drop to be found, in score units.
        target_arl: scores between false alarms on average, for independent scores; real traffic has bursts, so
            this is a warning and never a page on its own.
        baseline: a frozen baseline; nothing is learnt then.

    Example:
        >>> cusum = Cusum(learn=50)
        >>> for i in range(50): _ = cusum.add(0.9 if i % 2 else 1.0)
        >>> [cusum.state, *(cusum.add(0.3) for _ in range(6))][-1], cusum.changed_at
        ('alarm', 50)
    """

    def __init__(
        self,
        *,
        learn: int = 500,
        delta: float = 0.05,
        target_arl: float = 73_000.0,
        baseline: Baseline | None = None,
    ) -> None:
        self.delta = delta
        self.target_arl = target_arl
        self.statistic = 0.0
        self.n = 0
        self.alarms = 0
        self.changed_at: int | None = None
        self.baseline = baseline
        self.threshold: float | None = None
        self._learn = learn
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0
        self._weights = 0.0
        self._zero_at = 0
        self._has_alarmed = False
        if baseline is not None:
            self._settle(baseline)

    @property
    def state(self) -> State:
        """Learning, ok, warning (half-way to the threshold) or alarm."""
        if self.threshold is None:
            return "learning"
        if self._has_alarmed:
            return "alarm"
        return "warning" if self.statistic >= WARNING_SHARE * self.threshold else "ok"

    def add(self, x: float, weight: float = 1.0) -> State:
        """Take one score and return the state after it."""
        self.n += 1
        if self.threshold is None or self.baseline is None:
            self._learn_from(x, weight)
            return self.state
        scaled = weight / self._mean_weight
        drop = (self.baseline.mean - self.delta / 2 - x) / max(self.baseline.sd, SD_FLOOR)
        self.statistic = max(0.0, self.statistic + scaled * drop)
        if self.statistic == 0.0 and not self._has_alarmed:
            self._zero_at = self.n
        if self.statistic >= self.threshold and not self._has_alarmed:
            self._has_alarmed = True
            self.alarms += 1
            self.changed_at = self._zero_at
        return self.state

    def reset(self) -> None:
        """Forget the evidence and any alarm; the baseline stays."""
        self.statistic = 0.0
        self._has_alarmed = False
        self.changed_at = None
        self._zero_at = self.n

    @property
    def _mean_weight(self) -> float:
        return self._weights / self._count if self._count else 1.0

    def _learn_from(self, x: float, weight: float) -> None:
        """Welford's running mean and variance, with weights (West 1979)."""
        self._count += 1
        self._weights += weight
        step = x - self._mean
        self._mean += step * weight / self._weights
        self._squares += weight * step * (x - self._mean)
        if self._count >= self._learn:
            sd = math.sqrt(max(self._squares / self._weights, 0.0))
            self._settle(Baseline(self._mean, sd, self._count))

    def _settle(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self._zero_at = self.n
        self.threshold = threshold_for(self.target_arl, self.delta / (2 * max(baseline.sd, SD_FLOOR)))
