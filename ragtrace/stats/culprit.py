"""Names the cause of a drop: the system, the judge, or both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.stats.intervals import Z95

if TYPE_CHECKING:
    from ragtrace.stats.anchors import JudgeChange

Culprit = Literal["system", "judge", "both", "unknown"]
JUDGE_ERRORS = 3.0
"""Standard errors at which the judge has a part in a drop."""
SYSTEM_ERRORS = 1.8
"""Standard errors at which the rest of the drop is the system's."""
YOUNG_ERRORS = (0.9, 2.2)
"""The same beside a judge that changed, while the drop is young: below the first the judge alone is named, from the
second on both, and nobody between them."""
GROWING_ERRORS = 0.5
"""Errors by which the last three hours lie below the three before them while a young drop grows."""
LEAST_PART = 0.01
"""A part of a drop that is smaller, in score units, names nobody."""
LEAST_SHARE = 0.2
"""And so does a smaller share of the drop."""
MOST_HIDDEN = 0.5
"""The system is named alone only where at most this share of the drop can be the judge's, with 95 % confidence."""


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
    known before. ``ragtrace_dashboards.culprit`` says the same in PromQL.

    Args:
        drop: of the watched mean.
        judge: change of the judge; None where anchors are missing, too few or stale.
        is_down: whether lower is better.

    Example:
        >>> from ragtrace.stats.anchors import JudgeChange
        >>> def fell(by):
        ...     return Drop(day=by, day_error=0.01, fast=by, fast_error=0.02)
        >>> stricter = JudgeChange(mean=-0.08, low=-0.1, high=-0.06, n=200)
        >>> culprit(fell(0.08), stricter), culprit(fell(0.16), stricter), culprit(fell(0.08), None)
        ('judge', 'both', 'unknown')
        >>> culprit(fell(0.08), JudgeChange(mean=0.0, low=-0.01, high=0.01, n=200))
        'system'
    """
    if judge is None or judge.state == "learning" or drop.value <= 0.0:
        return "unknown"
    part = judge.mean if is_down else -judge.mean
    rest = drop.value - part
    least = max(LEAST_PART, LEAST_SHARE * drop.value)
    error = math.hypot(drop.error, judge.error)
    if part >= max(least, JUDGE_ERRORS * judge.error):
        few, many = YOUNG_ERRORS if drop.is_young else (SYSTEM_ERRORS, SYSTEM_ERRORS)
        if drop.is_growing or few * error <= rest < many * error:
            return "unknown"
        return "both" if rest >= max(least, many * error) else "judge"
    is_cleared = part + Z95 * judge.error <= max(MOST_HIDDEN * drop.value, LEAST_PART)
    return "system" if rest >= max(least, SYSTEM_ERRORS * error) and is_cleared else "unknown"
