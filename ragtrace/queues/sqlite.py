"""A queue whose spool outlives its process: a buffer, a thread that writes it to the spool, and leases."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import uuid
from typing import TYPE_CHECKING, TypeVar

from ragtrace.capture import record_internal_error
from ragtrace.errors import QueueError
from ragtrace.queues.base import Job, Part
from ragtrace.queues.memory import MemoryQueue, nobody
from ragtrace.queues.payload import MOST_BYTES, PRIORITIES, from_bytes, key_of, to_bytes
from ragtrace.queues.spool import BUSY_S, Entry, Spool
from ragtrace.sqlite_file import inode_of, unwritable, will_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from ragtrace.host import Clock
    from ragtrace.queues.base import Ended, Unit
    from ragtrace.queues.spool import Accounts

T = TypeVar("T")
_log = logging.getLogger("ragtrace")
BATCH = 64  # units a transaction: 41,000 rows a second by 50, 12,000 one by one (SCORING.md 3)
UNIT_BYTES = 262_144  # of a large one
_BACKOFF_S = (0.1, 30.0)
_IDLE_S = 1.0
_FIRST_BUSY_S = 1.0  # an application that starts waits no longer for another process's transaction
_LAST_STATEMENT_S = 1.0  # that a close waits for at least


class SqliteQueue:
    """A queue in a SQLite file, for the processes of one host.

    `put` costs what a `MemoryQueue` costs; a daemon thread writes what came to the spool, in batches. While the
    disk is full or read-only it tries again, and the buffer evicts its oldest. A spool that is broken is put aside
    and a new one begun. The scorer's side is used from one thread, which may be another process's, and takes turns
    with whoever closes; a closed queue gives nothing out, and nothing can be ended in it.

    Args:
        path: the spool; its folder must exist.
        capacity: most units in the buffer.
        capacity_bytes: most bytes of text in the buffer.
        spool_bytes: most payload in the spool.
        lease_s: how long a scorer may hold a job without a sign of life.
        ended: told of the end of each unit on this side: ``spooled``, or ``dropped`` with a reason.
        clock: the spool's time.

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
        >>> job.unit.record.query, queue.settle(job, "scored")
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
        ended: Ended = nobody,
        clock: Clock | None = None,
    ) -> None:
        self.path = path
        self._clock = clock
        self._spool_bytes = spool_bytes
        self._lease_s = lease_s
        self._ended = ended
        self._buffer = MemoryQueue(capacity, capacity_bytes)
        self._buffer.on_put(self._come)
        self._came = threading.Event()
        self._written = threading.Condition()
        self._in_hand = 0
        self._is_closed = False
        self._scoring = threading.RLock()  # of the scorer's connection: two threads in one kill the process
        self._has_leased, self._is_scoring_over = False, False
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._spool: Spool | None = None
        self._accounts: Accounts | None = None
        self._said = ""
        self._inode = 0  # of the file, as of the last look
        self._unread_since_s: float | None = None
        self._try()

    def _try(self) -> None:
        """Say a wrong path at once, and not in a thread; a file that is locked, or a full disk, may wait for it."""
        try:
            self._opened(_FIRST_BUSY_S).close()
        except QueueError as error:
            if not will_pass(error.__cause__):
                raise
            because = unwritable(error) or error
            _log.warning("the spool %s cannot be written yet (%s); units wait in memory", self.path, because)

    # -- the application's side --

    @property
    def size(self) -> int:
        """Units waiting: in the buffer, and in the spool as of the last look."""
        return sum(part.size for part in self.parts())

    @property
    def capacity(self) -> int:
        """Most units that may wait: in the buffer, and in the spool at the mean size of those there."""
        return sum(part.capacity for part in self.parts())

    @property
    def fullest(self) -> tuple[int, int]:
        """Units waiting and most that may, of the buffer or of the spool, whichever is nearer to its bound."""
        return max(self._buffer.fullest, self._in_spool, key=lambda part: part[0] / part[1])

    @property
    def _in_spool(self) -> tuple[int, int]:
        accounts = self._accounts
        size, used = (accounts.pending, accounts.bytes) if accounts else (0, 0)
        return size, max(size * self._spool_bytes // used if used else self._spool_bytes // UNIT_BYTES, 1)

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called when a batch stands in the spool."""
        self._wake = wake

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit into the buffer; return the oldest ones that had to go."""
        if self._thread is None:
            self._start()
        return self._buffer.put(unit)

    def flush(self, timeout_s: float) -> bool:
        """Wait until the buffer is written; False when the time is over first."""
        self._came.set()
        with self._written:
            return self._written.wait_for(lambda: self._buffer.size + self._in_hand == 0, timeout_s)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Write what is there within `timeout_s`, and give back every lease; False when units were left."""
        deadline = time.monotonic() + timeout_s
        is_written = self._thread is None or self.flush(timeout_s)
        with self._written:
            self._is_closed = True
            self._written.notify_all()
        self._came.set()
        if self._thread is not None:
            self._thread.join(1.0)
        return self._end_scoring(deadline) and is_written

    def clear(self) -> list[Unit]:
        """Empty the buffer for good and return what was in it; the spool stays as it is."""
        return self._buffer.clear()

    def snapshot(self) -> Accounts:
        """Return the spool's accounts of this moment; from any thread."""
        spool = self._opened()
        try:
            return spool.accounts()
        finally:
            spool.close()

    def parts(self) -> tuple[Part, ...]:
        """Return what waits in the buffer and, as of the last look, in the spool."""
        own, accounts = self._buffer, self._accounts
        here = Part(size=own.size + self._in_hand, capacity=own.capacity, oldest_s=own.oldest_s)
        size, oldest_s = (accounts.ready, accounts.oldest_s) if accounts else (0, 0.0)
        return here, Part(size=size, capacity=self._in_spool[1], oldest_s=oldest_s, is_shared=True)

    @property
    def unread_s(self) -> float:
        """Seconds for which the spool could not be read or written from the scorer's side, 0.0 when it can."""
        since_s = self._unread_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def accounts(self) -> Accounts | None:
        """Return the spool's accounts as of the scorer's last look, None before the first."""
        return self._accounts

    def _come(self) -> None:
        self._came.set()

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None and not self._is_closed:
                thread = threading.Thread(target=self._write, name="ragtrace-spool", daemon=True)
                thread.start()  # which an interpreter that ends may refuse
                self._thread = thread

    # -- the writer's thread --

    def _write(self) -> None:
        spool: Spool | None = None
        wait_s = _BACKOFF_S[0]
        entries: list[Entry] = []
        while not (self._is_closed and self._buffer.size == 0 and not entries):
            try:
                if not entries:
                    entries = self._entries()
                if not entries:
                    self._rest()
                    continue
                spool = spool or self._opened()
                spool.put(entries)
                accepted, entries, wait_s = entries, [], _BACKOFF_S[0]  # they stand there, whatever comes next
                self._said = ""
                self._accepted(accepted)
            except Exception as error:
                record_internal_error("ragtrace.queues.sqlite.write", error)
                self._complain(error)
                if self._is_closed:
                    break
                with self._written:
                    self._written.wait_for(lambda: self._is_closed, wait_s)
                wait_s = min(wait_s * 2, _BACKOFF_S[1])
        for _ in entries:
            self._ended("dropped", "spool_unwritable")
        self._told()
        if spool is not None:
            spool.close()

    def _complain(self, error: Exception) -> None:
        """Log a lasting trouble once."""
        text = f"the spool {self.path} cannot be written ({unwritable(error) or error}); its units wait in memory"
        if _is_final(error):
            text = f"{error}; units wait in memory, and none is scored here"
        if text != self._said:
            self._said = text
            _log.warning("%s", text)

    def _entries(self) -> list[Entry]:
        with self._written:  # who waits in `flush` sees each unit, here or there
            jobs = self._buffer.lease(BATCH)
            self._in_hand = len(jobs)
        found = []
        for job in jobs:
            payload = self._payload(job.unit)
            if payload is not None:
                priority = PRIORITIES[job.unit.decision]
                wanted = 1.0 / job.unit.factor
                found.append(Entry(key=key_of(job.unit), payload=payload, priority=priority, wanted=wanted))
        if not found:
            self._told()
        return found

    def _payload(self, unit: Unit) -> bytes | None:
        try:
            payload = to_bytes(unit)
        except Exception as error:
            record_internal_error("ragtrace.queues.sqlite.payload", error)
            self._ended("dropped", "internal_error")
            return None
        if len(payload) > MOST_BYTES:  # made by hand: capture cuts a record by its characters
            self._ended("dropped", "too_large")
            return None
        return payload

    def _accepted(self, entries: Sequence[Entry]) -> None:
        for _ in entries:
            self._ended("spooled", "")
        self._told()
        if self._wake is not None:
            self._wake()

    def _told(self) -> None:
        with self._written:
            self._in_hand = 0
            self._written.notify_all()

    def _rest(self) -> None:
        self._came.wait(_IDLE_S)
        self._came.clear()

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
        units = self._lose("corrupt", error)
        _log.error(
            "the spool %s is broken (%s) and was put aside as %s with %s; a new one is begun",
            self.path, error, aside.name, units,
        )  # fmt: skip

    def _see_removal(self) -> None:
        """Tell of a file that is not there any more, or another one; called once a second."""
        if self._inode and self._inode != inode_of(self.path):
            units = self._lose("removed")
            _log.error("the spool %s was removed or replaced, with %s; a new one is begun", self.path, units)

    def _lose(self, how: str, error: Exception | None = None) -> str:
        """Count what waited in a spool that is gone, as far as it is known, and return it in words."""
        waited = self._accounts.pending if self._accounts is not None else 0
        for _ in range(max(waited, 1)):
            record_internal_error(f"ragtrace.queues.sqlite.{how}", error)
        return f"about {waited} units that waited in it" if self._accounts is not None else "what waited in it"

    # -- the scorer's side: one thread --

    def lease(self, limit: int) -> list[Job]:
        """Give out jobs that are due; a payload that cannot be read ends as ``invalid``."""
        now = time.monotonic()
        given = self._safely(lambda spool: spool.lease(self._owner, limit)) or []
        self._has_leased = self._has_leased or bool(given)
        jobs = []
        for leased in given:
            try:
                unit = from_bytes(leased.payload, key=leased.key, age_s=leased.age_s, now=now)
            except Exception as error:  # written by another version, or by hand
                record_internal_error("ragtrace.queues.sqlite.read", error)
                self._safely(lambda spool, key=leased.key: spool.end(self._owner, key, "invalid", "unreadable"))  # type: ignore[misc]
                continue
            jobs.append(Job(unit=unit, attempt=leased.attempt, key=leased.key))
        return jobs

    def settle(
        self,
        job: Job,
        state: str,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> bool:
        """End a job and write what belongs to it in one transaction; False when the lease was lost.

        Raises:
            sqlite3.Error: the disk is full or broken; the job stays leased and comes back when that ends.
            OSError: the same.
            QueueError: the same, when the spool had to be opened.
        """
        with self._scoring:
            return not self._is_scoring_over and self._leasing().end(self._owner, job.key, state, reason, also)

    def retry(self, job: Job, wait_s: float, reason: str) -> bool:
        """Give a job back, due in `wait_s`; False when the lease was lost. Raises as `settle`."""
        with self._scoring:
            return not self._is_scoring_over and self._leasing().retry(self._owner, job.key, wait_s, reason)

    def release(self, jobs: Sequence[Job], wait_s: float = 0.0) -> None:
        """Give jobs back as if they had never been leased. Raises as `settle`."""
        with self._scoring:
            if not self._is_scoring_over:
                self._leasing().release(self._owner, [job.key for job in jobs], wait_s)

    def tend(self, held: Sequence[Job]) -> None:
        """Prolong the leases held, take back those that ran out, and look at the accounts."""
        self._see_removal()

        def work(spool: Spool) -> None:
            if held:
                spool.extend(self._owner, [job.key for job in held])
            spool.reap()
            self._accounts = spool.accounts()
            spool.empty_journal()

        self._safely(work)
        self._inode = inode_of(self.path)

    def look(self) -> None:
        """Read the accounts, and leave no text in the journal: there may be no worker that does."""
        self._see_removal()

        def work(spool: Spool) -> None:
            self._accounts = spool.accounts()
            spool.empty_journal()

        self._safely(work)
        self._inode = inode_of(self.path)

    def share(self, names: Collection[str]) -> set[str]:
        """Return the names that the processes of the spool have shared, these among them; empty on a failure."""
        return self._safely(lambda spool: spool.share(names)) or set()

    def next_due_s(self) -> float | None:
        """Return how long until a job is due."""
        return self._safely(lambda spool: spool.next_due_s())

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child; what stands in the buffer the parent writes."""
        self._buffer = MemoryQueue(self._buffer.capacity, self._buffer.capacity_bytes)
        self._buffer.on_put(self._come)
        self._came, self._written = threading.Event(), threading.Condition()
        self._start_lock, self._thread, self._in_hand = threading.Lock(), None, 0
        self._scoring, self._has_leased = threading.RLock(), False
        self._owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def _leasing(self) -> Spool:
        self._spool = self._spool or self._opened()
        return self._spool

    def _safely(self, work: Callable[[Spool], T]) -> T | None:
        """Run a transaction of the scorer's side; a failure is counted, and gives None."""
        with self._scoring:
            if self._is_scoring_over:
                return None
            try:
                found = work(self._leasing())
            except (sqlite3.Error, OSError, QueueError) as error:
                self._unread_since_s = self._unread_since_s or time.monotonic()
                record_internal_error("ragtrace.queues.sqlite.lease", error)
                if _is_final(error):
                    self._complain(error)
                return None
            self._unread_since_s = None
            return found

    def _end_scoring(self, deadline: float) -> bool:
        """Give back every lease and close the scorer's connection, when the statement under way is over.

        False when it is not over in time; the leases end by themselves then.
        """
        if not self._scoring.acquire(timeout=max(deadline - time.monotonic(), _LAST_STATEMENT_S)):
            _log.warning("the spool %s is busy: the jobs held come back in %.0f s", self.path, self._lease_s)
            return False
        try:
            if self._has_leased:
                self._safely(lambda spool: spool.release(self._owner))
            self._is_scoring_over = True
            self._leave()
        finally:
            self._scoring.release()
        return True

    def _leave(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None


def _is_final(error: Exception) -> bool:
    """Whether the spool is another host's or a newer ragtrace's."""
    return isinstance(error, QueueError) and error.__cause__ is None
