"""A spool that is closed while its scorer is at work: leases go back, and no two threads share a connection."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from ragtrace.capture import internal_errors
from ragtrace.queues import Spool, SqliteQueue
from ragtrace.testing.queue import unit_of as unit

SITE = "ragtrace.queues.sqlite.lease"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spool.sqlite"


@pytest.fixture
def queue(path):
    made = SqliteQueue(path)
    for number in range(20):
        made.put(unit(str(number)))
    assert made.flush(30)
    yield made
    made.close()


def leased(path):
    spool = Spool(path)
    try:
        return spool.counters().leased
    finally:
        spool.close()


def test_a_close_waits_for_the_statement_under_way(queue, path):
    job, other = queue.lease(2)
    is_within, may_end, ended = threading.Event(), threading.Event(), []

    def also(connection):
        is_within.set()
        assert may_end.wait(30)
        connection.execute("SELECT 1")

    scorer = threading.Thread(target=lambda: ended.append(queue.ack(job, "scored", also=also)))
    scorer.start()
    assert is_within.wait(30)
    closer = threading.Thread(target=lambda: ended.append(queue.close(30)))
    closer.start()
    closer.join(0.3)  # it would be through, if it did not wait
    may_end.set()
    scorer.join(30)
    closer.join(30)
    assert ended == [True, True]
    assert leased(path) == 0
    assert not queue.ack(other, "scored")


def test_a_close_does_not_wait_for_ever(queue, path, caplog):
    (job,) = queue.lease(1)
    is_within, may_end = threading.Event(), threading.Event()

    def also(connection):
        is_within.set()
        assert may_end.wait(30)

    scorer = threading.Thread(target=lambda: queue.ack(job, "scored", also=also))
    scorer.start()
    assert is_within.wait(30)
    assert not queue.close(0.1)
    assert "come back in" in caplog.text
    may_end.set()
    scorer.join(30)
    assert leased(path) == 0  # the statement came to its end on a connection that is open


def test_leases_are_given_back_also_after_the_connection_failed(queue, path):
    jobs = queue.lease(3)
    with sqlite3.connect(path) as other:
        other.execute(
            "CREATE TRIGGER broken BEFORE UPDATE OF lease_until ON jobs BEGIN SELECT RAISE(ABORT, 'disk'); END"
        )
    queue.heartbeat(jobs)  # fails, and leaves the connection
    assert leased(path) == 3
    assert queue.close()
    assert leased(path) == 0


def test_closing_under_a_busy_scorer_harms_nobody(tmp_path):
    before = internal_errors().get(SITE, 0)
    for number in range(20):
        queue = SqliteQueue(tmp_path / str(number))
        for name in range(30):
            queue.put(unit(str(name)))
        assert queue.flush(30)
        is_begun, is_over = threading.Event(), threading.Event()

        def work(queue=queue, is_begun=is_begun, is_over=is_over):
            while not is_over.is_set():
                for job in queue.lease(8):
                    queue.nack(job, is_attempt=False)
                is_begun.set()

        scorer = threading.Thread(target=work)
        scorer.start()
        assert is_begun.wait(30)
        assert queue.close(30)
        is_over.set()
        scorer.join(30)
        assert leased(tmp_path / str(number)) == 0
    assert internal_errors().get(SITE, 0) == before
