"""Processes that open a new file at the same moment, as the workers of a server do, all get it."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time

import pytest

from ragtrace.judges.grade_file import GradeFile
from ragtrace.queues.spool import Spool
from ragtrace.scoring.limits.books import Books, Caps
from ragtrace.sqlite_file import opened
from ragtrace.stores.sqlite import SqliteStore

PROCESSES, ROUNDS = 4, 40  # before the retry one opening in twenty failed


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


def child(open_, path, at, said):
    while time.monotonic() < at:
        pass
    try:
        open_(path)
    except BaseException as error:
        said.put(repr(error))
    else:
        said.put(None)


@pytest.mark.parametrize("open_", [spool, store, grades, books])
def test_a_new_file_is_opened_by_all(open_, tmp_path):
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    for turn in range(ROUNDS):
        at = time.monotonic() + 0.03
        given = (open_, tmp_path / f"{turn}.sqlite", at, said)
        children = [context.Process(target=child, args=given) for _ in range(PROCESSES)]
        for process in children:
            process.start()
        assert [said.get() for _ in children] == [None] * PROCESSES
        for process in children:
            process.join()


def test_a_file_that_stays_locked_is_an_error_after_the_time_given(tmp_path):
    path = tmp_path / "file.sqlite"
    holder = opened(path, busy_s=1)
    holder.execute("PRAGMA journal_mode = DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        opened(path, busy_s=0.1)
    holder.execute("COMMIT")
    opened(path, busy_s=0.1).close()
    holder.close()
