"""Threads that meet in a queue: nothing is told too early, counted twice or left over."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from ragtrace.queues import MemoryQueue, SqliteQueue
from ragtrace.queues import MemoryQueue as Buffer
from ragtrace.testing.queue import Ends
from ragtrace.testing.queue import names_of as names
from ragtrace.testing.queue import unit_of as unit


@pytest.fixture
def ends():
    return Ends()


def test_a_flush_waits_for_units_between_buffer_and_hand(tmp_path, monkeypatch):
    has_taken, may_go_on, lease, leased = threading.Event(), threading.Event(), Buffer.lease, []

    def slow(buffer, limit):
        jobs = lease(buffer, limit)
        if jobs:
            has_taken.set()
            assert may_go_on.wait(30)
        return jobs

    monkeypatch.setattr(Buffer, "lease", slow)
    queue = SqliteQueue(tmp_path / "s")
    queue.put(unit("a"))
    scorer = threading.Thread(target=lambda: leased.extend(queue.lease(9)))
    scorer.start()
    assert has_taken.wait(30)
    found = []
    flush = threading.Thread(target=lambda: found.append(queue.flush(30)))
    flush.start()
    flush.join(0.3)  # it would be through, if it did not wait
    assert found == []
    may_go_on.set()
    flush.join(30)
    scorer.join(30)
    assert (found, names(leased)) == ([True], ["a"])
    assert queue.close()


def test_who_cannot_be_woken_gets_nothing_twice(tmp_path, ends):
    queue = SqliteQueue(tmp_path / "s", ended=ends)

    def wake():
        raise RuntimeError("can't start new thread")

    queue.on_put(wake)
    for name in "ab":
        queue.put(unit(name))
        assert queue.flush(30)
    assert queue.close()
    accounts = queue.counters(is_fresh=True)
    assert (ends, accounts.offered, dict(accounts.ends)) == ({("spooled", ""): 2}, 2, {})


def test_a_close_accounts_for_what_waits_to_be_tried_again(tmp_path, ends):
    queue = SqliteQueue(tmp_path / "s", ended=ends)
    with sqlite3.connect(tmp_path / "s") as other:
        other.execute("CREATE TRIGGER broken BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'disk'); END")
    queue.put(unit("a"))
    queue.lease(1)
    assert queue.size == 1
    assert not queue.close(0.1)
    assert ends == {("dropped", "spool_unwritable"): 1}
    assert queue.size == 0


def test_a_job_given_back_after_the_end_is_accounted_for(ends):
    queue = MemoryQueue(ended=ends)
    for name in "ab":
        queue.put(unit(name))
    first, second = queue.lease(2)
    queue.clear()
    assert queue.nack(first, 1.0, "judge_timeout")
    queue.nack(second, 1.0, is_attempt=False)
    assert (queue.size, ends) == (0, {("dropped", "shutdown"): 2})


def test_nothing_is_left_between_givers_and_a_close(tmp_path):
    for number in range(10):
        ends, taken = Ends(), []
        queue = SqliteQueue(tmp_path / str(number), capacity=5, ended=ends)
        queue.put(unit("first"))
        is_begun = threading.Event()

        def give(queue=queue, taken=taken, is_begun=is_begun):
            for name in range(100):
                taken.append(len(queue.put(unit(str(name)))))
                is_begun.set()

        giver = threading.Thread(target=give)
        giver.start()
        assert is_begun.wait(30)
        queue.close(5.0)
        giver.join(30)
        assert ends["spooled", ""] + sum(taken) + ends["dropped", "shutdown"] == 101
        assert queue.counters(is_fresh=True).offered == ends["spooled", ""]
