"""What a service says of itself: to gauges, the pressure, health checks, and whoever counts its traces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.host import file_identity
from ragtrace.model import SERVED
from ragtrace.sampling import Load
from ragtrace.telemetry.metrics.readings import LedgerReading, QueueReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ragtrace.queues import Queue
    from ragtrace.scoring import Ledger
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.scoring.limits import Blocked
    from ragtrace.service.limits import ServiceLimiter
    from ragtrace.settings import Settings

    Points = list[tuple[float, dict[str, str]]]


class Readings:
    """Reads queue, accounts, limits and canaries; from any thread.

    Args:
        settings: who scores, and under which judge.
        ledger: the accounts of this process.
        queue: what waits, and the accounts of a spool.
        limiter: before the judge, where it has limits.
        canaries: returns this process's, None where there are none.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        ledger: Ledger,
        queue: Queue,
        limiter: ServiceLimiter | None,
        canaries: Callable[[], Canaries | None],
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._queue = queue
        self._limiter = limiter
        self._canaries = canaries

    def queue(self) -> list[QueueReading]:
        """Return how much waits: here, and in the spool."""
        spool = self._spool()
        return [
            QueueReading(
                size=part.size,
                capacity=part.capacity,
                oldest_s=part.oldest_s,
                spool=spool if part.is_shared else None,
            )
            for part in self._queue.parts()
        ]

    def load(self) -> Load | None:
        """Return what stands behind the queue, a spool's by its own accounts; None before these are known."""
        size, capacity = self._queue.size, self._queue.capacity
        if not self._queue.is_shared:
            return Load(size=size, capacity=capacity, served=_served(self._ledger.counts()))
        accounts = self._queue.accounts()
        if accounts is None:
            return None
        return Load(size=size, capacity=capacity, served=_served(accounts.ends), wanted=accounts.wanted)

    def ledger(self, *, is_fresh: bool = False) -> list[LedgerReading]:
        """Return the accounts of this process and, where it scores a spool, those that all of its processes share.

        The spool's are as of the last look or, fresh, as they are now.
        """
        ends, pending = self._ledger.read()
        readings = [LedgerReading(ends=ends, pending=pending)]
        if self._settings.spool is not None and self._settings.scorer == "thread":
            spool = self._queue.snapshot() if is_fresh else self._queue.accounts()
            if spool is not None:
                readings.append(LedgerReading(ends=spool.ends, pending=spool.pending, spool=self._spool()))
        return readings

    def accounts(self, *, is_fresh: bool = False) -> tuple[Mapping[tuple[str, str], int], int]:
        """Return the ends by (state, reason), and the number of pending traces, for `ledger` in one.

        Beside the spool's accounts ``spooled`` is no end but a way there, and left out.
        """
        own, *shared = self.ledger(is_fresh=is_fresh)
        counts, pending = Counter(own.ends), own.pending
        for spool in shared:
            counts.pop(("spooled", ""), None)
            counts.update(spool.ends)
            pending += spool.pending
        return counts, pending

    def _spool(self) -> str | None:
        path = self._settings.spool
        return None if path is None else file_identity(Path(path))

    def blocked(self) -> Blocked | None:
        """Return why no call of the judge passes, None when one may."""
        return self._limiter.current.blocked() if self._limiter is not None else None

    def budget_left(self) -> Points:
        """Return what is left of today's budgets: dollars and tokens, each with its unit."""
        if self._limiter is None:
            return []
        reading = self._limiter.current.reading()
        left = {"USD": reading.budget_usd, "token": reading.budget_tokens}
        about = {semconv.JUDGE_MODEL: self._settings.judge}
        return [(float(n), {**about, semconv.UNIT: unit}) for unit, n in left.items() if n is not None]

    def breaker_state(self) -> Points:
        """Return the judge's circuit breaker: 0 closed, 1 half-open, 2 open or held."""
        if self._limiter is None:
            return []
        return [(float(self._limiter.current.reading().breaker), {semconv.JUDGE_MODEL: self._settings.judge})]

    def canary_gap(self) -> Points:
        """Return the canaries' gap; nothing before a round succeeded."""
        canaries = self._canaries()
        return [(value, dict(about)) for value, about in canaries.points()] if canaries else []


def _served(ends: Mapping[Any, int]) -> int:
    return sum(n for (state, _), n in ends.items() if state in SERVED)
