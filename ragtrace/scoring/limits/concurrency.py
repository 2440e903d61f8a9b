"""How many calls a judge is given at once: one more while all goes well, half at a 429 (AIMD)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_GROWN = 2.0  # a round so many times slower than the best says that calls wait for each other
LEAST_S = 0.001  # a best of nothing would make every round slow
_FORGOTTEN = 1.01  # a round: a judge that became slow for good is learnt in some 200 rounds


@dataclass(slots=True, kw_only=True)
class Concurrency:
    """The number of calls under way that a judge bears; not thread-safe.

    A round is as many successes as the limit. A round without trouble adds 1 if the limit was in use; one that took
    twice as long as the best takes a tenth. A 429 or a timeout halves it at once, but calls that had begun before
    the last cut speak of the old limit.

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
    _best_s: float = field(default=math.inf)
    _latencies_s: list[float] = field(default_factory=list)
    _most: int = field(default=0)

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
        self._latencies_s.append(max(now_s - began_s, LEAST_S))
        self._most = max(self._most, under_way)
        if len(self._latencies_s) < self.allowed:
            return
        mean_s, most = sum(self._latencies_s) / len(self._latencies_s), self._most
        self._latencies_s, self._most = [], 0
        self._best_s = min(self._best_s * _FORGOTTEN, mean_s)
        if mean_s > _GROWN * self._best_s:
            self._cut(0.9, began_s, now_s)
        elif most * 2 > self.limit:
            self.limit = min(self.limit + 1.0, float(self.high))

    def overloaded(self, *, began_s: float, now_s: float) -> None:
        """Take a 429 or a timeout into account."""
        self._cut(0.5, began_s, now_s)

    def _cut(self, share: float, began_s: float, now_s: float) -> None:
        if began_s >= self._cut_at_s:
            self.limit = max(self.limit * share, float(self.low))
            self._cut_at_s = now_s
