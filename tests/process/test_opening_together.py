"""Processes that open one file at the same moment, as the workers of a server do: a new one, or a broken one."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time

import pytest

from ragtrace.judges import GradeFile
from ragtrace.queues import Spool, SqliteQueue
from ragtrace.scoring import Budget, Caps
from ragtrace.sqlite_file import SharedFile, will_pass
from tests import make
from tests.broken_file import JUNK, break_file

pytestmark = pytest.mark.slow

PROCESSES, ROUNDS = 4, 10  # without asking again one opening of a new file in twenty fails


def spool(path):
    opening = Spool(path)
    opening.counters()
    opening.close()


def store(path):
    opening = make.store(path)
    opening.baselines()
    opening.close()


def grades(path):
    opening = GradeFile(path)
    opening.facts()
    opening.close()


def books(path):
    opening = Budget(path, host="judge", caps=Caps())
    opening.left()
    opening.close()


def queue(path):
    opening = SqliteQueue(path)
    opening.counters(is_fresh=True)
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
