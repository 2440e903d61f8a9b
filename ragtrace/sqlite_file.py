"""SQLite files that processes share."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import weakref
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PAUSE_S = 0.005
_FORK_WAIT_S = 1.0
EMPTY_EVERY_S = 30.0
_EMPTY_AGAIN_S = 1.0
_EMPTY_BUSY_S = 0.1  # writers wait behind a checkpoint that waits for readers
_PASSES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})
# Stands before a text that is to be erased whole. SQLite copies the rows of a page when it splits or joins pages,
# and leaves bytes of the copies where `secure_delete` does not look: of 40,000 ended jobs texts of 20 were found. A
# row has at most 4,061 bytes in such a page of 4,096; the rest lies in pages of its own, which are never copied.
PAD = b" " * 4_096
_UNWRITABLE = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_FULL: "disk full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_IOERR: "disk I/O error",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_CORRUPT: "broken",  # put aside by now: the next try finds a new file
    sqlite3.SQLITE_NOTADB: "broken",
}
APPLICATION_ID = 0x52414754  # "RAGT", in the header of a file of ours


class ForeignFileError(sqlite3.DatabaseError):
    """The file is another program's, or it lost the mark of ragtrace."""


class SharedFile:
    """One connection to a SQLite file that processes share. Thread-safe.

    The file is made when it is missing (mode 0600), with a WAL and ``synchronous = NORMAL``: a commit survives a
    killed process; a power cut may lose the last ones. The connection opens at first use, and again after a failure
    or when another file stands at the path. A broken file is put aside only when it bears our mark or this process
    had it open; any other is refused and left alone.

    The connection is closed while the process forks. SQLite keeps a process's locks in memory: a child that
    inherits them believes that it holds them, and its commits are lost without an error.

    Args:
        path: the file; its folder must exist. None = in memory, for this process alone; a forked child begins anew.
        prepare: makes the tables, on each new connection and inside a transaction; may raise.
        busy_s: seconds that an opening or a transaction waits for another process's lock.
        aside: told the new path of a broken file and the reason; None = a broken file stays, as an error.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "file.sqlite"
        >>> file = SharedFile(path, prepare=lambda c: c.execute("CREATE TABLE IF NOT EXISTS labels (n)"))
        >>> with file.transaction() as connection:
        ...     connection.execute("INSERT INTO labels VALUES (1)").rowcount
        1
        >>> file.close()
    """

    def __init__(
        self,
        path: Path | None,
        *,
        prepare: Callable[[sqlite3.Connection], object],
        busy_s: float = 10.0,
        aside: Callable[[Path, Exception], None] | None = None,
    ) -> None:
        self.path = path
        self._prepare = prepare
        self._busy_s = busy_s
        self._aside = aside
        self._lock = threading.RLock()
        self._readers = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._is_spoiled = False
        self._empty_at = time.monotonic() + EMPTY_EVERY_S
        with _files.lock:
            _files.open.add(self)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection in autocommit; a failure closes it.

        Raises:
            OSError: the file cannot be made.
            ForeignFileError: it is another program's database.
            sqlite3.Error: it cannot be opened, stayed locked, is full, read-only or broken.
        """
        self._refuse_spoiled()
        with self._lock:
            try:
                yield self._current()
            except sqlite3.Error as error:
                self._recover(error)
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a new connection that only reads, and that no writer waits for.

        A fork and other readers of this process wait until it is closed: lend it for one page. A file in memory has
        none but its own.

        Raises:
            sqlite3.Error: there is no file, or it cannot be opened.
        """
        if self.path is None:
            raise sqlite3.OperationalError("a file in memory has one connection")
        self._refuse_spoiled()
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        with self._readers, closing(sqlite3.connect(address, uri=True, timeout=self._busy_s)) as connection:
            yield connection

    def _refuse_spoiled(self) -> None:
        if self._is_spoiled:
            raise sqlite3.OperationalError(f"{self.path} was being written when this process was forked")

    @contextmanager
    def transaction(self, *, is_reading: bool = False) -> Iterator[sqlite3.Connection]:
        """Lend the connection in a transaction, rolled back on an error.

        It takes the write lock at the start. Raises as `connection`.

        Args:
            is_reading: several reads of one moment, which keep nobody from writing.
        """
        begin = "BEGIN DEFERRED" if is_reading else "BEGIN IMMEDIATE"
        with self.connection() as connection:
            try:
                connection.execute(begin)
            except sqlite3.DatabaseError as error:
                if not self._recover(error):
                    raise
                connection = self._current()  # noqa: PLW2901 - the file that was begun in its place
                connection.execute(begin)
            with _committed(connection):
                yield connection

    @contextmanager
    def waiting(self, busy_s: float) -> Iterator[None]:
        """Have transactions wait no longer than `busy_s` for another process; the caller has the file to itself."""
        usual_s = self._busy_s
        self._set_busy(busy_s)
        try:
            yield
        finally:
            self._set_busy(usual_s)

    def _set_busy(self, busy_s: float) -> None:
        self._busy_s = busy_s
        if self._connection is not None:
            self._connection.execute(f"PRAGMA busy_timeout = {int(busy_s * 1_000)}")

    def empty_journal(self) -> None:
        """Copy the WAL into the file and empty it, at most every 30 s.

        Erased bytes stand in the WAL until then: SQLite itself empties it when the last connection of all processes
        closes. While a reader is in the way it is tried again each second. Raises as `connection`.
        """
        if self.path is None or time.monotonic() < self._empty_at:
            return
        self._empty_at = time.monotonic() + EMPTY_EVERY_S
        with self.connection() as connection:
            if not _size(self.path.with_name(self.path.name + "-wal")):
                return
            with self.waiting(_EMPTY_BUSY_S):
                is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_busy:
            self._empty_at = time.monotonic() + _EMPTY_AGAIN_S

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        if self._is_spoiled:
            return
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _current(self) -> sqlite3.Connection:
        if self._connection is not None and self.path is not None:
            if self._inode != inode_of(self.path):
                self.close()
            elif not _size(self.path):
                self._recover(sqlite3.DatabaseError("it was truncated"))
        if self._connection is None:
            self._connection = self._opened()
            _files.opened_whole.add((self.path, self._inode))
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                with _folder_locked(self.path):
                    if self.path is not None:
                        _make(self.path)
                        self._inode = inode_of(self.path)
                    return self._prepared(deadline)
            except sqlite3.Error as error:
                is_replaced = self._put_aside(error) or (
                    self.path is not None and self._inode != inode_of(self.path)
                )
                if is_replaced and time.monotonic() < deadline:
                    continue
                if _is_broken(error) and not self._is_ours():
                    text = f"{error}, and no mark of ragtrace is in it: use a file of its own"
                    raise ForeignFileError(text) from error
                raise

    def _prepared(self, deadline: float) -> sqlite3.Connection:
        connection = _connected(self.path, self._busy_s)
        try:
            _refuse_foreign(connection)
            _into_wal(connection, deadline)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            with _committed(connection):
                self._prepare(connection)
                if not _application_id(connection):
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _recover(self, error: sqlite3.Error) -> bool:
        """Close the connection; return whether a new file can replace a broken one."""
        self.close()
        return self._put_aside(error)

    def _put_aside(self, error: sqlite3.Error) -> bool:
        """Rename a broken file of ours with its journal; False when it stays."""
        if self.path is None or self._aside is None or not (_is_broken(error) and self._is_ours()):
            return False
        aside = self.path.with_name(f"{self.path.name}.corrupt-{time.time_ns()}-{os.getpid()}")
        try:
            with _folder_locked(self.path, is_alone=True):
                if inode_of(self.path) != self._inode or (_size(self.path) and _is_whole(self.path)):
                    return True
                # The journal first: SQLite throws one away that it finds beside an empty file.
                for suffix in ("-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        self.path.with_name(self.path.name + suffix).rename(aside.with_name(aside.name + suffix))
                self.path.rename(aside)
        except OSError as problem:
            record_internal_error("ragtrace.sqlite_file.put_aside", problem)
            return False
        self._aside(aside, error)
        return True

    def _is_ours(self) -> bool:
        if (self.path, self._inode) in _files.opened_whole:
            return True
        if self.path is not None:
            with suppress(sqlite3.Error), closing(_connected(self.path, 1.0)) as connection:
                return _application_id(connection) == APPLICATION_ID
        return False

    # -- at a fork --

    def close_for_fork(self, deadline: float) -> bool:
        """Close and lock the file for a fork; False when it stays busy."""
        if self._is_spoiled or not self._lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            return False
        if not self._readers.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            self._lock.release()
            return False
        if self.path is not None:
            self.close()
        return True

    def unlock_after_fork(self) -> None:
        """Unlock a file that was closed for a fork, in parent or child."""
        self._readers.release()
        self._lock.release()

    def reset_in_child(self, *, is_closed: bool) -> None:
        """Begin anew in a child; a file under a write of the parent is unusable, and its lock held for ever."""
        if self._connection is not None:
            _files.inherited.append(self._connection)  # closing it would end the parent's journal
            self._connection = None
        if is_closed:
            self.unlock_after_fork()
        else:
            self._is_spoiled = True


class _Files:
    """The files of this process, all closed while it forks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: weakref.WeakSet[SharedFile] = weakref.WeakSet()
        self.opened_whole: set[tuple[Path | None, int]] = set()
        self.inherited: list[sqlite3.Connection] = []
        self._closed: list[SharedFile] = []

    def before_fork(self) -> None:
        self.lock.acquire()
        deadline = time.monotonic() + _FORK_WAIT_S
        self._closed = [file for file in list(self.open) if file.close_for_fork(deadline)]

    def after_in_parent(self) -> None:
        for file in self._closed:
            file.unlock_after_fork()
        self._closed = []
        self.lock.release()

    def after_in_child(self) -> None:
        for file in list(self.open):
            file.reset_in_child(is_closed=file in self._closed)
        self._closed = []
        self.lock.release()


_files = _Files()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_files.before_fork, after_in_parent=_files.after_in_parent, after_in_child=_files.after_in_child
    )


def will_pass(error: BaseException | None) -> bool:
    """Return whether an error is a lock or a full disk, which may pass.

    Example:
        >>> will_pass(sqlite3.OperationalError("no such table"))
        False
    """
    code = getattr(error, "sqlite_errorcode", None)  # of sqlite3's own errors alone
    return code is not None and code & 0xFF in _PASSES


def unwritable(error: BaseException) -> str | None:
    """Return why a file cannot be written for now, None for lasting errors.

    Example:
        >>> unwritable(OSError(28, "No space left on device")), unwritable(sqlite3.IntegrityError("NOT NULL"))
        ('No space left on device', None)
    """
    cause = error if error.__cause__ is None else error.__cause__  # a QueueError or StoreError says of what
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return _UNWRITABLE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)


def is_sqlite(path: Path) -> bool:
    """Return whether a file is empty or begins as SQLite's do."""
    with path.open("rb") as file:
        return file.read(16) in {b"SQLite format 3\0", b""}


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that hold something."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


@contextmanager
def _committed(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back when the disk is full
            connection.execute("ROLLBACK")
        raise


def _connected(path: Path | None, busy_s: float) -> sqlite3.Connection:
    # "rw": SQLite itself would make a missing file for all to read.
    name = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(name, timeout=busy_s, isolation_level=None, check_same_thread=False, uri=True)


def _make(path: Path) -> None:
    """Make an empty file for its owner alone, where there is none.

    Behind a lock: to close one that another thread has opened meanwhile would drop that connection's locks.
    """
    with _files.lock, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


@contextmanager
def _folder_locked(path: Path | None, *, is_alone: bool = False) -> Iterator[None]:
    """Lock the folder, since opening and putting a file aside exclude each other.

    SQLite finds a journal by its name: an opening of the broken file would take the new file's for its own. The
    lock is the folder's, since one on the file would end SQLite's.
    """
    if path is None or sys.platform == "win32":  # Windows renames no open file
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)  # a child that was forked meanwhile has the folder open too
        os.close(folder)


def inode_of(path: Path) -> int:
    """Return a file's inode, 0 where there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _into_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Set the journal mode, again while others do, since SQLite does not wait there."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not will_pass(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _refuse_foreign(connection: sqlite3.Connection) -> None:
    # Tables first: another process that begins the file commits them together with its mark.
    tables = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    mark = _application_id(connection)
    if mark != APPLICATION_ID and (mark or tables):
        shown = ", ".join(tables[:3]) or "none"
        raise ForeignFileError(f"it has other tables ({shown}): use a file of its own")


def _application_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _is_broken(error: BaseException) -> bool:
    """Return whether the file itself is broken; other errors are subclasses."""
    return type(error) is sqlite3.DatabaseError


def _is_whole(path: Path) -> bool:
    with closing(_connected(path, 1.0)) as connection:
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except sqlite3.Error as error:
            return not _is_broken(error)
