"""The spool, a SQLite file of units with leases for one host.

One object is one connection, for one thread. Every method is one transaction; what a transaction says is true
after kill -9 at any point. Jobs go ``ready`` -> ``leased`` -> an end, and back to ``ready`` when they are to be
tried again or their lease ran out. An end keeps the key for some time, so that the same unit is not taken twice,
and no payload.

Leases run on the clock of one boot of one host, which the file names. A process of another boot takes the file over
when nothing was heard of that one for a minute, or when it is the same host; else it is refused.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.errors import QueueError
from ragtrace.host import Clock
from ragtrace.queues.base import Counters
from ragtrace.sqlite_file import PAD, SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

_log = logging.getLogger("ragtrace")

SCHEMA_VERSION = 3
BUSY_S = 10.0  # how long a transaction waits for another process's
_SEEN_EVERY_S = 10.0
_GONE_S = 60.0  # without a sign of life another host is taken for gone
_SCHEMA = """
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, state TEXT NOT NULL, priority INTEGER NOT NULL,
  not_before REAL NOT NULL, lease_until REAL NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0, offered_at REAL NOT NULL, size INTEGER NOT NULL, payload BLOB,
  log_kept REAL NOT NULL DEFAULT 0, missed TEXT NOT NULL DEFAULT ''
);
CREATE INDEX ready ON jobs (priority DESC, seq) WHERE state = 'ready';
CREATE INDEX leased ON jobs (lease_until) WHERE state = 'leased';
CREATE INDEX ended ON jobs (offered_at) WHERE state = 'ended';
CREATE TABLE ledger (state TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (state, reason))
  WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""

# `log_kept` of a job that waits is the fact of that name when it came; of a leased one, what it lost since. So one
# difference turns the one into the other, at each lease and at each return.
_KEPT = "INSERT OR IGNORE INTO facts VALUES ('log_kept', 0)"
_LATER_COLUMNS = {
    "log_kept": "ALTER TABLE jobs ADD COLUMN log_kept REAL NOT NULL DEFAULT 0",
    "missed": "ALTER TABLE jobs ADD COLUMN missed TEXT NOT NULL DEFAULT ''",
}
_BACK = (
    "UPDATE jobs SET state = 'ready', owner = '', not_before = ?1,"
    " missed = CASE ?2 WHEN '' THEN missed ELSE ?2 END,"
    " log_kept = (SELECT value FROM facts WHERE name = 'log_kept') - log_kept"
)
_RELEASED = f"{_BACK}, attempts = attempts - 1 WHERE owner = ?3 AND state = 'leased'"
_LEAST = "SELECT priority, count(*) FROM jobs WHERE state = 'ready' GROUP BY priority ORDER BY priority LIMIT 1"
_DRAWN = "SELECT key, size FROM jobs WHERE state = 'ready' AND priority = ? ORDER BY random() LIMIT 100"
_MOST_SHARED = 1_000
_EXPIRED_AT_ONCE = 500
_COUNTS = "SELECT state, reason, n FROM ledger WHERE n > 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A job to put in.

    Attributes:
        key: its identity; a second entry of a key that is still known is not taken.
        payload: what the worker gets.
        priority: higher goes first; 0 is the random stratum's.
        wanted: entries that wanted to be put in for each like this one, before pressure thinned them.
    """

    key: str
    payload: bytes
    priority: int = 0
    wanted: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A job that a worker holds until its lease ends; it outlived evictions with the probability `kept`.

    `missed` is what `Spool.nack` or `Spool.release` noted when it was given back.
    """

    key: str
    payload: bytes
    attempt: int
    priority: int
    age_s: float
    kept: float = 1.0
    missed: str = ""


class Spool:
    """A spool file, made when it is not there (mode 0600).

    Args:
        path: the file; its folder must exist.
        capacity_bytes: most payload; beyond it jobs of the lowest priority are evicted at random (`MemoryQueue`).
        lease_s: how long a worker may hold a job without a sign of life.
        max_attempts: leases of a job before it is ``dead``.
        expire_s: age at which a job that waits is ``skipped`` as expired; ends are forgotten at the same age.
        clock: the time.
        busy_s: how long a transaction waits for another process's.
        aside: told where a broken file was put, and why; a new one is begun. None = it stays, as an error.

    Raises:
        QueueError: the file cannot be opened, is another program's or another living host's, or was written by a
            newer ragtrace. A method raises it too, when another host has taken the file over.

    Example:
        >>> import tempfile, pathlib
        >>> spool = Spool(pathlib.Path(tempfile.mkdtemp()) / "spool.sqlite")
        >>> spool.put([Entry(key="a", payload=b"{}"), Entry(key="a", payload=b"{}")])
        1
        >>> (job,) = spool.lease("worker-1", 8)
        >>> spool.ack("worker-1", job.key, "scored")
        True
        >>> counters = spool.counters()
        >>> counters.offered, counters.pending, dict(counters.ends)
        (2, 0, {('scored', ''): 1, ('skipped', 'duplicate'): 1})
        >>> spool.close()
    """

    def __init__(
        self,
        path: Path,
        *,
        capacity_bytes: int = 536_870_912,
        lease_s: float = 120.0,
        max_attempts: int = 5,
        expire_s: float = 86_400.0,
        clock: Clock | None = None,
        busy_s: float = BUSY_S,
        aside: Callable[[Path, Exception], None] | None = None,
    ) -> None:
        self.path = path
        self.capacity_bytes = capacity_bytes
        self.lease_s = lease_s
        self.max_attempts = max_attempts
        self.expire_s = expire_s
        self._clock = clock or Clock()
        self._epoch = self._clock.epoch()
        self._seen_until = 0.0
        self._file = SharedFile(path, prepare=self._prepare, busy_s=busy_s, aside=aside)
        try:
            with self._file.connection():
                pass
        except (OSError, sqlite3.Error) as error:
            raise QueueError(f"the spool {path} cannot be opened: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._file.close()

    def waiting(self, busy_s: float) -> AbstractContextManager[None]:
        """Have transactions wait no longer than `busy_s` for another process."""
        return self._file.waiting(busy_s)

    def put(self, entries: Sequence[Entry]) -> int:
        """Take entries, in one transaction; return how many were new.

        A duplicate ends as ``skipped duplicate``, what has to make room as ``skipped evicted``.
        """
        now = self._clock.now()
        with self._transaction() as connection:
            taken, size = 0, 0
            for entry in entries:
                row = (entry.key, entry.priority, now, len(entry.payload), PAD + entry.payload)
                cursor = connection.execute(
                    "INSERT OR IGNORE INTO jobs (key, state, priority, not_before, offered_at, size, payload,"
                    " log_kept) VALUES (?1, 'ready', ?2, 0, ?3, ?4, ?5,"
                    " (SELECT value FROM facts WHERE name = 'log_kept'))",
                    row,
                )
                if cursor.rowcount:
                    taken += 1
                    size += len(entry.payload)
            _add(connection, "offered", "", len(entries))
            _add(connection, "skipped", "duplicate", len(entries) - taken)
            connection.execute(
                "INSERT INTO facts VALUES ('wanted', ?1) ON CONFLICT DO UPDATE SET value = value + ?1",
                (sum(entry.wanted for entry in entries),),
            )
            self._make_room(connection, size)
        return taken

    def lease(self, owner: str, limit: int) -> list[Leased]:
        """Lease at most `limit` due jobs, highest priority first, then the oldest."""
        now = self._clock.now()
        with self._transaction() as connection:
            rows = connection.execute(
                "UPDATE jobs SET state = 'leased', owner = ?1, lease_until = ?2, attempts = attempts + 1,"
                " log_kept = (SELECT value FROM facts WHERE name = 'log_kept') - log_kept"
                " WHERE seq IN (SELECT seq FROM jobs WHERE state = 'ready' AND not_before <= ?3"
                " ORDER BY priority DESC, seq LIMIT ?4)"
                " RETURNING key, payload, attempts, priority, offered_at, log_kept, missed, seq",
                (owner, now + self.lease_s, now, limit),
            ).fetchall()
        rows.sort(key=lambda row: (-row[3], row[-1]))
        return [_leased(now, *row[:-1]) for row in rows]

    def heartbeat(self, owner: str, keys: Sequence[str]) -> None:
        """Prolong leases."""
        until = self._clock.now() + self.lease_s
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE jobs SET lease_until = ? WHERE key = ? AND owner = ? AND state = 'leased'",
                [(until, key, owner) for key in keys],
            )

    def ack(
        self,
        owner: str,
        key: str,
        state: str,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> bool:
        """End a job and erase its payload; `also` writes in the same transaction.

        False, and nothing is written, when the lease was lost: another worker has the job, or ended it.
        """
        with self._transaction() as connection:
            held = connection.execute(
                "SELECT size FROM jobs WHERE key = ? AND owner = ? AND state = 'leased'", (key, owner)
            ).fetchone()
            if held is None:
                return False
            if also is not None:
                also(connection)
            self._end(connection, [(key, held[0])], state, reason)
        return True

    def nack(self, owner: str, key: str, delay_s: float, reason: str, missed: str = "") -> bool:
        """Give a job back, due in `delay_s`, with a note; the last attempt ends as ``dead``."""
        with self._transaction() as connection:
            held = connection.execute(
                "SELECT size, attempts FROM jobs WHERE key = ? AND owner = ? AND state = 'leased'", (key, owner)
            ).fetchone()
            if held is None:
                return False
            if held[1] >= self.max_attempts:
                self._end(connection, [(key, held[0])], "dead", reason)
            else:
                connection.execute(f"{_BACK} WHERE key = ?3", (self._clock.now() + delay_s, missed, key))
        return True

    def release(
        self, owner: str, keys: Sequence[str] | None = None, delay_s: float = 0.0, missed: str = ""
    ) -> bool:
        """Give jobs back without an attempt and with a note, None = all; False without a lease."""
        due = self._clock.now() + delay_s
        with self._transaction() as connection:
            if keys is None:
                connection.execute(_RELEASED, (due, missed, owner))
                return True
            given = [(due, missed, owner, key) for key in keys]
            return connection.executemany(f"{_RELEASED} AND key = ?4", given).rowcount > 0

    def requeue_expired(self, lost: Callable[[Leased], None] | None = None) -> int:
        """Take back expired leases and end old jobs; return the number taken back.

        Args:
            lost: told of each old job that has no note.
        """
        now = self._clock.now()
        with self._transaction() as connection:
            late = connection.execute(
                "SELECT key, size FROM jobs WHERE state = 'leased' AND lease_until < ? AND attempts >= ?",
                (now, self.max_attempts),
            ).fetchall()
            self._end(connection, late, "dead", "lease_expired")
            back = connection.execute(
                "UPDATE jobs SET state = 'ready', owner = '',"
                " log_kept = (SELECT value FROM facts WHERE name = 'log_kept') - log_kept"
                " WHERE state = 'leased' AND lease_until < ?",
                (now,),
            ).rowcount
            old = connection.execute(
                "SELECT key, payload, attempts, priority, offered_at,"
                " (SELECT value FROM facts WHERE name = 'log_kept') - log_kept, missed, size FROM jobs"
                " WHERE state = 'ready' AND offered_at < ? LIMIT ?",
                (now - self.expire_s, _EXPIRED_AT_ONCE),
            ).fetchall()
            self._end(connection, [(row[0], row[-1]) for row in old], "skipped", "expired")
            connection.execute("DELETE FROM jobs WHERE state = 'ended' AND offered_at < ?", (now - self.expire_s,))
        if lost is not None:
            for row in old:
                if not row[-2]:
                    lost(_leased(now, *row[:-1]))
        return int(back)

    def empty_journal(self) -> None:
        """Empty the file's journal, see `SharedFile.empty_journal`."""
        self._file.empty_journal()

    def next_due_s(self) -> float | None:
        """Return the seconds until a job is due, None when none waits."""
        with self._file.connection() as connection:
            row = connection.execute(
                "SELECT min(not_before) FROM jobs WHERE state = 'ready'"
                " AND EXISTS (SELECT 1 FROM facts WHERE name = 'epoch' AND value = ?)",
                (self._epoch,),
            ).fetchone()
        return None if row[0] is None else max(row[0] - self._clock.now(), 0.0)

    def counters(self) -> Counters:
        """Return the counters of one moment."""
        with self._file.transaction(is_reading=True) as connection:
            found = dict.fromkeys(("ready", "leased"), 0)
            oldest: float | None = None
            due: float | None = None
            for state, n, first, at in connection.execute(
                "SELECT state, count(*), min(offered_at), min(not_before) FROM jobs WHERE state != 'ended'"
                " GROUP BY state"
            ):
                found[state] = n
                due = at if state == "ready" else due
                oldest = first if oldest is None else min(oldest, first)
            counts = {(state, reason): n for state, reason, n in connection.execute(_COUNTS)}
            size, wanted = int(_fact(connection, "bytes")), _fact(connection, "wanted")
        offered = counts.pop(("offered", ""), 0)
        now = self._clock.now()
        return Counters(
            offered=offered,
            ends=counts,
            ready=found["ready"],
            leased=found["leased"],
            bytes=size,
            oldest_s=0.0 if oldest is None else max(now - oldest, 0.0),
            due_s=None if due is None else max(due - now, 0.0),
            wanted=wanted,
        )

    def publish_names(self, names: Collection[str]) -> set[str]:
        """Publish names; return at most 1,000 names of all processes."""
        with self._file.connection() as connection:
            rows = connection.execute("SELECT substr(name, 8) FROM facts WHERE name GLOB 'shared *'").fetchall()
        known = {name for (name,) in rows}
        new = sorted(set(names) - known)[: max(_MOST_SHARED - len(known), 0)]
        if new:
            with self._file.transaction() as connection:
                connection.executemany(
                    "INSERT OR IGNORE INTO facts VALUES (?, 0)", [(f"shared {name}",) for name in new]
                )
        return known.union(new)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            known = f"spool {version}, this one knows {SCHEMA_VERSION}"
            raise QueueError(
                f"{self.path} was written by a newer ragtrace ({known}): upgrade ragtrace here, or set another"
            )
        if version < SCHEMA_VERSION:
            has = {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}
            added = [column for name, column in _LATER_COLUMNS.items() if name not in has]
            for statement in (*(_SCHEMA.split(";") if version == 0 else added), _KEPT):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._own(connection)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._file.transaction() as connection:
            self._own(connection)
            yield connection

    def _own(self, connection: sqlite3.Connection) -> None:
        """Claim the file for this boot, and leave a sign of life every 10 s.

        Raises:
            QueueError: another living host has it.
        """
        epoch = connection.execute("SELECT value FROM facts WHERE name = 'epoch'").fetchone()
        is_ours = epoch == (self._epoch,)
        if is_ours and self._clock.now() < self._seen_until:
            return
        name, wall = f"host {self._clock.host()}", self._clock.wall()
        if not is_ours:
            if epoch is not None:
                self._take_over(connection, name, wall)
            connection.execute("INSERT OR REPLACE INTO facts VALUES ('epoch', ?)", (self._epoch,))
            self._rebase(connection)
        connection.execute("DELETE FROM facts WHERE name GLOB 'host *' AND value <= ?", (wall - _GONE_S,))
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, wall))
        self._seen_until = self._clock.now() + _SEEN_EVERY_S

    def _take_over(self, connection: sqlite3.Connection, name: str, wall: float) -> None:
        # The containers of one host have a name each. A time ahead of ours is of a host whose clock is: so one of
        # the two goes on, and never both.
        living = {
            host
            for (host,) in connection.execute(
                "SELECT name FROM facts WHERE name GLOB 'host *' AND value > ?", (wall - _GONE_S,)
            )
        }
        is_reboot = name in living and not self._seen_until  # this process had it: it slept, and its twin did not
        if living and not is_reboot:
            raise QueueError(
                f"the spool {self.path} is in use by another host: give each host a file of its own, on a disk of"
                " its own; when the other has ended for good, start again in a minute"
            )
        connection.execute("DELETE FROM facts WHERE name GLOB 'host *'")
        _log.info("the spool %s was of another boot or host: its leases are over, and it goes on here", self.path)

    def _rebase(self, connection: sqlite3.Connection) -> None:
        """Reset leases, waits and ages after a restart of the host."""
        connection.execute("UPDATE jobs SET not_before = 0, lease_until = 0, offered_at = ?", (self._clock.now(),))

    def _make_room(self, connection: sqlite3.Connection, added: int) -> None:
        size = int(_fact(connection, "bytes")) + added
        connection.execute("INSERT OR REPLACE INTO facts VALUES ('bytes', ?)", (size,))
        while size > self.capacity_bytes and (found := connection.execute(_LEAST).fetchone()):
            priority, n = found
            rows = connection.execute(_DRAWN, (priority,)).fetchall()
            gone: list[tuple[str, int]] = []
            while rows and size > self.capacity_bytes:
                gone.append(rows.pop())
                size -= gone[-1][1]
            if (
                priority == 0 and n > 1
            ):  # log of the chance to be kept, (n - gone) / n; of a single one none is left
                kept = math.log(max(n - len(gone), 1) / n)
                connection.execute("UPDATE facts SET value = value + ? WHERE name = 'log_kept'", (kept,))
            self._end(connection, gone, "skipped", "evicted")

    def _end(
        self, connection: sqlite3.Connection, jobs: Sequence[tuple[str, int]], state: str, reason: str
    ) -> None:
        if not jobs:
            return
        connection.executemany(
            "UPDATE jobs SET state = 'ended', owner = '', payload = NULL, size = 0 WHERE key = ?",
            [(key,) for key, _ in jobs],
        )
        connection.execute(
            "UPDATE facts SET value = value - ? WHERE name = 'bytes'", (sum(size for _, size in jobs),)
        )
        _add(connection, state, reason, len(jobs))


def _leased(
    now: float,
    key: str,
    payload: bytes,
    attempts: int,
    priority: int,
    offered_at: float,
    log_kept: float,
    missed: str,
) -> Leased:
    return Leased(
        key=key,
        payload=payload.lstrip(),
        attempt=attempts,
        priority=priority,
        age_s=max(now - offered_at, 0.0),
        kept=math.exp(log_kept) if priority == 0 else 1.0,
        missed=missed,
    )


def _add(connection: sqlite3.Connection, state: str, reason: str, n: int) -> None:
    if n:
        connection.execute(
            "INSERT INTO ledger VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET n = n + ?3", (state, reason, n)
        )


def _fact(connection: sqlite3.Connection, name: str) -> float:
    row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return 0.0 if row is None else float(row[0])
