"""SQLite files that processes share (spool, store, grades, books): opened, written, and put aside when broken."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PAUSE_S = 0.005
_JOURNAL = ("-wal", "-shm")


def make(path: Path) -> None:
    """Make an empty file, its owner's alone (mode 0600), where there is none; raises OSError.

    One that is there is not opened: closing it would drop the locks of this process's other connections.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def opened(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Return a connection in autocommit, for any thread, to a file that is made when it is not there (mode 0600).

    The journal is a WAL with ``synchronous = NORMAL``: a commit survives a killed process; a power cut may lose the
    last ones (SCORING.md 3).

    Args:
        path: the file; its folder must exist.
        busy_s: how long this, and later every transaction, waits for another process's lock.

    Raises:
        OSError: the file cannot be made.
        sqlite3.DatabaseError: it is no database.
        sqlite3.OperationalError: it cannot be opened, or stayed locked.

    Example:
        >>> import pathlib, tempfile
        >>> connection = opened(pathlib.Path(tempfile.mkdtemp()) / "file.sqlite", busy_s=10)
        >>> connection.execute("PRAGMA journal_mode").fetchone()
        ('wal',)
        >>> connection.close()
    """
    make(path)
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        _into_wal(connection, time.monotonic() + busy_s)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, *, is_reading: bool = False) -> Iterator[sqlite3.Connection]:
    """Hold the write lock from the start, so that nothing fails half-way for it; commit, or roll back what raises.

    Args:
        connection: one that `opened` returned.
        is_reading: several reads of one moment, which keep nobody from writing.

    Raises:
        sqlite3.OperationalError: another process held the lock too long; or the disk is full or read-only.

    Example:
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> with transaction(connection):
        ...     _ = connection.execute("CREATE TABLE t (n)")
        >>> connection.in_transaction
        False
    """
    connection.execute("BEGIN DEFERRED" if is_reading else "BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back when the disk is full
            connection.execute("ROLLBACK")
        raise


def is_broken(error: BaseException) -> bool:
    """Return whether an error says that the file itself is broken, and not that a call, a lock or the disk failed.

    The latter are subclasses; for a broken page, or a file that is no database, there is none.
    """
    return type(error) is sqlite3.DatabaseError


def put_aside(path: Path, inode: int) -> Path | None:
    """Rename a broken file, with its journal, and return its new path; None when another process was faster.

    Of several processes that find a file broken at the same moment one puts it aside, and none the new one that
    stands in its place.

    Args:
        path: the file; its connections of this process are closed.
        inode: of the file that was found broken.

    Raises:
        OSError: the folder cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "file.sqlite"
        >>> _ = path.write_bytes(b"no database")
        >>> inode = path.stat().st_ino
        >>> put_aside(path, inode).name.startswith("file.sqlite.corrupt-"), put_aside(path, inode)
        (True, None)
    """
    try:
        with path.open("rb") as held:
            _lock(held.fileno())  # until it is closed; who waited here finds another file in its place
            if path.stat().st_ino != inode:
                return None
            aside = path.with_name(f"{path.name}.corrupt-{int(time.time())}-{os.getpid()}")
            # The journal first: SQLite throws one away that it finds beside an empty file, not beside a filled one.
            for suffix in _JOURNAL:
                with suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
            path.rename(aside)
            return aside
    except FileNotFoundError:
        return None


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that hold something."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _lock(descriptor: int) -> None:
    if sys.platform != "win32":  # there an open file cannot be renamed at all
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _into_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Set the journal's mode, again while others do the same.

    Of two that set a new file's mode at once SQLite fails one without waiting: it would be a deadlock. With four
    processes that was one opening in twenty.
    """
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # Extended codes (a recovery, a snapshot) keep the code in their lowest byte.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return
