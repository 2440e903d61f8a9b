"""The default queue, a bounded deque in memory."""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.queues.base import MAX_ATTEMPTS, Job, QueueStats

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.model import End
    from ragtrace.queues.base import Ended, Unit


class _Delayed(NamedTuple):
    due_s: float
    size: int
    job: Job


def ignore_end(state: End, reason: str) -> None:
    """Ignore the end of a unit."""


class MemoryQueue:
    """First in, first out; a full queue evicts its oldest units.

    Jobs that were given back count in both bounds. `put` returns the units that it evicts; a unit that a job given
    back evicts ends as ``dropped queue_full``. Thread-safe. Its units are lost with the process.

    Args:
        capacity: most units.
        capacity_bytes: most bytes of text.
        ended: called with state and reason of each end in this queue.
        clock: monotonic seconds.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from ragtrace.queues.base import Unit
        >>> queue = MemoryQueue(capacity=1)
        >>> queue.put(Unit(record=RagRecord(id="1")))
        []
        >>> [unit.record.id for unit in queue.put(Unit(record=RagRecord(id="2")))]
        ['1']
    """

    is_shared = False

    def __init__(
        self,
        capacity: int = 2_048,
        capacity_bytes: int = 33_554_432,
        *,
        ended: Ended = ignore_end,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._ended = ended
        self._clock = clock
        self._wake: Callable[[], None] | None = None
        self._units: deque[tuple[Unit, int]] = deque()
        self._bytes = 0
        self._is_closed = False
        self._later: list[_Delayed] = []  # by due time
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Units waiting, those to be tried again among them."""
        return len(self._units) + len(self._later)

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set the function that `put` calls in its thread."""
        self._wake = wake

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the evicted ones, or the unit itself if too large."""
        size = unit.size_bytes
        if size > self.capacity_bytes:
            return [unit]
        with self._lock:
            if self._is_closed:
                return [unit]
            self._units.append((unit, size))
            self._bytes += size
            evicted = self._evicted()
        if self._wake is not None:
            self._wake()
        return evicted

    def lease(self, limit: int) -> list[Job]:
        """Lease at most `limit` jobs, those given back first, then the oldest."""
        jobs: list[Job] = []
        with self._lock:
            while len(jobs) < limit and self._later and self._later[0].due_s <= self._clock():
                jobs.append(self._taken(0))
            while len(jobs) < limit and self._units:
                unit, size = self._units.popleft()
                self._bytes -= size
                jobs.append(Job(unit=unit))
        return jobs

    def ack(
        self,
        job: Job,  # noqa: ARG002 - no other scorer could have it
        state: End,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,  # noqa: ARG002 - there is no transaction
    ) -> bool:
        """End a job; True, as no lease can be lost here."""
        self._ended(state, reason)
        return True

    def nack(self, job: Job, delay_s: float = 0.0, reason: str = "", *, is_attempt: bool = True) -> bool:
        """Give a job back, due in `delay_s`; without both it ends as dropped."""
        if is_attempt and job.attempt >= MAX_ATTEMPTS:
            self._ended("dead", reason)
        elif is_attempt or delay_s > 0.0:
            self._give_back(Job(unit=job.unit, attempt=job.attempt + is_attempt, key=job.key), delay_s)
        else:
            self._ended("dropped", "shutdown")
        return True

    def heartbeat(self, held: Sequence[Job]) -> None:
        """Do nothing, since a lease lasts as long as the process."""

    def requeue_expired(self) -> None:
        """Do nothing, likewise."""

    def next_due_s(self) -> float | None:
        """Return the seconds until a job is due, None when none waits."""
        with self._lock:
            if self._units:
                return 0.0
            return max(self._later[0].due_s - self._clock(), 0.0) if self._later else None

    def stats(self) -> tuple[QueueStats, ...]:
        """Return the statistics of this process's units."""
        with self._lock:
            # A delayed job was leased once, and so is older than every unit that never was.
            delayed = (held.job.unit.offered_at for held in self._later)
            oldest = min(delayed, default=self._units[0][0].offered_at if self._units else None)
            return (
                QueueStats(
                    size=self.size,
                    capacity=self.capacity,
                    oldest_s=0.0 if oldest is None else time.monotonic() - oldest,
                    used_bytes=self._bytes,
                    capacity_bytes=self.capacity_bytes,
                ),
            )

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing is waited for
        """Return True, since units have no other place to go to."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing is waited for
        """End every unit as ``dropped shutdown``; return whether there was none."""
        units = self.clear()
        for _ in units:
            self._ended("dropped", "shutdown")
        return not units

    def clear(self) -> list[Unit]:
        """Empty the queue for good and return its units."""
        with self._lock:
            self._is_closed = True
            delayed = sorted((held.job.unit for held in self._later), key=attrgetter("offered_at"))
            units = delayed + [unit for unit, _ in self._units]
            self._later.clear()
            self._units.clear()
            self._bytes = 0
        return units

    def _give_back(self, job: Job, wait_s: float) -> None:
        size = job.unit.size_bytes
        with self._lock:
            if self._is_closed:
                evicted, reason = [job.unit], "shutdown"
            else:
                insort(self._later, _Delayed(self._clock() + wait_s, size, job), key=attrgetter("due_s"))
                self._bytes += size
                evicted, reason = self._evicted(), "queue_full"
        for _ in evicted:
            self._ended("dropped", reason)

    def _evicted(self) -> list[Unit]:
        gone = []
        while self.size > self.capacity or self._bytes > self.capacity_bytes:
            if self._later:
                ages = [held.job.unit.offered_at for held in self._later]
                gone.append(self._taken(ages.index(min(ages))).unit)
            else:
                unit, size = self._units.popleft()
                self._bytes -= size
                gone.append(unit)
        return gone

    def _taken(self, place: int) -> Job:
        held = self._later.pop(place)
        self._bytes -= held.size
        return held.job
