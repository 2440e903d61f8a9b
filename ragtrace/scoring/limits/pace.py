"""The units a minute that today's budgets pay for, so that a budget lasts the day."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

UNHELD_SHARE = 0.01  # of a day's budget that is spent as it comes: a script ends long before its day does
_MINUTE_S = 60.0
_KEPT = 0.99  # of a window's counts in the next: a new prompt or judge costs what it costs within hours


class Purse(NamedTuple):
    """One budget, in units of its own.

    Attributes:
        budget: of a day.
        today: spent since midnight, UTC.
        ever: spent since the books began.
    """

    budget: float
    today: float
    ever: float


class Pace:
    """Shares what is left of each budget among the minutes left of its day; the tighter budget counts.

    A unit costs what was spent for each unit that was served lately, over all processes that share the books. Until
    one was served, and while less than a hundredth of the budget is spent, nothing is held back. Ask it once a
    window. Not thread-safe.

    Example:
        >>> pace = Pace()
        >>> pace.units_per_minute([Purse(10_000, 0, 0)], served=0, waiting=0, left_s=86_400.0)
        inf
        >>> pace.units_per_minute([Purse(10_000, 400, 400)], served=4, waiting=0, left_s=48 * 60.0)
        2.0
    """

    def __init__(self) -> None:
        self._last: tuple[float, ...] = ()  # served, then spent of each budget
        self._lately: list[float] = []  # the same of the last windows

    def units_per_minute(self, purses: Sequence[Purse], *, served: int, waiting: float, left_s: float) -> float:
        """Return the units that may begin in a minute; infinite where no budget binds.

        Args:
            purses: the budgets, in the same order each time.
            served: units that ended so far.
            waiting: units that wait to be scored, and will be paid for first.
            left_s: seconds until the budgets begin anew.
        """
        now = (float(served), *(purse.ever for purse in purses))
        # A count that fell is of a queue or of books that were replaced.
        grown = [max(new - old, 0.0) for new, old in zip(now, self._last or now, strict=True)]
        self._lately = [_KEPT * old + new for old, new in zip(self._lately or [0.0] * len(now), grown, strict=True)]
        self._last = now
        units, *spent = self._lately
        found = [_units(purse, each, units) for purse, each in zip(purses, spent, strict=True)]
        return max(min(found, default=math.inf) - waiting, 0.0) * _MINUTE_S / max(left_s, _MINUTE_S)


def _units(purse: Purse, spent: float, served: float) -> float:
    """Return the units that the rest of a budget pays for, at what so many units cost lately."""
    rest = purse.budget - purse.today
    if rest <= 0.0:
        return 0.0
    if purse.today < UNHELD_SHARE * purse.budget or served <= 0.0 or spent <= 0.0:
        return math.inf
    return rest * served / spent
