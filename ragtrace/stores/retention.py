"""Retention by age and by size, payloads before scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.sqlite_file import used_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ragtrace.stores.base import Policy

_PAYLOADS, _RUNS = 32, 200  # deleted at once: a write waits for no more than is needed
_SPLITS_BYTES = 65_536  # pages that a few rows may split in seven b-trees
_AGED = 500  # runs of one transaction, so that no other process waits long
_DAY_S = 86_400.0
_LEAP_S = _DAY_S + 3_600.0  # a job that opens the file once a day is no leap
_YOUNG_S = 300.0


def has_room(connection: sqlite3.Connection, need_bytes: int, file_bytes: int) -> bool:
    """Make room for some bytes; False when no rows are left to delete.

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
        record_internal_error(site, reason="the store has reached store_bytes, and its oldest go first")


def apply_retention(
    connection: sqlite3.Connection, policy: Policy, now: float, *, boot: str = "", uptime_s: float = 0.0
) -> bool:
    """Delete some expired rows; return whether there may be more.

    A score stays as long as a human label of its trace. Times ahead of the clock by more than a day become now:
    else they would never be over. What is older than a leap of the clock ages as if there had been none, so that
    neither a wrong clock nor a file that was not opened for a month loses more than a day's worth a day.

    Args:
        connection: to the store's file.
        policy: how long rows stay.
        now: Unix seconds.
        boot: the boot of the host, "" where it cannot be told.
        uptime_s: seconds since then. Between two looks in one boot they tell how much time really passed.
    """
    lag, era = _leap(connection, now, boot, uptime_s)
    given = {
        "now": now,
        "lag": lag,
        "era": era,
        "payloads": policy.payloads_s,
        "scores": policy.scores_s,
        "labels": policy.labels_s,
        "most": _AGED,
    }
    ahead = now + _DAY_S
    connection.execute("UPDATE runs SET at = ? WHERE at > ?", (now, ahead))
    connection.execute("UPDATE payloads SET at = ? WHERE at > ?", (now, ahead))
    old = connection.execute(
        f"SELECT run FROM payloads WHERE {_old('at', ':payloads')} ORDER BY at LIMIT :most",  # noqa: S608 - ours
        given,
    ).fetchall()
    connection.executemany("DELETE FROM payloads WHERE run = ?", old)
    runs = connection.execute(
        f"SELECT id FROM runs r WHERE {_old('at', ':scores')} AND (CASE WHEN span_id = '' AND EXISTS"  # noqa: S608
        " (SELECT 1 FROM scores s JOIN series a ON a.id = s.series WHERE s.run = r.id AND a.source = 'human')"
        f" THEN {_old('at', ':labels')} ELSE NOT EXISTS"
        " (SELECT 1 FROM runs l JOIN scores s ON s.run = l.id JOIN series a ON a.id = s.series"
        " WHERE l.trace_id = r.trace_id AND l.span_id = '' AND a.source = 'human'"
        f" AND NOT {_old('l.at', ':labels')}) END)"
        " ORDER BY at LIMIT :most",
        given,
    ).fetchall()
    drop_runs(connection, [run for (run,) in runs])
    return len(old) == _AGED or len(runs) == _AGED


def _old(at: str, keep: str) -> str:
    return f"({at} < :now - {keep} AND ({at} > :era OR {at} < :now - :lag - {keep}))"


def _leap(connection: sqlite3.Connection, now: float, boot: str, uptime_s: float) -> tuple[float, float]:
    """Return the seconds of a leap of the clock, and the time before it.

    A leap is more than a day between two looks that did not really pass, or of which nobody knows it since the host
    was restarted. It is over when the clock goes back, or when all that was written before it is gone.
    """
    names = "'aged_at', 'aged_boot', 'aged_uptime', 'lag', 'era'"
    facts = dict(connection.execute(f"SELECT name, value FROM store_facts WHERE name IN ({names})"))  # noqa: S608
    last = facts.get("aged_at")
    if last is None:  # a file from before these facts; what is younger this very process may have written
        newest = connection.execute("SELECT max(at) FROM runs WHERE at < ?", (now - _YOUNG_S,)).fetchone()[0]
        last = now if newest is None else newest
    lag, era = facts.get("lag", 0.0), facts.get("era", 0.0)
    leap = now - last
    if boot and facts.get("aged_boot") == boot:
        leap -= uptime_s - facts["aged_uptime"]
    if leap > _LEAP_S:
        lag, era = lag + leap, last + _YOUNG_S
    elif leap < -_LEAP_S:
        lag = max(lag + leap, 0.0)
    if lag and connection.execute("SELECT 1 FROM runs WHERE at <= ? LIMIT 1", (era,)).fetchone() is None:
        lag = 0.0
    era = era if lag else 0.0
    new = {"aged_at": now, "aged_boot": boot, "aged_uptime": uptime_s, "lag": lag, "era": era}
    connection.executemany("INSERT OR REPLACE INTO store_facts VALUES (?, ?)", new.items())
    return lag, era
