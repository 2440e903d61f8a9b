"""The default queue, a bounded deque in memory."""

from __future__ import annotations

import math
import random
import threading
import time
from bisect import insort
from collections import deque
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.queues.base import MAX_ATTEMPTS, Job, QueueStats

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.model import End
    from ragtrace.queues.base import Ended, Unit


class _Waiting(NamedTuple):
    unit: Unit
    size: int
    log_kept: float  # of the queue, when the unit came


class _Delayed(NamedTuple):
    due_s: float
    waiting: _Waiting
    attempt: int
    key: str


def ignore_end(state: End, reason: str) -> None:
    """Ignore the end of a unit."""


def ignore_loss(unit: Unit, reason: str) -> None:
    """Ignore the loss of a unit."""


class MemoryQueue:
    """First in, first out; a full queue evicts units at random.

    Each of n waiting units is evicted with the same chance. The others stood the chance (n - 1) / n to be kept, and
    their `Unit.kept` falls by that factor. So a weighted mean over the kept units estimates the mean over all of
    them, whatever the order in which they came.

    Jobs that were given back count in both bounds. `put` returns the units that it evicts; a unit that a job given
    back evicts ends as ``dropped queue_full``. Thread-safe. Its units are lost with the process.

    Args:
        capacity: most units.
        capacity_bytes: most bytes of text.
        ended: called with state and reason of each end in this queue.
        clock: monotonic seconds.
        rng: chooses what is evicted; default one of its own.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from ragtrace.queues.base import Unit
        >>> queue = MemoryQueue(capacity=2)
        >>> [len(queue.put(Unit(record=RagRecord(id=id)))) for id in "abc"]
        [0, 0, 1]
        >>> [round(job.unit.kept, 3) for job in queue.lease(8)]
        [0.667, 0.667]
    """

    is_shared = False

    def __init__(
        self,
        capacity: int = 2_048,
        capacity_bytes: int = 33_554_432,
        *,
        ended: Ended = ignore_end,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._ended = ended
        self._lost: Callable[[Unit, str], None] = ignore_loss
        self._clock = clock
        self._wake: Callable[[], None] | None = None
        self._rng = rng or random.Random()
        self._units: deque[_Waiting] = deque()
        self._log_kept = 0.0  # sum of log (n - 1) / n over the evictions so far
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

    def on_lost(self, lost: Callable[[Unit, str], None]) -> None:
        """Set the function that is called with each unit that is lost, and the reason."""
        self._lost = lost

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the evicted ones, or the unit itself if it is too large or comes too late."""
        size = unit.size_bytes
        is_taken = size <= self.capacity_bytes
        with self._lock:
            is_closed, evicted = self._is_closed, [unit]
            if is_taken and not is_closed:
                self._units.append(_Waiting(unit, size, self._log_kept))
                self._bytes += size
                evicted = self._evicted()
        if is_closed or not is_taken:  # nothing stands for it, as others do for one that is evicted at random
            self._lost(unit, "shutdown" if is_closed else "queue_full")
            return evicted
        if self._wake is not None:
            self._wake()
        return evicted

    def lease(self, limit: int) -> list[Job]:
        """Lease at most `limit` jobs, those given back first, then the oldest."""
        jobs: list[Job] = []
        with self._lock:
            while len(jobs) < limit and self._later and self._later[0].due_s <= self._clock():
                later = self._later.pop(0)
                jobs.append(Job(unit=self._leaving(later.waiting), attempt=later.attempt, key=later.key))
            while len(jobs) < limit and self._units:
                jobs.append(Job(unit=self._leaving(self._units.popleft())))
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
            self._drop(job.unit)
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
            delayed = (held.waiting.unit.offered_at for held in self._later)
            oldest = min(delayed, default=self._units[0].unit.offered_at if self._units else None)
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
        for unit in units:
            self._drop(unit)
        return not units

    def clear(self) -> list[Unit]:
        """Empty the queue for good and return its units."""
        with self._lock:
            self._is_closed = True
            delayed = sorted((held.waiting.unit for held in self._later), key=attrgetter("offered_at"))
            units = delayed + [waiting.unit for waiting in self._units]
            self._later.clear()
            self._units.clear()
            self._bytes = 0
        return units

    def _drop(self, unit: Unit) -> None:
        self._ended("dropped", "shutdown")
        self._lost(unit, "shutdown")

    def _give_back(self, job: Job, wait_s: float) -> None:
        size = job.unit.size_bytes
        with self._lock:
            is_closed, evicted = self._is_closed, []
            if not is_closed:
                waiting = _Waiting(job.unit, size, self._log_kept)
                later = _Delayed(self._clock() + wait_s, waiting, job.attempt, job.key)
                insort(self._later, later, key=attrgetter("due_s"))
                self._bytes += size
                evicted = self._evicted()
        if is_closed:
            self._drop(job.unit)
        for _ in evicted:
            self._ended("dropped", "queue_full")

    def _evicted(self) -> list[Unit]:
        gone: list[Unit] = []
        while (n := self.size) > self.capacity or self._bytes > self.capacity_bytes:
            waiting = self._removed(self._rng.randrange(n))
            self._bytes -= waiting.size
            gone.append(waiting.unit)
            if n > 1:  # of a single one nothing is left to stand for it
                self._log_kept += math.log1p(-1.0 / n)
        return gone

    def _removed(self, place: int) -> _Waiting:
        """Remove one waiting unit by its place: first those of `_units`, then those of `_later`."""
        if place >= len(self._units):
            return self._later.pop(place - len(self._units)).waiting
        waiting = self._units[place]
        del self._units[place]
        return waiting

    def _leaving(self, waiting: _Waiting) -> Unit:
        """Return a unit that leaves the queue, with the chance that it was kept."""
        self._bytes -= waiting.size
        log_kept = self._log_kept - waiting.log_kept
        unit = waiting.unit
        return replace(unit, kept=unit.kept * math.exp(log_kept)) if log_kept else unit
