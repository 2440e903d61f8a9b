"""The cause of a drop in Python, which the recording rules name in PromQL: the system, the judge, or both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragtrace.stats import JudgeChange
from ragtrace.stats.intervals import Z95
from ragtrace_dashboards.drift_rule.culprit import (
    FEW_ERRORS,
    GROWING_ERRORS,
    JUDGE_ERRORS,
    LEAST_PART,
    LEAST_SHARE,
    MANY_ERRORS,
    MOST_HIDDEN,
    SYSTEM_ERRORS,
)

Culprit = Literal["system", "judge", "both", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Baseline mean minus recent mean, in two windows, turned so that above 0 is worse.

    Errors are standard errors, the service's own wander included.

    Attributes:
        day: over the last day.
        day_error: of `day`.
        fast: over the last six hours.
        fast_error: of `fast`.
        rise: mean of the three hours before the last three, minus the mean of the last three.
        rise_error: of `rise`.
    """

    day: float
    day_error: float
    fast: float
    fast_error: float
    rise: float = 0.0
    rise_error: float = math.inf

    @property
    def is_young(self) -> bool:
        """Whether the day holds scores from before the drop: the six hours lie lower by more than an error."""
        return self.fast - self.day > self.fast_error

    @property
    def is_growing(self) -> bool:
        """Whether the six hours hold scores from before the drop too."""
        return self.is_young and self.rise > GROWING_ERRORS * self.rise_error

    @property
    def value(self) -> float:
        """The drop in the window that holds the fewest scores from before it."""
        return self.fast if self.is_young else self.day

    @property
    def error(self) -> float:
        """Standard error of `value`."""
        return self.fast_error if self.is_young else self.day_error


def culprit(drop: Drop, judge: JudgeChange | None, *, is_down: bool = False) -> Culprit:
    """Return who caused a drop of a mean.

    The judge's part is the change of its scores of the same runs, and the system's part is the rest. A part is
    named when it exceeds its standard errors, `LEAST_PART`, and `LEAST_SHARE` of the drop. ``unknown`` where there
    is no estimate of the judge, where it is too wide to tell, or while the drop still grows, since the rest is not
    known before.

    Args:
        drop: of the watched mean.
        judge: change of the judge; None where anchors are missing, too few or stale.
        is_down: whether lower is better.
    """
    if judge is None or judge.state == "learning" or drop.value <= 0.0:
        return "unknown"
    part = judge.mean if is_down else -judge.mean
    rest = drop.value - part
    least = max(LEAST_PART, LEAST_SHARE * drop.value)
    error = math.hypot(drop.error, judge.error)
    if part >= max(least, JUDGE_ERRORS * judge.error):
        few, many = (FEW_ERRORS, MANY_ERRORS) if drop.is_young else (SYSTEM_ERRORS, SYSTEM_ERRORS)
        if drop.is_growing or few * error <= rest < many * error:
            return "unknown"
        return "both" if rest >= max(least, many * error) else "judge"
    is_cleared = part + Z95 * judge.error <= max(MOST_HIDDEN * drop.value, LEAST_PART)
    return "system" if rest >= max(least, SYSTEM_ERRORS * error) and is_cleared else "unknown"
