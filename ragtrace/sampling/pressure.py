"""Lowers the sampling probability when there is more than can be scored, window by window.

Dropping what does not fit biases a mean, since the busy hours are not like the others; a lower probability does
not, as each score's weight is 1 / probability. In simulation (SCORING.md 1) a limit of 5 a minute that drops was
off by .054, the same limit by thinning by .0001.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 60.0
FLOOR = 0.001  # below it one score would speak for more than 1,000 traces
_ROOM_SHARE = 0.5  # of the room left that one window may fill
_LAG_WINDOWS = 10  # a queue may hold so many windows of service, so that a score is not older than ten minutes
_SMALLEST_ROOM = 200  # and always so many units: before anything was served nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What stands behind the queue at the beginning of a window.

    Attributes:
        size: units waiting.
        capacity: most units that may wait.
        served: units that ended since the service began.
        affordable: units that budgets pay for until the window's end; infinite without budgets.
    """

    size: float
    capacity: float
    served: int
    affordable: float = math.inf


class Pressure:
    """The share of the asked-for probability that one window can bear; fixed before the window's first draw.

    The window's target is what was served in the last one and half of the room left in a queue of ten windows of
    service, and no more than budgets pay for; the factor is target / expected traces, at most 1. Thread-safe;
    within a window `factor` is a comparison and an addition.

    Args:
        load: read once a window.
        window_s: its length in seconds.
        clock: monotonic seconds.

    Example:
        >>> pressure = Pressure(lambda: Load(size=0, capacity=2_048, served=0))
        >>> pressure.factor(wanted=0.05)
        1.0
    """

    def __init__(
        self,
        load: Callable[[], Load],
        *,
        window_s: float = WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._ends_at = -math.inf
        self._wanted = 0.0  # units that this window's traces would make at factor 1
        self._served: int | None = None
        self._factor = 1.0

    def factor(self, wanted: float) -> float:
        """Note a trace that wants to be drawn at a probability, and return this window's factor in [0, 1]."""
        now = self._clock()
        with self._lock:
            if now >= self._ends_at:
                self._turn(now)
            self._wanted += wanted
            return self._factor

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._ends_at, self._wanted, self._served, self._factor = -math.inf, 0.0, None, 1.0

    def _turn(self, now: float) -> None:
        load = self._load()
        since = 0 if self._served is None else max(load.served - self._served, 0)
        missed = max((now - self._ends_at) / self._window_s, 0.0) if self._served is not None else 0.0
        expected = self._wanted / (1.0 + missed)  # of one window, where several went by without a trace
        served = since / (1.0 + missed)
        room = min(load.capacity, max(_LAG_WINDOWS * served, _SMALLEST_ROOM)) - load.size
        target = min(served + _ROOM_SHARE * max(room, 0.0), load.affordable)
        self._factor = 1.0 if expected <= target else max(target, 0.0) / expected
        self._served, self._wanted, self._ends_at = load.served, 0.0, now + self._window_s
