"""What goes with time and for want of room: payloads before scores, the oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture import lost
from ragtrace.sqlite_file import used_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ragtrace.stores.base import Policy

_PAYLOADS, _RUNS = 32, 200  # deleted at once: a write waits for no more than is needed
_SPLITS_BYTES = 65_536  # pages that a few rows may split in seven b-trees
_AGED = 500  # runs of one transaction, so that no other process waits long
_DAY_AHEAD_S = 86_400.0


def has_room(connection: sqlite3.Connection, need_bytes: int, file_bytes: int) -> bool:
    """Make room for so many bytes; False when nothing of the store is left to delete.

    Measured on the file: its pages less the free ones, which are used before it grows. So a file within the limit
    stays there; one that was larger before is full of free pages, which are given back by `shrink` alone.
    """
    limit = file_bytes - need_bytes - need_bytes // 2 - _SPLITS_BYTES  # pages are not filled to the last byte
    while used_bytes(connection) > limit:
        runs = [row[0] for row in connection.execute("SELECT run FROM payloads ORDER BY at LIMIT ?", (_PAYLOADS,))]
        if runs:
            connection.executemany("DELETE FROM payloads WHERE run = ?", [(run,) for run in runs])
            _count(runs, "ragtrace.stores.evicted_payloads")
            continue
        runs = [row[0] for row in connection.execute("SELECT id FROM runs ORDER BY at LIMIT ?", (_RUNS,))]
        if not runs:
            return False
        drop_runs(connection, runs)
        _count(runs, "ragtrace.stores.evicted_runs")
    return True


def drop_runs(connection: sqlite3.Connection, runs: Sequence[int]) -> None:
    """Delete runs with all that belongs to them."""
    keys = [(run,) for run in runs]
    for table, column in (("scores", "run"), ("outbox", "run"), ("payloads", "run"), ("runs", "id")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", keys)  # noqa: S608 - our own names


def _count(gone: Sequence[int], site: str) -> None:
    for _ in gone:
        lost(site)


def age(connection: sqlite3.Connection, policy: Policy, now: float) -> bool:
    """Delete some of what is too old; return whether there may be more. Runs in a transaction of the caller's.

    A score stays as long as a human label of its trace. Times ahead of the clock by more than a day become now:
    else they would never be over.
    """
    ahead = now + _DAY_AHEAD_S
    connection.execute("UPDATE runs SET at = ? WHERE at > ?", (now, ahead))
    connection.execute("UPDATE payloads SET at = ? WHERE at > ?", (now, ahead))
    old = connection.execute(
        "SELECT run FROM payloads WHERE at < ? ORDER BY at LIMIT ?", (now - policy.payloads_s, _AGED)
    ).fetchall()
    connection.executemany("DELETE FROM payloads WHERE run = ?", old)
    runs = connection.execute(
        "SELECT id FROM runs r WHERE at < ?1 AND (CASE WHEN span_id = '' AND EXISTS (SELECT 1 FROM scores s JOIN"
        " series a ON a.id = s.series WHERE s.run = r.id AND a.source = 'human') THEN at < ?2 ELSE NOT EXISTS"
        " (SELECT 1 FROM runs l JOIN scores s ON s.run = l.id JOIN series a ON a.id = s.series WHERE"
        " l.trace_id = r.trace_id AND l.span_id = '' AND a.source = 'human' AND l.at >= ?2) END)"
        " ORDER BY at LIMIT ?3",
        (now - policy.scores_s, now - policy.labels_s, _AGED),
    ).fetchall()
    drop_runs(connection, [run for (run,) in runs])
    return len(old) == _AGED or len(runs) == _AGED
