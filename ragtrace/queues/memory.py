"""The zero-configuration queue: a bounded deque in memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from ragtrace.queues.base import MAX_ATTEMPTS, Job, Part
from ragtrace.queues.delayed import DelayedJobs

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence

    from ragtrace.model import End
    from ragtrace.queues.base import Ended, Unit


def nobody(state: End, reason: str) -> None:
    """Take no note of an end."""


class MemoryQueue:
    """First in, first out, bounded in units and in bytes; a full queue evicts its oldest units.

    What is given back to be tried later counts in both bounds, and is older than what was never leased. A `put`
    returns what it evicts; what has to go when a job is given back ends as ``dropped queue_full``. Thread-safe;
    `put` holds a lock for a few operations on a deque and does no I/O. What stands in it is lost with the process.

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
        ended: Ended = nobody,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._ended = ended
        self._clock = clock
        self._wake: Callable[[], None] | None = None
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child: what stands here the parent scores."""
        self._units: deque[tuple[Unit, int]] = deque()
        self._bytes = 0
        self._is_cleared = False
        self._later = DelayedJobs()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Units waiting, those to be tried again among them."""
        return len(self._units) + len(self._later)

    @property
    def fullest(self) -> tuple[int, int]:
        """Units waiting, and most that may: in units, or as many of their mean size as the bound in bytes takes."""
        with self._lock:
            size, used = self.size, self._bytes + self._later.size_bytes
        return size, min(self.capacity, size * self.capacity_bytes // used) if used else self.capacity

    @property
    def oldest_s(self) -> float:
        """Age of the oldest unit in seconds, 0.0 when empty."""
        with self._lock:
            oldest = self._later.offered_at  # leased once, and so before all that never were
            if oldest is None and self._units:
                oldest = self._units[0][0].offered_at
        return 0.0 if oldest is None else time.monotonic() - oldest

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called after a put, from the giver's thread."""
        self._wake = wake

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the oldest ones that had to go. A unit over the byte bound is returned itself."""
        size = unit.size_bytes
        if size > self.capacity_bytes:
            return [unit]
        with self._lock:
            if self._is_cleared:
                return [unit]
            self._units.append((unit, size))
            self._bytes += size
            evicted = self._evicted()
        if self._wake is not None:
            self._wake()
        return evicted

    def lease(self, limit: int) -> list[Job]:
        """Give out at most `limit` jobs: those whose wait is over, then the oldest units."""
        jobs: list[Job] = []
        with self._lock:
            while len(jobs) < limit and (job := self._later.due(self._clock())) is not None:
                jobs.append(job)
            while len(jobs) < limit and self._units:
                unit, size = self._units.popleft()
                self._bytes -= size
                jobs.append(Job(unit=unit))
        return jobs

    def settle(
        self,
        job: Job,  # noqa: ARG002 - a job is known by its end alone
        state: End,
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
        self._give_back(Job(unit=job.unit, attempt=job.attempt + 1, key=job.key), wait_s)
        return True

    def release(self, jobs: Sequence[Job], wait_s: float = 0.0) -> None:
        """Give jobs back where a wait is asked for; without one the process ends, and they are dropped."""
        for job in jobs:
            if wait_s > 0.0:
                self._give_back(job, wait_s)
            else:
                self._ended("dropped", "shutdown")

    def tend(self, held: Sequence[Job]) -> None:
        """Do nothing: nobody else could take a job."""

    def next_due_s(self) -> float | None:
        """Return how long until a job is due, 0.0 when one is, None when none waits."""
        with self._lock:
            if self._units:
                return 0.0
            due_s = self._later.due_s
            return None if due_s is None else max(due_s - self._clock(), 0.0)

    def parts(self) -> tuple[Part, ...]:
        """Return what waits here."""
        return (Part(size=self.size, capacity=self.capacity, oldest_s=self.oldest_s),)

    @property
    def unread_s(self) -> float:
        """Return 0.0: memory can always be read."""
        return 0.0

    def accounts(self) -> None:
        """Return None: the accounts of what stands here are its process's own."""

    def snapshot(self) -> None:
        """Return None, too."""

    def share(self, names: Collection[str]) -> set[str]:  # noqa: ARG002 - there is nobody to tell
        """Return nothing: there is nobody who would tell any."""
        return set()

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing is waited for
        """Do nothing: there is no place beside this one."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing is waited for
        """Return whether nothing is left."""
        return self.size == 0

    def clear(self) -> list[Unit]:
        """Empty the queue for good and return what was in it; a unit that comes later is returned itself."""
        with self._lock:
            self._is_cleared = True
            units = [job.unit for job in self._later.clear()] + [unit for unit, _ in self._units]
            self._units.clear()
            self._bytes = 0
        return units

    def _give_back(self, job: Job, wait_s: float) -> None:
        size = job.unit.size_bytes
        with self._lock:
            if self._is_cleared:
                evicted, reason = [job.unit], "shutdown"
            else:
                self._later.add(job, self._clock() + wait_s, size)
                evicted, reason = self._evicted(), "queue_full"
        for _ in evicted:
            self._ended("dropped", reason)

    def _evicted(self) -> list[Unit]:
        """Take out the oldest units until the rest keep both bounds; called with the lock held."""
        gone = []
        while self.size > self.capacity or self._bytes + self._later.size_bytes > self.capacity_bytes:
            if self._later:
                gone.append(self._later.oldest().unit)
            else:
                unit, size = self._units.popleft()
                self._bytes -= size
                gone.append(unit)
        return gone
