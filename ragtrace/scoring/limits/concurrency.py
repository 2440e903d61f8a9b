"""How many calls a judge is given at once: one more while all goes well, half at a 429 (AIMD)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_FAST, _SLOW = 0.2, 0.02  # shares of a new latency in the two running means
_GROWN = 2.0  # a fast mean of so many slow ones says that calls wait for each other
_LEAST_LATENCIES = 10


@dataclass(slots=True, kw_only=True)
class Concurrency:
    """The number of calls under way that a judge bears; not thread-safe.

    A success of a call adds 1 / limit while the limit is in use, so one each round. A 429 or a timeout halves it,
    and a latency that has doubled takes a tenth; each at most once a round: calls that had begun before the last
    cut speak of the old limit.

    Attributes:
        low: never fewer.
        high: never more.
        limit: the present number, with its fraction.

    Example:
        >>> calls = Concurrency()
        >>> calls.overloaded(began_s=5.0, now_s=6.0), calls.allowed
        (None, 4)
        >>> calls.overloaded(began_s=5.5, now_s=6.1), calls.allowed
        (None, 4)
    """

    limit: float = 8.0
    low: int = 1
    high: int = 64
    _cut_at_s: float = field(default=-math.inf)
    _fast_s: float = field(default=0.0)
    _slow_s: float = field(default=0.0)
    _seen: int = field(default=0)

    @property
    def allowed(self) -> int:
        """Calls that may be under way at once."""
        return int(self.limit)

    def succeeded(self, *, began_s: float, now_s: float, under_way: int) -> None:
        """Take a success into account.

        Args:
            began_s: when the call began.
            now_s: when it ended.
            under_way: calls at that moment, this one among them; a limit that is not in use does not grow.
        """
        if self._has_slowed(now_s - began_s) and self._cut(0.9, began_s, now_s):
            return
        if under_way * 2 > self.limit:
            self.limit = min(self.limit + 1.0 / self.limit, float(self.high))

    def overloaded(self, *, began_s: float, now_s: float) -> None:
        """Take a 429 or a timeout into account."""
        self._cut(0.5, began_s, now_s)

    def _cut(self, share: float, began_s: float, now_s: float) -> bool:
        if began_s < self._cut_at_s:
            return False
        self.limit = max(self.limit * share, float(self.low))
        self._cut_at_s = now_s
        return True

    def _has_slowed(self, latency_s: float) -> bool:
        """Learn a latency, and return whether the last ones are twice the usual."""
        self._seen += 1
        if self._seen == 1:
            self._fast_s = self._slow_s = latency_s
        self._fast_s += _FAST * (latency_s - self._fast_s)
        self._slow_s += _SLOW * (latency_s - self._slow_s)
        return self._seen >= _LEAST_LATENCIES and self._fast_s > _GROWN * self._slow_s
