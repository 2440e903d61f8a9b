"""A process forks with its files open, and parent and child write on: nothing that either committed is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from ragtrace.judges import CachedGrade, GradeFile, grade_key, text_key, universe_key
from ragtrace.queues import Entry, Spool
from ragtrace.scoring import Budget, Caps
from ragtrace.sqlite_file import SharedFile
from ragtrace.stores import SqliteStore
from tests import make
from tests.process.observing import forked

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")]


def spooled(spool, n):
    assert spool.put([Entry(key=str(n), payload=b"{}")]) == 1


def stored(store, n):
    record = make.record(n=n, trace_id=str(n))
    store.emit(record, [make.score(record)])


def graded(grades, n):
    universe = universe_key("Where?", "", "r", "j")
    key = grade_key("Where?", str(n), "r", "j")
    asyncio.run(grades.put([CachedGrade(key=key, grade=4, universe=universe, passage=text_key(str(n)))]))


def spent(books, n):
    assert books.settle(books.reserve(usd=None, tokens=1), usd=None, tokens=1)


KINDS = [
    pytest.param(Spool, spooled, "SELECT n FROM ledger WHERE state = 'offered'", id="spool"),
    pytest.param(SqliteStore, stored, "SELECT count(*) FROM scores", id="store"),
    pytest.param(GradeFile, graded, "SELECT count(*) FROM labels", id="grades"),
    pytest.param(lambda p: Budget(p, host="j", caps=Caps()), spent, "SELECT sum(tokens) FROM days", id="books"),
]
LOOK = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])"


def seen(path, sql):
    """Return what a process of its own finds in the file."""
    return int(subprocess.run([sys.executable, "-c", LOOK, path, sql], check=True, capture_output=True).stdout)


@pytest.mark.parametrize(("open_", "write", "sql"), KINDS)
def test_a_child_writes_before_and_after_its_parent_has_closed_the_file(open_, write, sql, tmp_path):
    path = tmp_path / "file"
    file = open_(path)
    write(file, 0)
    told, tell = os.pipe()
    go, let = os.pipe()
    child = os.fork()
    if child == 0:
        write(file, 1)
        os.write(tell, b"1")
        os.read(go, 1)
        write(file, 2)
        file.close()
        os._exit(0)
    os.read(told, 1)
    file.close()
    os.write(let, b"1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    write(file, 3)
    file.close()
    assert seen(path, sql) == 4


def test_a_fork_waits_for_another_thread_s_transaction(tmp_path):
    path = tmp_path / "file"
    file = SharedFile(path, prepare=lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS labels (n)"))
    begun = threading.Event()

    def write():
        with file.transaction() as connection:
            connection.execute("INSERT INTO labels VALUES (1)")
            begun.set()
            time.sleep(0.2)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()

    def write_too():
        with file.transaction() as connection:
            connection.execute("INSERT INTO labels VALUES (2)")

    assert forked(write_too) == 0
    thread.join()
    assert seen(path, "SELECT sum(n) FROM labels") == 3


def test_a_child_of_a_parent_in_a_long_transaction_is_told_instead_of_losing_what_it_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("ragtrace.sqlite_file._FORK_WAIT_S", 0.1)
    path = tmp_path / "file"
    file = SharedFile(path, prepare=lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS labels (n)"))
    begun, done = threading.Event(), threading.Event()

    def write():
        with file.transaction() as connection:
            connection.execute("INSERT INTO labels VALUES (1)")
            begun.set()
            done.wait()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()

    def write_too():
        with pytest.raises(sqlite3.OperationalError, match="was forked"), file.transaction():
            pass

    assert forked(write_too) == 0
    done.set()
    thread.join()
    assert seen(path, "SELECT sum(n) FROM labels") == 1
