"""How full a queue is: in units or in bytes, buffer and spool each by its own bound; and what processes wanted."""

from __future__ import annotations

import sqlite3

import pytest

from ragtrace.queues import MemoryQueue
from ragtrace.queues.producer import ProducerQueue
from ragtrace.queues.sqlite import UNIT_BYTES, SqliteQueue
from tests.unit.queues.test_queues import unit


@pytest.fixture
def made(tmp_path):
    queues = []

    def make(**bounds):
        queues.append(SqliteQueue(tmp_path / "spool.sqlite", **bounds))
        return queues[-1]

    yield make
    for queue in queues:
        queue.close()


def filled(queue, n, **facts):
    for number in range(n):
        queue.put(unit(str(number), **facts))
        if number % 20 == 19:
            assert queue.flush(30)
    assert queue.flush(30)
    queue.tend([])


def test_a_spool_takes_what_its_bytes_take_and_not_the_buffer_s_units(made, tmp_path):
    queue = made(capacity=50)
    filled(queue, 80)
    assert queue.size == 80
    waiting, most = queue.fullest
    assert waiting == 80
    assert most > 100_000  # 512 MiB of some hundred bytes each
    assert queue.capacity == 50 + most
    handing = ProducerQueue(tmp_path / "spool.sqlite", capacity=50)
    handing.tend([])
    assert (handing.lease(9), handing.capacity, handing.fullest) == ([], queue.capacity, queue.fullest)
    assert handing.close()


def test_an_empty_spool_takes_units_of_the_largest_size(made):
    queue = made(capacity=50, spool_bytes=10 * UNIT_BYTES)
    assert (queue.capacity, queue.size) == (60, 0)
    assert queue.fullest[0] == 0


def test_a_spool_at_its_bound_is_full(made):
    queue = made(spool_bytes=10_000)
    filled(queue, 100)
    waiting, most = queue.fullest
    assert waiting == most < 100


def test_a_buffer_that_cannot_be_written_is_full_beside_an_empty_spool(made, tmp_path):
    queue = made(capacity=5)
    with sqlite3.connect(tmp_path / "spool.sqlite") as other:  # nobody can write while this holds the file
        other.execute("BEGIN IMMEDIATE")
        for number in range(80):
            queue.put(unit(str(number)))
        assert queue.fullest == (5, 5)
    assert queue.flush(30)


def test_memory_is_full_by_units_or_by_bytes():
    queue = MemoryQueue(4)
    assert queue.fullest == (0, 4)
    for number in range(9):
        queue.put(unit(str(number)))
    assert queue.fullest == (4, 4)
    queue = MemoryQueue(2_048, 100_000)
    for number in range(9):
        queue.put(unit(str(number), "x" * 30_000))
    assert queue.fullest == (3, 3)
    queue.release(queue.lease(2), 60.0)
    assert queue.fullest == (3, 3)


def test_processes_tell_one_another_what_they_wanted_to_put_in(made):
    one, other = made(), made()
    filled(one, 10)
    for number in range(5):
        other.put(unit(f"thinned-{number}", factor=0.25))
    assert other.flush(30)
    for queue in (one, other):
        queue.tend([])
        assert queue.accounts().wanted == pytest.approx(10 + 5 / 0.25)
        assert queue.accounts().offered == 15
