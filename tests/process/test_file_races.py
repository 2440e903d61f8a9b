"""Threads of one process that make, open and lend a shared file beside each other, and a fork beside an opening."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from ragtrace.sqlite_file import SharedFile

pytestmark = pytest.mark.slow

LOOK = (
    "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM labels').fetchone()[0])"
)


def shared(path, **given):
    return SharedFile(
        path, prepare=lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS labels (n)"), **given
    )


def add(file):
    with file.transaction() as connection:
        connection.execute("INSERT INTO labels VALUES (1)")


def seen(path):
    """Return what a process of its own finds in the file; it is the last to close it, as far as it can tell."""
    return int(subprocess.run([sys.executable, "-c", LOOK, path], check=True, capture_output=True).stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="there a lock is the file handle's, not the process's")
def test_a_file_that_another_thread_makes_keeps_its_locks(tmp_path, monkeypatch):
    path = tmp_path / "file"
    first, second = shared(path), shared(path)
    is_made, is_used, close = threading.Event(), threading.Event(), os.close

    def slow(descriptor):
        if threading.current_thread() is maker:
            is_made.set()
            is_used.wait(0.5)
        close(descriptor)

    maker = threading.Thread(target=add, args=(first,))
    monkeypatch.setattr("ragtrace.sqlite_file.os.close", slow)
    maker.start()
    assert is_made.wait(30)
    add(second)
    is_used.set()
    maker.join(30)
    assert seen(path) == 2
    add(second)
    assert seen(path) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_file_that_was_being_opened_at_a_fork_is_lost_to_the_child(tmp_path, monkeypatch):
    monkeypatch.setattr("ragtrace.sqlite_file._FORK_WAIT_S", 0.1)
    path = tmp_path / "file"
    is_opening, may_go_on = threading.Event(), threading.Event()

    def prepare(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS labels (n)")
        is_opening.set()
        assert may_go_on.wait(30)

    file = SharedFile(path, prepare=prepare)
    opener = threading.Thread(target=add, args=(file,))
    opener.start()
    assert is_opening.wait(30)
    child = os.fork()
    if child == 0:
        try:
            may_go_on.set()
            add(file)
        except sqlite3.OperationalError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    may_go_on.set()
    opener.join(30)
    assert seen(path) == 1
