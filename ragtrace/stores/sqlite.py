"""The store in a SQLite file, its own or the spool's."""

from __future__ import annotations

import logging
import sqlite3
import time
from secrets import token_bytes
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.errors import StoreError
from ragtrace.host import SteadyWall, boot_id, uptime_s
from ragtrace.sqlite_file import SharedFile, will_pass
from ragtrace.stores import outbox
from ragtrace.stores.anchor_table import AnchorTable
from ragtrace.stores.base import Erased, OutboxEntry, Pending, Policy
from ragtrace.stores.baselines import read_baselines, write_baselines
from ragtrace.stores.erasure import erase
from ragtrace.stores.question_mixes import QuestionMix, delete_mixes, mix_workflows, read_mix, write_mix
from ragtrace.stores.reader import StoreReader
from ragtrace.stores.retention import apply_retention
from ragtrace.stores.tables import record_from, score_from, tables
from ragtrace.stores.upsert import JUDGE, write_label, write_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ragtrace.model import RagRecord, Score
    from ragtrace.stores.base import Label, Subject
    from ragtrace.stores.baselines import FrozenBaseline
    from ragtrace.stores.owner import Owner
    from ragtrace.stores.tables import Row

_log = logging.getLogger("ragtrace")
BUSY_S = 10.0  # how long a transaction waits for another process's
_DEFAULT = Policy()
_ID_KEY = "SELECT value FROM store_facts WHERE name = 'id_key'"


class SqliteStore(StoreReader):
    """Scores, human labels and the few records worth keeping, in one file.

    The file is made when it is missing (mode 0600, WAL). A broken file is put aside and a new one begun, unless it
    had to be there already; a full or read-only disk is an error of each call until it ends. Thread-safe: one
    connection behind a lock; a forked child opens its own.

    Args:
        path: the file; its folder must exist. It may be a spool's.
        policy: content, retention and size of the store.
        wall: Unix seconds.
        uptime: seconds since the host started.
        is_made: whether a file is made where there is none, or a broken one.

    Attributes:
        anchors: the runs that tell whether the judge changed.
        kind_of: gives the kind of a run's question, None while it has none; a service sets it.

    Raises:
        StoreError: it cannot be opened, or was written by a newer ragtrace.

    Example:
        >>> import pathlib, tempfile
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> store = SqliteStore(pathlib.Path(tempfile.mkdtemp()) / "scores.sqlite")
        >>> key = ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v")
        >>> score = Score(key=key, result=MetricResult(name="mrr", state="ok", value=0.5, version="v"))
        >>> store.emit(RagRecord(id="1", trace_id="t", span_id="s", user="ada"), [score])
        >>> [(row["metric"], row["value"]) for row in store.rows()]
        [('mrr', 0.5)]
        >>> store.forget("user", "ada").scores, list(store.rows())
        (1, [])
        >>> store.close()
        True
    """

    def __init__(
        self,
        path: Path,
        policy: Policy = _DEFAULT,
        *,
        wall: Callable[[], float] | None = None,
        uptime: Callable[[], float] | None = None,
        is_made: bool = True,
    ) -> None:
        self.path = path
        self.policy = policy
        self.kind_of: Callable[[RagRecord], str | None] = lambda _record: None
        self._wall = wall or SteadyWall()
        self._uptime = uptime or uptime_s
        super().__init__(
            SharedFile(path, prepare=tables, busy_s=BUSY_S, aside=self._put_aside if is_made else None)
        )
        self.anchors = AnchorTable(self._file, self._wall)
        if not (is_made or path.is_file()):
            raise StoreError(f"there is no store at {path}; check the path")
        self._try(may_wait=is_made)

    def _try(self, *, may_wait: bool) -> None:
        """Report a wrong path at once; a lock or a full disk may pass."""
        try:
            with self._file.connection():
                pass
        except (OSError, sqlite3.Error) as error:
            if not (may_wait and will_pass(error)):
                raise StoreError(f"the store {self.path} cannot be opened: {error}") from error
            _log.warning("the store %s cannot be written yet: %s", self.path, error)

    # -- writing --

    def emit(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        *,
        source: str = JUDGE,
        owner: Owner | None = None,
        entry: OutboxEntry | None = None,
    ) -> None:
        """Write the scores of one trace, and its record where the policy says so.

        Args:
            record: the trace.
            scores: its scores.
            source: ``judge``, or ``rescore``: later scores, which are not given out as pending.
            owner: publishes them; without one the next scorer at this file does.
            entry: told the scores to publish, and how to say that they arrived.

        Raises:
            sqlite3.Error: the disk is full, read-only or broken.
            StoreError: the file cannot be opened.
        """
        write = self.writer(scores, record, source=source, owner=owner, entry=entry)
        with self._file.transaction() as connection:
            write(connection)

    def writer(
        self,
        scores: Sequence[Score],
        record: RagRecord,
        *,
        source: str = JUDGE,
        owner: Owner | None = None,
        entry: OutboxEntry | None = None,
    ) -> Callable[[sqlite3.Connection], None]:
        """Return a callback that performs the write of `emit` inside the caller's transaction."""
        kind = self.kind_of(record)

        def write(connection: sqlite3.Connection) -> None:
            policy, now = self.policy, self._wall()
            write_scores(
                connection,
                scores,
                record,
                policy=policy,
                now=now,
                source=source,
                owner=owner,
                entry=entry,
                kind=kind,
            )

        return write

    def rate(self, labels: Iterable[Label]) -> int:
        """Write human labels in one transaction; return how many.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        count = 0
        with self._file.transaction() as connection:
            for label in labels:
                write_label(connection, label, self.policy, self._wall())
                count += 1
        return count

    def apply_retention(self) -> None:
        """Delete expired rows in short transactions; call it once a minute.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        has_more = True
        while has_more:
            with self._file.transaction() as connection:
                has_more = apply_retention(
                    connection, self.policy, self._wall(), boot=boot_id(), uptime_s=self._uptime()
                )

    def id_key(self) -> bytes:
        """Return the secret of ids that are made of texts: drawn once for the file, by who asks first.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        with self._file.connection() as connection:
            row = connection.execute(_ID_KEY).fetchone()
        if row is None:
            with self._file.transaction() as connection:
                connection.execute("INSERT OR IGNORE INTO store_facts VALUES ('id_key', ?)", (token_bytes(32),))
                row = connection.execute(_ID_KEY).fetchone()
        return bytes(row[0])

    def empty_journal(self) -> None:
        """Empty the file's journal, where erased texts may stand; see `SharedFile.empty_journal`."""
        self._file.empty_journal()

    # -- the outbox --

    def leftovers(self) -> bool:
        """Return whether scores wait to be published whose owner has ended."""
        with self._file.connection() as connection:
            return bool(outbox.free_owners(connection, self._wall()))

    def claim(
        self, owner: Owner, limit: int = 100, *, seqs: Sequence[int] = (), next_seq: Callable[[], int]
    ) -> list[Pending]:
        """Claim traces whose scores have no living owner, the oldest first.

        Args:
            owner: publishes them.
            limit: most traces.
            seqs: places of its own entries that were written and not published; they are claimed too.
            next_seq: gives the place of each among the owner's.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        with self._file.transaction() as connection:
            now = self._wall()
            free = outbox.free_owners(connection, now)
            taken = outbox.claim(connection, owner, free, limit, seqs=seqs, next_seq=next_seq, now=now)
        return self._pending(owner, dict(taken))

    def unsent(self, owner: Owner, limit: int = 100, *, older_s: float) -> list[Pending]:
        """Return an owner's traces whose events did not arrive in time.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        with self._file.transaction() as connection:
            now = self._wall()
            runs = outbox.unsent(connection, owner, limit, before=now - older_s, now=now)
        return self._pending(owner, dict.fromkeys(runs, 0))

    def exported(
        self,
        marks: Iterable[tuple[int, int, int]],
        what: int = outbox.ALL,
        *,
        owner: Owner | None = None,
        upto: Iterable[tuple[int, int, int]] = (),
    ) -> None:
        """Note that scores arrived, except those that were replaced since.

        Args:
            marks: of `OutboxEntry`.
            what: `EVENT`, `COUNT` or both.
            owner: of the entries that `upto` means.
            upto: ranges of places whose entries arrived, as (what, after, upto).

        Raises:
            sqlite3.Error: as in `emit`.
        """
        with self._file.transaction() as connection:
            outbox.acknowledge(connection, marks, what)
            if owner is not None:
                for kind, after, last in upto:
                    outbox.acknowledge_to(connection, owner, kind, after, last)

    def beat(self, owner: Owner) -> None:
        """Give a sign of life, about once a minute."""
        with self._file.transaction() as connection:
            outbox.beat(connection, owner, self._wall())

    def leave(self, owner: Owner) -> None:
        """Release an owner's unpublished scores."""
        with self._file.transaction() as connection:
            outbox.leave(connection, owner)

    def _pending(self, owner: Owner, runs: Mapping[int, int]) -> list[Pending]:
        sql = (
            "SELECT scored.*, outbox.owed FROM scored JOIN outbox USING (run, series)"
            " WHERE outbox.owner = ? AND run = ? ORDER BY series"
        )
        found = ((self._read(sql, (owner.id, run)), seq) for run, seq in runs.items())
        made = [_pending(rows, seq) for rows, seq in found if rows]
        if unreadable := [mark for _, marks in made for mark in marks]:
            self.exported(unreadable)
        return [pending for pending, _ in made]

    # -- frozen baselines --

    def freeze(self, baselines: Iterable[FrozenBaseline]) -> int:
        """Write baselines in one transaction; return their number.

        Raises:
            sqlite3.Error: as in `emit`.
        """
        with self._file.transaction() as connection:
            return write_baselines(connection, baselines)

    def baselines(self) -> list[FrozenBaseline]:
        """Return all frozen baselines, the oldest first."""
        with self._file.connection() as connection:
            return read_baselines(connection)

    # -- frozen mixes of questions --

    def question_mix(self, workflow: str) -> QuestionMix | None:
        """Return the mix of a workflow's questions, None where none was kept."""
        with self._file.connection() as connection:
            return read_mix(connection, workflow)

    def keep_question_mix(self, mix: QuestionMix) -> QuestionMix:
        """Keep a mix unless its workflow has one; return the one that stands."""
        with self._file.transaction() as connection:
            return write_mix(connection, mix)

    def question_mix_workflows(self) -> set[str]:
        """Return the workflows whose mix is kept."""
        with self._file.connection() as connection:
            return mix_workflows(connection)

    def forget_question_mixes(self, workflow: str | None = None) -> int:
        """Delete the mix of a workflow, default of all; return how many."""
        with self._file.transaction() as connection:
            return delete_mixes(connection, workflow)

    # -- erasing --

    def forget(self, subject: Subject, identity: str) -> Erased:
        """Erase a trace, session or user from the store, the spool and the file.

        Rows go in one transaction; then the file is written anew (``VACUUM``), which takes its size in free disk
        and, for that long, keeps other processes from writing.

        Raises:
            sqlite3.Error: the disk is full, read-only or broken; or another process kept the file from being
                written anew: the rows are deleted then, and a second call finishes.
        """
        with self._file.transaction() as connection:
            erased = erase(connection, subject, identity)
        self._scrub()
        return erased

    def would_forget(self, subject: Subject, identity: str) -> Erased:
        """Return what `forget` would erase."""
        with self._file.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                return erase(connection, subject, identity)
            finally:
                connection.execute("ROLLBACK")

    def _scrub(self) -> None:
        with self._file.connection() as connection:
            connection.execute("VACUUM")
            deadline = time.monotonic() + BUSY_S
            while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise sqlite3.OperationalError(
                        "another process reads the file; its journal could not be emptied"
                    )
                time.sleep(0.05)

    # -- the connection --

    def close(self, timeout_s: float = 5.0) -> bool:  # noqa: ARG002 - a sink's method; it takes no time
        """Close the connection; a later call opens it again."""
        self._file.close()
        return True

    def _put_aside(self, aside: Path, error: Exception) -> None:
        _log.error("the store %s is broken and was put aside as %s; a new one is begun", self.path, aside.name)
        record_internal_error("ragtrace.stores.corrupt", error)


def _pending(rows: Sequence[Row], seq: int) -> tuple[Pending, list[tuple[int, int, int]]]:
    """Return scores to publish, and the marks of unreadable ones."""
    scores, entry, unreadable = [], OutboxEntry(seq=seq), []
    for row in rows:
        mark = row["run"], row["series"], row["writes"]
        try:
            score = score_from(row)
        except ValueError as error:
            record_internal_error("ragtrace.stores.pending", error)
            unreadable.append(mark)
            continue
        scores.append(score)
        entry.marks[score.key], entry.owed[score.key] = mark, row["owed"]
    return Pending(record=record_from(rows[0]), scores=tuple(scores), entry=entry), unreadable
