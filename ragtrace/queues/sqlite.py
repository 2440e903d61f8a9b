"""A queue in a SQLite spool, with a buffer in memory."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ragtrace.capture import guarded, record_internal_error
from ragtrace.errors import QueueError
from ragtrace.model.printable import count_text
from ragtrace.queues.base import Job, QueueStats
from ragtrace.queues.memory import MemoryQueue, ignore_end, ignore_loss
from ragtrace.queues.payload import (
    MOST_BYTES,
    PRIORITIES,
    from_bytes,
    key_of,
    missed_from_text,
    missed_to_text,
    to_bytes,
)
from ragtrace.queues.spool import BUSY_S, Entry, Spool
from ragtrace.sqlite_file import inode_of, unwritable, will_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from ragtrace.host import Clock
    from ragtrace.queues.base import Counters, Ended, Unit
    from ragtrace.queues.spool import Leased

T = TypeVar("T")
_log = logging.getLogger("ragtrace")
BATCH = 64  # units a transaction: 41,000 rows a second by 50, 12,000 one by one
UNIT_BYTES = 262_144  # of a large one
_BACKOFF_S = (0.1, 30.0)
_FLUSH_PAUSE_S = 0.1
_FIRST_BUSY_S = 1.0  # an application that starts waits no longer for another process's transaction
_LAST_STATEMENT_S = 1.0  # that a close waits for at least


class SqliteQueue:
    """A queue in a SQLite file, for the processes of one host.

    `put` costs what a `MemoryQueue` costs: it buffers the unit and wakes the scorer's thread, whose `lease` writes
    the buffer to the spool in batches. While the disk is full or read-only it tries again, and the buffer evicts
    units at random. A broken spool is put aside and a new one begun. All take turns on one connection.

    Args:
        path: the spool; its folder must exist.
        capacity: most units in the buffer.
        capacity_bytes: most bytes of text in the buffer.
        spool_bytes: most payload in the spool.
        lease_s: seconds that a scorer may hold a job without a heartbeat.
        ended: called with the end of each unit in this process: ``spooled``, or ``dropped`` with a reason.
        clock: the spool's time.
        is_producer: another process scores; this one leases nothing.

    Raises:
        QueueError: the spool cannot be opened, or was written by a newer ragtrace.

    Example:
        >>> import pathlib, tempfile
        >>> from ragtrace.model import RagRecord
        >>> from ragtrace.queues.base import Unit
        >>> queue = SqliteQueue(pathlib.Path(tempfile.mkdtemp()) / "spool.sqlite")
        >>> queue.put(Unit(record=RagRecord(id="1", query="Where?")))
        []
        >>> queue.flush(5.0)
        True
        >>> (job,) = queue.lease(8)
        >>> job.unit.record.query, queue.ack(job, "scored")
        ('Where?', True)
        >>> queue.close()
        True
    """

    is_shared = True

    def __init__(
        self,
        path: Path,
        *,
        capacity: int = 2_048,
        capacity_bytes: int = 33_554_432,
        spool_bytes: int = 536_870_912,
        lease_s: float = 120.0,
        ended: Ended = ignore_end,
        clock: Clock | None = None,
        is_producer: bool = False,
    ) -> None:
        self.path = path
        self._clock = clock
        self._spool_bytes = spool_bytes
        self._lease_s = lease_s
        self._ended = ended
        self._lost: Callable[[Unit, str], None] = ignore_loss
        self._is_producer = is_producer
        self._buffer = MemoryQueue(capacity, capacity_bytes, ended=ended)
        self._is_closed = False
        self._spool: Spool | None = None  # the one connection of this process
        self._counters: Counters | None = None
        self._said = ""
        self._inode = 0  # of the file, as of the last look
        self._unread_since_s: float | None = None
        self._in_hand: list[Entry] = []  # taken from the buffer, and not written yet
        self._wait_s, self._retry_at_s = _BACKOFF_S[0], 0.0
        self._lock = threading.RLock()  # of connection and hand: two threads in one connection kill the process
        self._has_leased = False
        self._owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        try:
            self._opened(_FIRST_BUSY_S).close()
        except QueueError as error:  # a wrong path is said at once; a lock or a full disk may pass
            if not will_pass(error.__cause__):
                raise
            because = unwritable(error) or error
            _log.warning("the spool %s cannot be written yet (%s); units wait in memory", self.path, because)

    # -- the producer's side --

    @property
    def size(self) -> int:
        """Units in the buffer, and in the spool as of the last look."""
        return sum(part.size for part in self.stats())

    def stats(self) -> tuple[QueueStats, ...]:
        """Return the statistics of the buffer and of the spool."""
        (buffer,), counters = self._buffer.stats(), self._counters
        pending, used = (counters.pending, counters.bytes) if counters else (0, 0)
        most = pending * self._spool_bytes // used if used else self._spool_bytes // UNIT_BYTES
        spool = QueueStats(
            size=counters.ready if counters else 0,
            capacity=max(most, 1),
            oldest_s=counters.oldest_s if counters else 0.0,
            is_shared=True,
        )
        return buffer._replace(size=buffer.size + len(self._in_hand)), spool

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set the function that has the scorer's thread call `lease`."""
        self._buffer.on_put(None if wake is None else guarded(wake))

    def on_lost(self, lost: Callable[[Unit, str], None]) -> None:
        """Set the function that is called with each unit that is lost, and the reason."""
        self._lost = lost
        self._buffer.on_lost(lost)

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit into the buffer; return the evicted ones."""
        return self._buffer.put(unit)

    def flush(self, timeout_s: float) -> bool:
        """Write the buffer in this thread; False when the time ends first."""
        deadline = time.monotonic() + timeout_s
        while not self._write_within(max(deadline - time.monotonic(), 0.0)):
            left_s = deadline - time.monotonic()
            if left_s <= 0.0:
                return False
            time.sleep(min(_FLUSH_PAUSE_S, left_s))
        return True

    def close(self, timeout_s: float = 5.0) -> bool:
        """Write the buffer and give back every lease; False after a loss."""
        deadline = time.monotonic() + timeout_s
        is_written = self.flush(timeout_s)
        is_released = self._end_scoring(deadline)
        return self._buffer.close(0.0) and is_released and is_written

    # -- from the buffer into the spool: one thread at a time --

    def _write_within(self, timeout_s: float) -> bool:
        """Try once to write the buffer, waiting for another process no longer than the caller does."""
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            if self._take():
                busy_s = min(timeout_s, BUSY_S)
                spool = self._spool = self._spool or self._opened(busy_s)
                with spool.waiting(busy_s):
                    self._write(spool)
        except Exception as error:
            self._fail_write(error)
            return False
        finally:
            self._lock.release()
        return True

    def _write_due(self) -> bool:
        """Write the buffer, unless the last try failed a moment ago; False when it fails."""
        if not (self._in_hand or self._buffer.size) or time.monotonic() < self._retry_at_s:
            return True
        with self._lock:
            try:
                if not self._is_closed and self._take():
                    self._write(self._connected())
            except Exception as error:
                self._fail_write(error)
                return False
        return True

    def _take(self) -> bool:
        """Take a batch into the hand, unless one is there; False when nothing waits."""
        while not self._in_hand and (jobs := self._buffer.lease(BATCH)):
            self._in_hand = [entry for job in jobs if (entry := self._entry(job.unit)) is not None]
        return bool(self._in_hand)

    def _write(self, spool: Spool) -> None:
        while self._take():
            spool.put(self._in_hand)
            for _ in self._in_hand:
                self._ended("spooled", "")
            self._in_hand = []
        self._said, self._wait_s, self._retry_at_s = "", _BACKOFF_S[0], 0.0

    def _fail_write(self, error: Exception) -> None:
        record_internal_error("ragtrace.queues.sqlite.write", error)
        self._complain(error)
        self._retry_at_s = time.monotonic() + self._wait_s
        self._wait_s = min(self._wait_s * 2, _BACKOFF_S[1])

    def _drop(self, unit: Unit, reason: str) -> None:
        self._ended("dropped", reason)
        self._lost(unit, reason)

    def _entry(self, unit: Unit) -> Entry | None:
        try:
            payload = to_bytes(unit)
        except Exception as error:
            record_internal_error("ragtrace.queues.sqlite.payload", error)
            self._drop(unit, "internal_error")
            return None
        if len(payload) > MOST_BYTES:  # made by hand: capture cuts a record by its characters
            self._drop(unit, "too_large")
            return None
        priority, wanted = PRIORITIES[unit.decision], 1.0 / unit.factor
        return Entry(key=key_of(unit), payload=payload, priority=priority, wanted=wanted)

    # -- the file --

    def _opened(self, busy_s: float = BUSY_S) -> Spool:
        return Spool(
            self.path,
            capacity_bytes=self._spool_bytes,
            lease_s=self._lease_s,
            clock=self._clock,
            busy_s=busy_s,
            aside=self._put_aside,
        )

    def _put_aside(self, aside: Path, error: Exception) -> None:
        self._inode = 0
        units = self._count_lost("corrupt", error)
        _log.error(
            "the spool %s is broken (%s) and was put aside as %s with %s; a new one is begun",
            self.path, error, aside.name, units,
        )  # fmt: skip

    def _notice_removal(self) -> None:
        """Log a spool that was removed or replaced since the last look."""
        if self._inode and self._inode != inode_of(self.path):
            units = self._count_lost("removed")
            _log.error("the spool %s was removed or replaced, with %s; a new one is begun", self.path, units)

    def _count_lost(self, how: str, error: Exception | None = None) -> str:
        """Count the units of a lost spool, and return them in words."""
        waited = self._counters.pending if self._counters is not None else 0
        for _ in range(max(waited, 1)):
            record_internal_error(f"ragtrace.queues.sqlite.{how}", error)
        units = count_text(waited, "unit")
        return f"about {units} that waited in it" if self._counters is not None else "what waited in it"

    def _complain(self, error: Exception) -> None:
        """Log a lasting trouble once."""
        text = f"the spool {self.path} cannot be written ({unwritable(error) or error}); its units wait in memory"
        if _is_final(error):
            text = f"{error}; units wait in memory, and none is scored here"
        if text != self._said:
            self._said = text
            _log.warning("%s", text)

    # -- the scorer's side: one thread --

    def lease(self, limit: int) -> list[Job]:
        """Write the buffer, then lease due jobs; an unreadable payload ends as ``invalid``."""
        if not self._write_due() or self._is_producer or limit <= 0:
            return []
        now = time.monotonic()
        leased = self._safely(lambda spool: spool.lease(self._owner, limit)) or []
        self._has_leased = self._has_leased or bool(leased)
        jobs = []
        for one in leased:
            try:
                unit = _unit_of(one, now)
            except Exception as error:  # written by another version, or by hand
                record_internal_error("ragtrace.queues.sqlite.read", error)
                self._safely(lambda spool, key=one.key: spool.ack(self._owner, key, "invalid", "unreadable"))  # type: ignore[misc]
            else:
                jobs.append(Job(unit=unit, attempt=one.attempt, key=one.key))
        return jobs

    def ack(
        self, job: Job, state: str, reason: str = "", also: Callable[[sqlite3.Connection], None] | None = None
    ) -> bool:
        """End a job, and write `also`, in one transaction; False when the lease was lost.

        Raises:
            sqlite3.Error: the disk is full or broken; the job stays leased.
            OSError: the same.
            QueueError: the same, when the spool had to be opened.
        """
        with self._lock:
            return not self._is_closed and self._connected().ack(self._owner, job.key, state, reason, also)

    def nack(self, job: Job, delay_s: float = 0.0, reason: str = "", *, is_attempt: bool = True) -> bool:
        """Give a job back, due in `delay_s`; False when the lease was lost. Raises as `ack`."""
        with self._lock:
            if self._is_closed:
                return False
            missed = missed_to_text(job.unit)
            if is_attempt:
                return self._connected().nack(self._owner, job.key, delay_s, reason, missed)
            return self._connected().release(self._owner, [job.key], delay_s, missed)

    def heartbeat(self, held: Sequence[Job]) -> None:
        """Prolong the leases held."""
        if held:
            self._safely(lambda spool: spool.heartbeat(self._owner, [job.key for job in held]))

    def requeue_expired(self) -> None:
        """Take back expired leases, read the counters and empty the journal."""
        self._notice_removal()
        self._safely(self._look)
        self._inode = inode_of(self.path)

    def _look(self, spool: Spool) -> None:
        if not self._is_producer:
            spool.requeue_expired(self._lose)
        self._counters = spool.counters()
        spool.empty_journal()

    @guarded
    def _lose(self, one: Leased) -> None:
        """Tell of a unit that expired before its first try."""
        self._lost(_unit_of(one, time.monotonic()), "expired")

    def next_due_s(self) -> float | None:
        """Return the seconds until a job is due."""
        return None if self._is_producer else self._safely(lambda spool: spool.next_due_s())

    def counters(self, *, is_fresh: bool = False) -> Counters | None:
        """Return the spool's counters as of the last look, or fresh from any thread.

        Raises:
            QueueError: fresh, and the spool cannot be opened.
        """
        if not is_fresh:
            return self._counters
        spool = self._opened()
        try:
            return spool.counters()
        finally:
            spool.close()

    def publish_names(self, names: Collection[str]) -> set[str]:
        """Publish names; return those of all processes, none on a failure."""
        return self._safely(lambda spool: spool.publish_names(names)) or set()

    @property
    def unread_s(self) -> float:
        """Seconds for which the scorer's side failed, 0.0 when it works."""
        since_s = self._unread_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def _connected(self) -> Spool:
        self._spool = self._spool or self._opened()
        return self._spool

    def _safely(self, work: Callable[[Spool], T]) -> T | None:
        """Run a transaction of the scorer's side; count a failure and return None."""
        with self._lock:
            if self._is_closed:
                return None
            try:
                found = work(self._connected())
            except (sqlite3.Error, OSError, QueueError) as error:
                self._unread_since_s = self._unread_since_s or time.monotonic()
                record_internal_error("ragtrace.queues.sqlite.lease", error)
                if _is_final(error):
                    self._complain(error)
                return None
            self._unread_since_s = None
            return found

    def _end_scoring(self, deadline: float) -> bool:
        """Give back every lease and close the scorer's connection.

        False when that takes too long; the leases run out by themselves then.
        """
        if not self._lock.acquire(timeout=max(deadline - time.monotonic(), _LAST_STATEMENT_S)):
            _log.warning("the spool %s is busy: the jobs held come back in %.0f s", self.path, self._lease_s)
            return False
        try:
            if self._has_leased:
                self._safely(lambda spool: spool.release(self._owner))
            self._is_closed = True
            for entry in self._in_hand:
                unit = from_bytes(entry.payload, key=entry.key, age_s=0.0, now=time.monotonic())
                self._drop(unit, "spool_unwritable")
            self._in_hand = []
            if self._spool is not None:
                self._spool.close()
                self._spool = None
        finally:
            self._lock.release()
        return True


def _unit_of(one: Leased, now: float) -> Unit:
    unit = from_bytes(one.payload, key=one.key, age_s=one.age_s, now=now, kept=one.kept)
    return replace(unit, missed=missed_from_text(one.missed)) if one.missed else unit


def _is_final(error: Exception) -> bool:
    return isinstance(error, QueueError) and error.__cause__ is None
