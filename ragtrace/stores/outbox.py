"""The outbox of scores that a receiver has yet to take, with the owner of each.

A row stands from the write of a score until its event was delivered and a metrics report that counts it was. All
functions work inside the caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.stores.owner import is_over

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from ragtrace.stores.owner import Owner

    Mark = tuple[int, int, int]  # run, series, and how often the score was written

EVENT, COUNT = 1, 2  # what is owed: the event, and a metrics report
ALL = EVENT | COUNT
NOBODY = 0  # the owner of scores that no service wrote
HOLD_S = 300.0  # an owner of which `/proc` tells nothing holds its rows so long after its last sign of life
SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS outbox (run INTEGER NOT NULL, series INTEGER NOT NULL, writes INTEGER NOT NULL,"
        " owed INTEGER NOT NULL, owner INTEGER NOT NULL, seq INTEGER NOT NULL, sent REAL NOT NULL,"
        " PRIMARY KEY (run, series)) WITHOUT ROWID"
    ),
    "CREATE INDEX IF NOT EXISTS outbox_owner ON outbox (owner, seq)",
    # Of rows that a transaction is about to delete.
    "CREATE INDEX IF NOT EXISTS outbox_done ON outbox (owed) WHERE owed = 0",
    "CREATE TABLE IF NOT EXISTS owners (id INTEGER PRIMARY KEY, process TEXT NOT NULL, until REAL NOT NULL)",
)
# By the key, not by the index of owners, who may have 100,000 rows.
_OF_RUN = "WHERE run = ? AND +owner = ?"
# One step in the index for each owner, however many rows each has.
_OWNERS = (
    "WITH RECURSIVE found (id) AS (SELECT min(owner) FROM outbox UNION ALL"
    " SELECT (SELECT min(owner) FROM outbox WHERE owner > id) FROM found WHERE id IS NOT NULL)"
    " SELECT found.id, process, until FROM found LEFT JOIN owners USING (id) WHERE found.id IS NOT NULL"
)


def put(
    connection: sqlite3.Connection, mark: Mark, owner: Owner | None, seq: int, *, owed: int, now: float
) -> None:
    """Enter a written score; without an owner any service may claim it."""
    if owner is not None:
        _enter(connection, owner, now)
    run, series, writes = mark
    connection.execute(
        "INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run, series, writes, owed, NOBODY if owner is None else owner.id, seq, now),
    )


def owed(connection: sqlite3.Connection, run: int, series: int, revision: int, mine: Owner, now: float) -> int:
    """Return the events and counts that an owner owes of a score that it is about to write.

    A scorer writes a unit's scores before it ends their job. If it dies in between, the unit is scored again, and
    the second scorer owes only the part that the first did not send.
    """
    found = connection.execute(
        "SELECT s.exported, o.owed, o.owner FROM scores s"
        " LEFT JOIN outbox o ON o.run = s.run AND o.series = s.series"
        " WHERE s.run = ? AND s.series = ? AND s.revision = ?",
        (run, series, revision),
    ).fetchone()
    if found is None:
        return ALL
    exported, left, owner = found
    if left is None:
        return 0 if exported else ALL
    return 0 if is_held(connection, owner, mine, now) else int(left)


def free_owners(connection: sqlite3.Connection, now: float) -> list[int]:
    """Return the owners that left, or whose process has ended.

    Example:
        >>> import sqlite3
        >>> from ragtrace.stores.owner import Owner
        >>> from ragtrace.stores.tables import tables
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> tables(connection)
        >>> put(connection, (1, 1, 1), Owner(id=1), 1, owed=ALL, now=0.0)
        >>> put(connection, (2, 1, 1), Owner(id=2, process="another-boot pid:[1] 7 7"), 1, owed=ALL, now=0.0)
        >>> free_owners(connection, 0.0)
        [2]
    """
    return [
        owner
        for owner, process, until in connection.execute(_OWNERS).fetchall()
        if process is None or is_free(process, until, now)
    ]


def is_free(process: str, until: float, now: float) -> bool:
    """Return whether an owner has ended; its last sign of life decides where `/proc` does not.

    Example:
        >>> is_free("", until=100.0, now=99.0), is_free("", until=100.0, now=101.0)
        (False, True)
    """
    over = is_over(process)
    return not now < until <= now + HOLD_S if over is None else over  # further ahead: of a clock that was set back


def is_held(connection: sqlite3.Connection, owner: int, mine: Owner, now: float) -> bool:
    """Return whether another living owner holds a row."""
    if owner in {NOBODY, mine.id}:
        return False
    row = connection.execute("SELECT process, until FROM owners WHERE id = ?", (owner,)).fetchone()
    return row is not None and not is_free(row[0], row[1], now)


def claim(
    connection: sqlite3.Connection,
    owner: Owner,
    free: Iterable[int],
    limit: int,
    *,
    seqs: Sequence[int] = (),
    next_seq: Callable[[], int],
    now: float,
) -> list[tuple[int, int]]:
    """Give runs to an owner, the oldest first; return each with its new place.

    Args:
        connection: to the store's file.
        owner: takes them.
        free: owners that have ended.
        limit: most runs.
        seqs: places of its own rows that were never published, to be taken anew.
        next_seq: gives the next place.
        now: Unix seconds.
    """
    taken: list[tuple[int, int]] = []  # run, owner
    for seq in seqs:
        taken += connection.execute(
            "SELECT DISTINCT run, owner FROM outbox WHERE owner = ? AND seq = ?", (owner.id, seq)
        ).fetchall()
    for other in free:
        rows = connection.execute("SELECT run FROM outbox WHERE owner = ? ORDER BY seq", (other,))
        taken += [(run, other) for run in _first(rows, limit - len(taken))]
    if taken:
        _enter(connection, owner, now)
    given = {run: next_seq() for run, _ in taken}
    connection.executemany(
        f"UPDATE outbox SET owner = ?, seq = ?, sent = ? {_OF_RUN}",  # noqa: S608 - our own names
        [(owner.id, given[run], now, run, other) for run, other in taken],
    )
    return list(given.items())


def _enter(connection: sqlite3.Connection, owner: Owner, now: float) -> None:
    connection.execute("INSERT OR IGNORE INTO owners VALUES (?, ?, ?)", (owner.id, owner.process, now + HOLD_S))


def unsent(connection: sqlite3.Connection, owner: Owner, limit: int, *, before: float, now: float) -> list[int]:
    """Return an owner's runs whose events were sent before a time and did not arrive."""
    rows = connection.execute(
        "SELECT run FROM outbox WHERE owner = ? AND owed & 1 AND sent < ? ORDER BY seq", (owner.id, before)
    )
    runs = _first(rows, limit)
    connection.executemany(
        f"UPDATE outbox SET sent = ? {_OF_RUN}",  # noqa: S608 - our own names
        [(now, run, owner.id) for run in runs],
    )
    return runs


def _first(rows: Iterable[tuple[int]], limit: int) -> list[int]:
    runs: dict[int, None] = {}
    for (run,) in rows:
        if len(runs) >= limit:
            break
        runs[run] = None
    return list(runs)


def acknowledge(connection: sqlite3.Connection, marks: Iterable[Mark], what: int = ALL) -> None:
    """Note that scores arrived; a score that was written again since is still owed."""
    connection.executemany(
        f"UPDATE outbox SET owed = owed & {~what} WHERE run = ? AND series = ? AND writes = ?",  # noqa: S608 - a number
        list(marks),
    )
    _end(connection)


def acknowledge_to(connection: sqlite3.Connection, owner: Owner, what: int, after: int, upto: int) -> None:
    """Note that an owner's rows arrived, from behind one place up to another."""
    connection.execute(
        "UPDATE outbox SET owed = owed & ~? WHERE owner = ? AND seq > ? AND seq <= ?", (what, owner.id, after, upto)
    )
    _end(connection)


def beat(connection: sqlite3.Connection, owner: Owner, now: float) -> None:
    """Give a sign of life, and forget owners without rows; the next write enters them again."""
    connection.execute("UPDATE owners SET until = ? WHERE id = ?", (now + HOLD_S, owner.id))
    connection.execute("DELETE FROM owners WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE owner = owners.id)")


def leave(connection: sqlite3.Connection, owner: Owner) -> None:
    """Release an owner's rows."""
    connection.execute("DELETE FROM owners WHERE id = ?", (owner.id,))


def _end(connection: sqlite3.Connection) -> None:
    ended = connection.execute("DELETE FROM outbox WHERE owed = 0 RETURNING run, series").fetchall()
    connection.executemany("UPDATE scores SET exported = 1 WHERE run = ? AND series = ?", ended)
