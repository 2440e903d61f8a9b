"""Who publishes what a killed scorer left: of several scorers at one file, one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_SCHEMA = "CREATE TABLE IF NOT EXISTS claims (run INTEGER PRIMARY KEY, until REAL NOT NULL)"
_FREE = (
    "SELECT run FROM scores WHERE exported = 0 AND run NOT IN (SELECT run FROM claims)"
    " GROUP BY run HAVING max(scored_at) < ? ORDER BY run LIMIT ?"
)


def claim(connection: sqlite3.Connection, limit: int, *, before: float, now: float, for_s: float) -> list[int]:
    """Take runs with unpublished scores inside the caller's transaction, so that for some time nobody else does.

    Args:
        connection: to the store's file.
        limit: most runs.
        before: Unix seconds; a run with a younger unpublished score is left to who has just written it.
        now: Unix seconds.
        for_s: seconds; a claim whose holder did not publish by then is anybody's again.

    Example:
        >>> import sqlite3
        >>> from ragtrace.stores.tables import tables
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> tables(connection)
        >>> claim(connection, 100, before=1.0, now=1.0, for_s=60.0)
        []
    """
    connection.execute(_SCHEMA)
    connection.execute("DELETE FROM claims WHERE until <= ?1 OR until > ?1 + ?2", (now, for_s))  # a clock set back
    runs = [run for (run,) in connection.execute(_FREE, (before, limit))]
    connection.executemany("INSERT INTO claims VALUES (?, ?)", [(run, now + for_s) for run in runs])
    return runs
