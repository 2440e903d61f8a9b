"""How full a queue is: in units or in bytes, buffer and spool each by its own bound; and what processes wanted."""

from __future__ import annotations

import sqlite3

import pytest

from ragtrace.queues import UNIT_BYTES, MemoryQueue, SqliteQueue
from ragtrace.testing.queue import unit_of as unit


@pytest.fixture
def made(tmp_path):
    queues = []

    def make(**bounds):
        queues.append(SqliteQueue(tmp_path / "spool.sqlite", **bounds))
        return queues[-1]

    yield make
    for queue in queues:
        queue.close()


def capacity(queue):
    return sum(part.capacity for part in queue.stats())


def fullest(queue):
    return max((part.fill for part in queue.stats()), key=lambda fill: fill[0] / fill[1])


def filled(queue, n, **facts):
    for number in range(n):
        queue.put(unit(str(number), **facts))
        if number % 20 == 19:
            assert queue.flush(30)
    assert queue.flush(30)
    queue.requeue_expired()


def test_a_spool_takes_what_its_bytes_take_and_not_the_buffer_s_units(made, tmp_path):
    queue = made(capacity=50)
    filled(queue, 80)
    assert queue.size == 80
    waiting, most = fullest(queue)
    assert waiting == 80
    assert most > 100_000  # 512 MiB of some hundred bytes each
    assert capacity(queue) == 50 + most
    producer = SqliteQueue(tmp_path / "spool.sqlite", capacity=50, is_producer=True)
    producer.requeue_expired()
    assert (producer.lease(9), producer.next_due_s(), fullest(producer)) == ([], None, fullest(queue))
    assert producer.close()


def test_an_empty_spool_takes_units_of_the_largest_size(made):
    queue = made(capacity=50, spool_bytes=10 * UNIT_BYTES)
    assert (capacity(queue), queue.size) == (60, 0)
    assert fullest(queue)[0] == 0


def test_a_spool_at_its_bound_is_full(made):
    queue = made(spool_bytes=10_000)
    filled(queue, 100)
    waiting, most = fullest(queue)
    assert waiting == most < 100


def test_a_buffer_that_cannot_be_written_is_full_beside_an_empty_spool(made, tmp_path):
    queue = made(capacity=5)
    with sqlite3.connect(tmp_path / "spool.sqlite") as other:  # nobody can write while this holds the file
        other.execute("BEGIN IMMEDIATE")
        for number in range(80):
            queue.put(unit(str(number)))
        assert fullest(queue) == (5, 5)
    assert queue.flush(30)


def test_memory_is_full_by_units_or_by_bytes():
    queue = MemoryQueue(4)
    assert fullest(queue) == (0, 4)
    for number in range(9):
        queue.put(unit(str(number)))
    assert fullest(queue) == (4, 4)
    queue = MemoryQueue(2_048, 100_000)
    for number in range(9):
        queue.put(unit(str(number), "x" * 30_000))
    assert fullest(queue) == (3, 3)
    for job in queue.lease(2):
        queue.nack(job, 60.0)
    assert fullest(queue) == (3, 3)


def test_processes_tell_one_another_what_they_wanted_to_put_in(made):
    one, other = made(), made()
    filled(one, 10)
    for number in range(5):
        other.put(unit(f"thinned-{number}", factor=0.25))
    assert other.flush(30)
    for queue in (one, other):
        queue.requeue_expired()
        assert queue.counters().wanted == pytest.approx(10 + 5 / 0.25)
        assert queue.counters().offered == 15
