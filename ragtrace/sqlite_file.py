"""SQLite files that processes share (spool, store, grades, books): opened, written, and put aside when broken."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import weakref
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PAUSE_S = 0.005
_FORK_WAIT_S = 1.0
_ASIDE_WAIT_S = 10.0
EMPTY_EVERY_S = 30.0
_EMPTY_AGAIN_S = 1.0
_EMPTY_BUSY_MS = 100  # writers wait behind an emptying that waits for readers
_JOURNAL = ("-wal", "-shm")
_PASSES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})
# To stand before a text that is to be erased whole. SQLite copies the rows of a page when it splits or joins pages,
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
# A table of each kind of file of ours, with its first columns: files from before the id in the header have no other
# mark, and other programs have a `ledger` too.
_MARKS = {
    "ledger": ["state", "reason", "n"],
    "store_facts": ["name", "value"],
    "reservations": ["id", "account", "day", "nano_usd"],
    "labels": ["seq", "universe", "passage", "key"],
}


class ForeignFileError(sqlite3.DatabaseError):
    """The file is another program's, or bears no mark of ours any more."""


class SharedFile:
    """One connection to a SQLite file that processes share, opened when it is used. Thread-safe.

    The file is made when it is not there (mode 0600). Its journal is a WAL with ``synchronous = NORMAL``: a commit
    survives a killed process; a power cut may lose the last ones (SCORING.md 3). When another file stands at the
    path (the one before was put aside or deleted), that one is opened; after a failure it is opened anew. A broken
    file is put aside only when it bears our mark, or this process had it open; any other is refused and left alone.

    No connection is open while the process forks. SQLite keeps the locks it has on a file in the process's memory:
    a child that inherits an open one believes that it holds them, and what it commits is lost without an error.

    Args:
        path: the file; its folder must exist. None = in memory, for this process alone; a forked child begins anew.
        busy_s: how long an opening or a transaction waits for another process's lock.
        prepare: makes the tables, on each new connection and inside a transaction; may raise.
        aside: told where a broken file was put and why, before a new one is begun; None = it stays, as an error.

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
        self._is_lent = False
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._empty_at = time.monotonic() + EMPTY_EVERY_S
        with _all.lock:
            _all.files.add(self)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection, in autocommit; a failure closes it, and puts aside a file that is broken.

        Raises:
            OSError: the file cannot be made, or another process takes too long to put a broken one aside.
            ForeignFileError: it is another program's database.
            sqlite3.Error: it cannot be opened, stayed locked, is full, read-only or broken; or this thread has it
                already: a finaliser came in between.
        """
        with self._lock, self._minded():
            yield self._opened()

    @contextmanager
    def transaction(self, *, is_reading: bool = False) -> Iterator[sqlite3.Connection]:
        """Lend it in a transaction that commits at the end, or rolls back what raises. Raises as `connection`.

        It holds the write lock from the start, so that nothing fails half-way for it.

        Args:
            is_reading: several reads of one moment, which keep nobody from writing.
        """
        begin = "BEGIN DEFERRED" if is_reading else "BEGIN IMMEDIATE"
        with self._lock, self._minded(), _ended(self._begun(begin)) as connection:
            yield connection

    def empty_journal(self) -> None:
        """Copy the journal into the file and empty it, at most every 30 s; call it as often as you like.

        What was erased from the file stands in its journal until then: SQLite itself empties one when the last
        connection of all processes closes. While a reader is in the way it is tried again each second.
        Raises as `connection`.
        """
        if self.path is None or time.monotonic() < self._empty_at:
            return
        self._empty_at = time.monotonic() + EMPTY_EVERY_S
        with self.connection() as connection:
            if not _size(self.path.with_name(self.path.name + "-wal")):
                return
            connection.execute(f"PRAGMA busy_timeout = {_EMPTY_BUSY_MS}")
            is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1_000)}")
        if is_busy:
            self._empty_at = time.monotonic() + _EMPTY_AGAIN_S

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _minded(self) -> Iterator[None]:
        if self._is_lent:
            raise sqlite3.OperationalError(f"{self.path} is in use by this thread")
        self._is_lent = True
        try:
            yield
        except sqlite3.Error as error:
            self.close()
            self._heal(error)
            raise
        finally:
            self._is_lent = False

    def _begun(self, begin: str) -> sqlite3.Connection:
        """Return the connection in a transaction; where the file is found broken by now, the new one's."""
        try:
            connection = self._opened()
            connection.execute(begin)
        except sqlite3.DatabaseError as error:
            self.close()
            if not self._heal(error):
                raise
            connection = self._opened()
            connection.execute(begin)
        return connection

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self.path is not None:
            if self._inode != _inode(self.path):
                self.close()
            elif not _size(self.path):
                self.close()  # writes what its journal has of the file, where no other process has it open
                self._heal(sqlite3.DatabaseError("it was truncated"))
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        """Open the file that stands at the path, and not one that is put aside at that moment."""
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                with _no_put_aside(self.path, deadline):
                    if self.path is not None:
                        _make(self.path)
                    self._inode = _inode(self.path)
                    connection = self._prepared()
            except sqlite3.Error as error:
                is_new = self._heal(error) or self._inode != _inode(self.path)
                if not is_new and _is_broken(error) and not self._is_ours():
                    raise ForeignFileError(
                        f"{error}, and no mark of ragtrace is in it: use a file of its own"
                    ) from error
                if not is_new or time.monotonic() >= deadline:
                    raise
            else:
                if self._inode == _inode(self.path):
                    _all.ours.add((self.path, self._inode))
                    return connection
                connection.close()

    def _prepared(self) -> sqlite3.Connection:
        if self.path in _all.spoiled:
            raise sqlite3.OperationalError(f"{self.path} was being written when this process was forked")
        connection = _connected(self.path, self._busy_s)
        try:
            _refuse_foreign(connection)
            _into_wal(connection, time.monotonic() + self._busy_s)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            with _ended(connection):
                self._prepare(connection)
                if not _application_id(connection):
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _heal(self, error: sqlite3.Error) -> bool:
        """Put a broken file aside, and return whether one can be begun in its place."""
        if self._aside is None or self.path is None or not _is_broken(error):
            return False
        if not self._is_ours():
            return False
        try:
            aside = _put_aside(self.path, self._inode)
        except OSError as problem:
            record_internal_error("ragtrace.sqlite_file.put_aside", problem)
            return False
        if aside is not None:  # no other process was faster
            self._aside(aside, error)
        return True

    def _is_ours(self) -> bool:
        """Whether a broken file is ours: it bears the mark, or this process had it open before it broke."""
        return (self.path, self._inode) in _all.ours or (self.path is not None and _bears_mark(self.path))

    # -- at a fork --

    def hold(self, deadline: float) -> bool:
        """Close and hold the file while the process forks; False when a transaction takes too long."""
        if not self._lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            return False
        if self.path is not None:
            self.close()
        return True

    def let_go(self) -> None:
        """Lend it again, in the parent."""
        self._lock.release()

    def begin_in_child(self, *, is_held: bool) -> None:
        """Begin anew; a file that was not held is lost to the child."""
        self._lock, self._is_lent = threading.RLock(), False
        if self._connection is not None:
            _all.left.append(self._connection)  # closing it would empty the journal under the parent
            self._connection = None
        if self.path is not None and not is_held:
            _all.spoiled.add(self.path)


class _All:
    """Every file of the process, so that none is open while it forks."""

    def __init__(self) -> None:
        self.lock, self.making = threading.Lock(), threading.Lock()
        self.files: weakref.WeakSet[SharedFile] = weakref.WeakSet()
        self.spoiled: set[Path | None] = set()
        self.ours: set[tuple[Path | None, int]] = set()  # by path and inode, since they were opened whole
        self.left: list[sqlite3.Connection] = []
        self._resting: list[SharedFile] = []

    def before_fork(self) -> None:
        self.lock.acquire()
        deadline = time.monotonic() + _FORK_WAIT_S
        self._resting = [file for file in list(self.files) if file.hold(deadline)]

    def after_in_parent(self) -> None:
        for file in self._resting:
            file.let_go()
        self._resting = []
        self.lock.release()

    def after_in_child(self) -> None:
        held, self._resting = self._resting, []
        self.lock, self.making = threading.Lock(), threading.Lock()
        for file in list(self.files):
            file.begin_in_child(is_held=file in held)


_all = _All()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_all.before_fork, after_in_parent=_all.after_in_parent, after_in_child=_all.after_in_child
    )


def will_pass(error: BaseException | None) -> bool:
    """Return whether an error says that the file is locked or the disk full, which ends by itself.

    Example:
        >>> will_pass(sqlite3.OperationalError("no such table"))
        False
    """
    code = getattr(error, "sqlite_errorcode", None)  # of sqlite3's own errors alone
    return code is not None and code & 0xFF in _PASSES


def unwritable(error: BaseException) -> str | None:
    """Return in a few words why a file cannot be written for now; None where no waiting mends the error.

    Example:
        >>> unwritable(OSError(28, "No space left on device")), unwritable(sqlite3.IntegrityError("NOT NULL"))
        ('No space left on device', None)
    """
    cause = error if error.__cause__ is None else error.__cause__  # a QueueError or StoreError says of what
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return _UNWRITABLE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that hold something."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


@contextmanager
def _ended(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit a transaction, or roll it back."""
    try:
        yield connection
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
    """Make an empty file, its owner's alone, where there is none.

    One that is there is not opened, and one that is being made is not used by another thread: closing it would drop
    the locks of this process's other connections.
    """
    with _all.making, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _inode(path: Path | None) -> int:
    try:
        return path.stat().st_ino if path is not None else 0
    except FileNotFoundError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _into_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Set the journal's mode, again while others do the same.

    Of two that set a new file's mode at once SQLite fails one without waiting: it would be a deadlock. With four
    processes that was one opening in twenty.
    """
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
    mark, tables = _application_id(connection), _tables(connection)
    if mark != APPLICATION_ID and (mark or (tables and not _has_our_table(connection))):
        shown = ", ".join(sorted(tables)[:3]) or "none"
        raise ForeignFileError(f"it has other tables ({shown}): use a file of its own")


def _bears_mark(path: Path) -> bool:
    """Whether as much of a broken file can be read as tells that it is ours."""
    with suppress(sqlite3.Error), closing(_connected(path, 1.0)) as connection:
        mark = _application_id(connection)
        return mark == APPLICATION_ID or (mark == 0 and _has_our_table(connection))
    return False


def _application_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _has_our_table(connection: sqlite3.Connection) -> bool:
    return any(_columns(connection, table)[: len(first)] == first for table, first in _MARKS.items())


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _is_broken(error: BaseException) -> bool:
    """Whether the file itself is broken; for a call, a lock or a disk that failed there are subclasses."""
    return type(error) is sqlite3.DatabaseError


def _put_aside(path: Path, inode: int) -> Path | None:
    """Rename the file that was found broken, with its journal; None when another process was faster.

    Of several processes that find it broken at once one puts it aside, and none the new one in its place: nor one
    that only looked broken while another process began it.
    """
    with _folder_locked(path, is_alone=True, deadline=time.monotonic() + _ASIDE_WAIT_S):
        if _inode(path) != inode or (_size(path) and _is_whole(path)):
            return None
        aside = path.with_name(f"{path.name}.corrupt-{time.time_ns()}-{os.getpid()}")
        # The journal first: SQLite throws one away that it finds beside an empty file, not beside a filled one.
        for suffix in _JOURNAL:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        path.rename(aside)
        return aside


def _is_whole(path: Path) -> bool:
    with closing(_connected(path, 1.0)) as connection:
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except sqlite3.Error as error:
            return not _is_broken(error)


@contextmanager
def _no_put_aside(path: Path | None, deadline: float) -> Iterator[None]:
    """Let nobody put the file aside while it is being opened.

    SQLite finds a journal by its name. An opening that has the broken file, and looks for the journal when that was
    renamed, finds the new file's: it then wrote the new one's pages over the broken file, or emptied it.
    """
    if path is None:
        yield
        return
    with _folder_locked(path, is_alone=False, deadline=deadline):
        yield


@contextmanager
def _folder_locked(path: Path, *, is_alone: bool, deadline: float) -> Iterator[None]:
    """Hold the file's folder, shared or alone; a lock on the file itself would end SQLite's.

    Raises:
        OSError: others hold it past the deadline; alone also: it cannot be held at all. An opening goes on then:
            nobody puts a file aside there.
    """
    if sys.platform == "win32":  # there an open file cannot be renamed at all
        yield
        return
    with ExitStack() as held:
        try:
            folder = os.open(path.parent, os.O_RDONLY)
            held.callback(os.close, folder)
            _lock(folder, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH, deadline)
            held.callback(fcntl.flock, folder, fcntl.LOCK_UN)  # a child forked meanwhile has the folder open too
        except BlockingIOError as error:
            other = "opens it" if is_alone else "puts a broken file aside"
            raise BlockingIOError(error.errno, f"another process {other} and takes too long", str(path)) from None
        except OSError:
            if is_alone:
                raise
        yield


def _lock(folder: int, kind: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(folder, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return
