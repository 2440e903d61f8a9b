"""Processes that open one file at the same moment, as the workers of a server do: a new one, or a broken one."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from contextlib import contextmanager

import pytest

from ragtrace.capture import internal_errors
from ragtrace.judges.cache.grade_file import GradeFile
from ragtrace.queues.spool import Spool
from ragtrace.queues.sqlite import SqliteQueue
from ragtrace.scoring.limits.books import Books, Caps
from ragtrace.sqlite_file import SharedFile, will_pass
from ragtrace.stores.sqlite import SqliteStore
from tests.broken_file import JUNK, break_file

PROCESSES, ROUNDS = 4, 25  # without asking again one opening of a new file in twenty fails


def spool(path):
    opening = Spool(path)
    opening.accounts()
    opening.close()


def store(path):
    opening = SqliteStore(path)
    opening.baselines()
    opening.close()


def grades(path):
    opening = GradeFile(path)
    opening.facts()
    opening.close()


def books(path):
    opening = Books(path, host="judge", caps=Caps())
    opening.left()
    opening.close()


def queue(path):
    opening = SqliteQueue(path)
    opening.snapshot()
    opening.close()


def child(open_, path, at, said):
    while time.monotonic() < at:
        pass
    try:
        open_(path)
    except BaseException as error:
        said.put(repr(error))
    else:
        said.put(None)


def opened_by_all(open_, path):
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    given = (open_, path, time.monotonic() + 0.03, said)
    children = [context.Process(target=child, args=given) for _ in range(PROCESSES)]
    for process in children:
        process.start()
    assert [said.get() for _ in children] == [None] * PROCESSES
    for process in children:
        process.join()


@pytest.mark.parametrize("open_", [spool, store, grades, books])
def test_a_new_file_is_opened_by_all(open_, tmp_path):
    for turn in range(ROUNDS):
        opened_by_all(open_, tmp_path / f"{turn}.sqlite")


@pytest.mark.parametrize("open_", [queue, store, books])
def test_a_broken_file_is_put_aside_once(open_, tmp_path):
    for turn in range(ROUNDS):
        path = tmp_path / f"{turn}.sqlite"
        break_file(path)
        opened_by_all(open_, path)
        (aside,) = tmp_path.glob(f"{turn}.sqlite.corrupt-*")
        assert JUNK in aside.read_bytes()


def of_labels(connection):
    connection.execute("CREATE TABLE IF NOT EXISTS labels (n)")


@contextmanager
def folder_locked(folder, kind):
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def test_a_file_is_not_put_aside_while_it_is_being_opened(tmp_path):
    """SQLite finds a journal by its name: an opening of the file put aside would take the new file's for its own."""
    path, asides = tmp_path / "file.sqlite", []
    break_file(path)

    def prepare(connection):
        of_labels(connection)
        with folder_locked(tmp_path, fcntl.LOCK_SH):  # as another process's opening does
            pass
        with pytest.raises(BlockingIOError), folder_locked(tmp_path, fcntl.LOCK_EX):
            pass

    def use():
        with SharedFile(path, prepare=prepare, aside=lambda where, _: asides.append(where)).connection():
            pass

    user = threading.Thread(target=use, daemon=True)
    with folder_locked(tmp_path, fcntl.LOCK_SH):
        user.start()
        user.join(0.3)  # it would have put the file aside, if it did not wait
        assert asides == []
    user.join(30.0)
    (aside,) = asides
    assert JUNK in aside.read_bytes()
    with SharedFile(path, prepare=of_labels).connection() as connection:
        assert connection.execute("SELECT count(*) FROM labels").fetchone() == (0,)


def test_an_opening_that_waits_too_long_for_a_put_aside_says_so(tmp_path):
    file = SharedFile(tmp_path / "file.sqlite", prepare=of_labels, busy_s=0.05)
    with (
        folder_locked(tmp_path, fcntl.LOCK_EX),
        pytest.raises(OSError, match=r"puts a broken file aside and takes too long: .*file\.sqlite"),
        file.connection(),
    ):
        pass
    with file.connection():
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_is_forked_during_an_opening_does_not_hold_the_folder(tmp_path):
    children = []

    def forks(connection):
        of_labels(connection)
        children.append(os.fork())
        if not children[-1]:
            time.sleep(30.0)
            os._exit(0)

    path = tmp_path / "file.sqlite"
    file = SharedFile(path, prepare=forks)
    with file.connection():
        pass
    file.close()
    try:
        break_file(path)
        asides = []
        with SharedFile(path, prepare=of_labels, aside=lambda *of: asides.append(of), busy_s=1.0).connection():
            assert len(asides) == 1
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_where_a_folder_cannot_be_locked_files_open_and_a_broken_one_stays(tmp_path, monkeypatch):
    def refuse(_descriptor, _kind):
        raise OSError(errno.ENOTSUP, "a file system without locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with SharedFile(tmp_path / "whole", prepare=of_labels).connection():
        pass
    path, site = tmp_path / "broken", "ragtrace.sqlite_file.put_aside"
    break_file(path)
    before = internal_errors().get(site, 0)
    file = SharedFile(path, prepare=of_labels, aside=lambda *_: None)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"), file.connection():
        pass
    assert internal_errors()[site] > before
    assert JUNK in path.read_bytes()


def test_a_file_that_stays_locked_is_an_error_after_the_time_given(tmp_path):
    path = tmp_path / "file.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    file = SharedFile(path, prepare=lambda connection: None, busy_s=0.1)
    with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught, file.connection():
        pass
    assert will_pass(caught.value)
    holder.execute("COMMIT")
    holder.close()
    with file.connection() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
