"""CUSUM: the fastest detector of a drop under control, in process (MONITORING.md 4, item 2)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.stats.baseline import SD_FLOOR, Baseline, Learner, State, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_OVERSHOOT = 1.166  # Siegmund's correction for looking at whole scores only


def arl(h: float, k: float, exponent: float | None = None) -> float:
    """Return the average run length to a false alarm of threshold h and allowance k, in scores.

    ARL = ((exp(t b) - 1) / t - b) / k with b = h + 1.166. For normal scores t = 2 k, which is Siegmund's formula
    (1985), (exp(2 k b) - 2 k b - 1) / (2 k^2).

    Args:
        h: the threshold, in standard deviations.
        k: the allowance delta / (2 sd), above 0.
        exponent: t where scores are not normal.

    Example:
        >>> round(arl(29.0, 0.127))
        65649
    """
    t = 2 * k if exponent is None else exponent
    b = h + _OVERSHOOT
    return (math.expm1(t * b) / t - b) / k


def threshold_for(target_arl: float, k: float, exponent: float | None = None) -> float:
    """Return the threshold h whose `arl` is the target, by bisection; about 0 where every h gives more.

    Example:
        >>> round(threshold_for(73_000, 0.127), 1)
        29.4
    """
    low, high = 0.0, 1.0
    while arl(high, k, exponent) < target_arl:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if arl(middle, k, exponent) < target_arl else (low, middle)
    return high


def tail_exponent(steps: Sequence[float]) -> float | None:
    """Return the t > 0 at which the mean of exp(t step) is 1 (Lundberg's exponent), None where there is none.

    A chance excursion of the sum of such steps above h has a probability of about exp(-t h). Scores crowd at 1 with
    a tail of bad ones, so their t is smaller than the 2 k of normal scores. Measured with k from delta = .05 and a
    target of 73,000 scores: with 2 k false alarms came every 5,300 (98 % perfect scores) to 38,000 (90 %), with t
    every 75,000 to 85,000.

    Args:
        steps: what each score of the baseline would add to the statistic; their mean is negative.

    Example:
        >>> round(tail_exponent([-1.0, -1.0, -1.0, 1.0]), 3)  # log 3
        1.099
    """
    top = max(steps, default=0.0)
    if top <= 0.0 or math.fsum(steps) >= 0.0:
        return None

    def excess(t: float) -> float:
        return math.fsum(math.exp(t * step) for step in steps) - len(steps)

    # At t = log(n) / top the largest step alone makes the mean 1.
    low, high = 0.0, max(math.log(len(steps)), 1e-9) / top
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    return high


class Cusum:
    """A one-sided CUSUM that learns its baseline first, then accumulates evidence of a drop.

    S <- max(0, S + w' (m0 - delta/2 - x) / sd), alarm at S >= h; w' are weights against the baseline's mean weight,
    sd is at least `SD_FLOOR`, h gives the wanted run length under the baseline's own skew (`arl`,
    `tail_exponent`). An alarm stays until S is back at 0, or until `reset`; the detector then begins anew, and the
    run length is promised anew from there. While the alarm lasts S stays at h or below, so that after a long drop
    good scores end it as soon as after a short one. Not thread-safe; asks no clock: whoever wants the time of the
    change notes the time at which `statistic` was last 0.

    Args:
        learn: scores of the baseline, at least 1. An error of its mean counts: in simulation a target of 1,000
            gave 1,180 on average after 500 scores, and fewer than 250 in one run of ten after 100.
        delta: the drop to be found, in score units, above 0.
        target_arl: scores between false alarms on average, for independent scores; real traffic has bursts, so
            this is a warning and never a page on its own.
        baseline: a frozen baseline; nothing is learnt then.

    Attributes:
        statistic: S, 0.0 while learning.
        threshold: h; None while learning.
        n: scores taken, those of the baseline among them.
        alarms: how often it has alarmed.
        changed_at: while it alarms, the number of the last score before the estimated change.

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
        if learn < 1 or not (delta > 0.0 and target_arl > 0.0):
            raise ValueError(f"learn, delta and target_arl are above 0, got {learn}, {delta}, {target_arl}")
        self.delta = delta
        self.target_arl = target_arl
        self.statistic = 0.0
        self.n = 0
        self.alarms = 0
        self.changed_at: int | None = None
        self.baseline: Baseline | None = None
        self.threshold: float | None = None
        self._learner = Learner(learn)
        self._zero_at = 0
        self._has_alarmed = False
        if baseline is not None:
            self._settle(baseline)

    @property
    def state(self) -> State:
        """Learning, ok, warning (half-way to the threshold) or alarm."""
        return state_of(self.statistic, self.threshold, has_alarmed=self._has_alarmed)

    def add(self, x: float, weight: float = 1.0) -> State:
        """Take one score with its weight (above 0) and return the state after it.

        Raises:
            ValueError: a score or weight that is not finite, or a weight that is not above 0; nothing has changed.
        """
        if not (math.isfinite(x) and math.isfinite(weight) and weight > 0.0):
            raise ValueError(f"a score and its weight are finite and the weight above 0, got {x} and {weight}")
        self.n += 1
        if self.threshold is None or self.baseline is None:
            self._learn_from(x, weight)
            return self.state
        self.statistic = max(0.0, self.statistic + self._step(self.baseline, x, weight))
        if self.statistic == 0.0:
            self.reset()
        elif self._has_alarmed:
            self.statistic = min(self.statistic, self.threshold)
        elif self.statistic >= self.threshold:
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

    def _step(self, baseline: Baseline, x: float, weight: float) -> float:
        drop = baseline.mean - self.delta / 2 - x
        return weight / baseline.mean_weight * drop / max(baseline.sd, SD_FLOOR)

    def _learn_from(self, x: float, weight: float) -> None:
        found = self._learner.add(x, weight)
        if found is None:
            return
        exponent = tail_exponent([self._step(found, x, w) for x, w in self._learner.pairs()])
        self._settle(replace(found, exponent=exponent))
        self._learner = Learner(1)

    def _settle(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self._zero_at = self.n
        k = self.delta / (2 * max(baseline.sd, SD_FLOOR))
        # Never above 2 k: a lucky baseline without a bad score must not make the detector more eager.
        exponent = min(2 * k, baseline.exponent) if baseline.exponent is not None else None
        self.threshold = threshold_for(self.target_arl, k, exponent)
