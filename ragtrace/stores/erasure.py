"""Erases a trace, session or user from a store and a spool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.stores.anchors import erase_anchors, erase_rater
from ragtrace.stores.base import Erased
from ragtrace.stores.retention import drop_runs
from ragtrace.stores.tables import has_tables
from ragtrace.stores.upsert import HUMAN, version_of
from ragtrace.text import clean

if TYPE_CHECKING:
    import sqlite3

    from ragtrace.stores.base import Subject

_FIELDS: dict[Subject, str] = {"trace": "trace_id", "session": "session", "user": "user"}
_SCORES = (
    "SELECT series.source = 'human', count(*) FROM scores JOIN series ON series.id = scores.series"
    " WHERE run IN (SELECT id FROM doomed) GROUP BY 1"
)
# No index leads from a series to its scores; labels are found by their runs, which are few beside the scores.
_RATED = (
    "SELECT run, series FROM runs JOIN scores ON scores.run = runs.id WHERE runs.span_id = ''"
    " AND series IN (SELECT id FROM series WHERE source = ? AND version = ?)"
)
_NO_LABEL_LEFT = "DELETE FROM runs WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM scores WHERE run = ?1)"
_UNUSED_RATERS = (
    "DELETE FROM series WHERE source = ? AND id NOT IN"
    " (SELECT series FROM runs JOIN scores ON scores.run = runs.id WHERE runs.span_id = '')"
)


def erase(connection: sqlite3.Connection, subject: Subject, identity: str) -> Erased:
    """Delete rows inside the caller's transaction, labels with any run of a trace.

    Example:
        >>> import sqlite3
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> erase(connection, "user", "ada")
        Erased(runs=0, scores=0, labels=0, payloads=0, jobs=0, anchors=0)
    """
    erased, identity = Erased(), clean(identity) or ""
    if has_tables(connection, "store_facts"):
        erased += _from_store(connection, subject, identity)
    if has_tables(connection, "jobs", "ledger", "facts"):
        erased += _from_spool(connection, subject, identity)
    return erased


def _from_store(connection: sqlite3.Connection, subject: Subject, identity: str) -> Erased:
    field = _FIELDS[subject]
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM doomed")
    connection.execute(f"INSERT INTO doomed SELECT id FROM runs WHERE {field} = ?", (identity,))  # noqa: S608 - our own names
    connection.execute(
        "INSERT OR IGNORE INTO doomed SELECT l.id FROM runs l JOIN runs r ON r.trace_id = l.trace_id"
        " WHERE l.span_id = '' AND r.id IN (SELECT id FROM doomed)"
    )
    runs = [row[0] for row in connection.execute("SELECT id FROM doomed")]
    counts = dict(connection.execute(_SCORES))
    payloads = connection.execute("SELECT count(*) FROM payloads WHERE run IN (SELECT id FROM doomed)").fetchone()[
        0
    ]
    anchors = erase_anchors(connection, field, identity)
    drop_runs(connection, runs)
    erased = Erased(
        runs=len(runs), scores=counts.get(0, 0), labels=counts.get(1, 0), payloads=payloads, anchors=anchors
    )
    if subject == "user" and identity:
        erased += _as_rater(connection, identity)
    connection.execute(_UNUSED_RATERS, (HUMAN,))
    return erased


def _as_rater(connection: sqlite3.Connection, identity: str) -> Erased:
    # Labels of other people's traces.
    rated = connection.execute(_RATED, (HUMAN, version_of(identity))).fetchall()
    connection.executemany("DELETE FROM scores WHERE run = ? AND series = ?", rated)
    emptied = connection.executemany(_NO_LABEL_LEFT, [(run,) for run in {run for run, _ in rated}]).rowcount
    of_anchors = erase_rater(connection, version_of(identity))
    return Erased(runs=max(emptied, 0), labels=len(rated) + of_anchors)


def _from_spool(connection: sqlite3.Connection, subject: Subject, identity: str) -> Erased:
    """End jobs as ``skipped forgotten``; their holders publish nothing."""
    found = connection.execute(
        "SELECT key, size FROM jobs WHERE state != 'ended' AND payload IS NOT NULL"
        " AND CASE WHEN json_valid(CAST(payload AS TEXT))"
        " THEN json_extract(CAST(payload AS TEXT), ?1) = ?2 ELSE 0 END",
        (f"$.record.{_FIELDS[subject]}", identity),
    ).fetchall()
    if not found:
        return Erased()
    connection.executemany(
        "UPDATE jobs SET state = 'ended', owner = '', payload = NULL, size = 0 WHERE key = ?",
        [(key,) for key, _ in found],
    )
    size = sum(size for _, size in found)
    connection.execute("UPDATE facts SET value = value - ? WHERE name = 'bytes'", (size,))
    connection.execute(
        "INSERT INTO ledger VALUES ('skipped', 'forgotten', ?1) ON CONFLICT DO UPDATE SET n = n + ?1", (len(found),)
    )
    return Erased(jobs=len(found))
