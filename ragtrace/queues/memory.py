"""The zero-configuration queue: a bounded deque in memory."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from ragtrace.queues.base import MAX_ATTEMPTS, Job

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.queues.base import Unit


def nobody(state: str, reason: str) -> None:
    """Take no note of an end."""


class MemoryQueue:
    """First in, first out, bounded in units and in bytes; a full queue evicts its oldest units and returns them.

    Thread-safe; `put` holds a lock for a few operations on a deque and does no I/O. What stands in it is lost with
    the process.

    Args:
        capacity: most units.
        capacity_bytes: most bytes of text.
        ended: told of each end that happens in here, as state and reason.
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
        ended: Callable[[str, str], None] = nobody,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._ended = ended
        self._clock = clock
        self._units: deque[tuple[Unit, int]] = deque()
        self._later: list[tuple[float, int, Job]] = []
        self._number = 0
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None

    @property
    def size(self) -> int:
        """Units waiting, those to be tried again among them."""
        return len(self._units) + len(self._later)

    @property
    def oldest_s(self) -> float:
        """Age of the oldest unit in seconds, 0.0 when empty."""
        with self._lock:
            offered = [job.unit.offered_at for _, _, job in self._later]
            if self._units:
                offered.append(self._units[0][0].offered_at)
        return time.monotonic() - min(offered) if offered else 0.0

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called after a put, from the giver's thread."""
        self._wake = wake

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the oldest ones that had to go. A unit over the byte bound is returned itself."""
        size = unit.size_bytes
        if size > self.capacity_bytes:
            return [unit]
        evicted = []
        with self._lock:
            self._units.append((unit, size))
            self._bytes += size
            while len(self._units) > self.capacity or self._bytes > self.capacity_bytes:
                old, old_size = self._units.popleft()
                self._bytes -= old_size
                evicted.append(old)
        if self._wake is not None:
            self._wake()
        return evicted

    def lease(self, limit: int) -> list[Job]:
        """Give out at most `limit` jobs: those whose wait is over, then the oldest units."""
        jobs: list[Job] = []
        with self._lock:
            while len(jobs) < limit and self._later and self._later[0][0] <= self._clock():
                jobs.append(heapq.heappop(self._later)[2])
            while len(jobs) < limit and self._units:
                unit, size = self._units.popleft()
                self._bytes -= size
                jobs.append(Job(unit=unit))
        return jobs

    def settle(
        self,
        job: Job,  # noqa: ARG002 - a job is known by its end alone
        state: str,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,  # noqa: ARG002 - there is no file
    ) -> bool:
        """End a job; always ours."""
        self._ended(state, reason)
        return True

    def retry(self, job: Job, wait_s: float, reason: str) -> bool:
        """Give a job back, due in `wait_s`; the last attempt ends as ``dead``."""
        if job.attempt >= MAX_ATTEMPTS:
            self._ended("dead", reason)
            return True
        again = Job(unit=job.unit, attempt=job.attempt + 1, key=job.key)
        with self._lock:
            self._number += 1
            heapq.heappush(self._later, (self._clock() + wait_s, self._number, again))
        return True

    def release(self, jobs: Sequence[Job], wait_s: float = 0.0) -> None:
        """Give jobs back where a wait is asked for; without one the process ends, and they are dropped."""
        for job in jobs:
            if wait_s > 0.0:
                with self._lock:
                    self._number += 1
                    heapq.heappush(self._later, (self._clock() + wait_s, self._number, job))
            else:
                self._ended("dropped", "shutdown")

    def tend(self, held: Sequence[Job]) -> None:
        """Do nothing: nobody else could take a job."""

    def next_due_s(self) -> float | None:
        """Return how long until a job is due, 0.0 when one is, None when none waits."""
        with self._lock:
            if self._units:
                return 0.0
            return max(self._later[0][0] - self._clock(), 0.0) if self._later else None

    def clear(self) -> list[Unit]:
        """Empty the queue and return what was in it."""
        with self._lock:
            units = [unit for unit, _ in self._units] + [job.unit for _, _, job in self._later]
            self._units.clear()
            self._later.clear()
            self._bytes = 0
        return units
