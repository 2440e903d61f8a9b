"""One way to open a SQLite file that several processes share: the spool, the store, the grades, the books."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PAUSE_S = 0.005


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
