"""The memory queue: in order, bounded, never blocking."""

from __future__ import annotations

import threading

from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.queues import MemoryQueue, Unit


def unit(name: str, text: str = "") -> Unit:
    pool = Pool(stage="used", passages=(Passage(id="p", text=text, rank=1),))
    return Unit(record=RagRecord(id=name, pools=(pool,)))


def test_first_in_first_out() -> None:
    queue = MemoryQueue()
    for name in "abc":
        assert queue.put(unit(name)) == []
    assert [job.unit.record.id for job in queue.lease(5)] == ["a", "b", "c"]
    assert queue.lease(5) == []
    assert (queue.size, queue.oldest_s) == (0, 0.0)


def test_the_bound_in_bytes_evicts_the_oldest() -> None:
    queue = MemoryQueue(capacity_bytes=10_000)
    assert queue.put(unit("a", "x" * 5_000)) == []
    assert [u.record.id for u in queue.put(unit("b", "x" * 5_000))] == ["a"]
    assert [u.record.id for u in queue.put(unit("huge", "x" * 50_000))] == ["huge"]
    assert queue.size == 1


def test_nothing_is_lost_between_threads() -> None:
    queue = MemoryQueue(capacity=100_000)
    taken: list[str] = []
    done = threading.Event()

    def give(n: int) -> None:
        for i in range(1_000):
            queue.put(unit(f"{n}-{i}"))

    def take() -> None:
        while not (done.is_set() and queue.size == 0):
            taken.extend(job.unit.record.id for job in queue.lease(7))

    givers = [threading.Thread(target=give, args=(n,)) for n in range(4)]
    taker = threading.Thread(target=take)
    taker.start()
    [g.start() for g in givers]
    [g.join() for g in givers]
    done.set()
    taker.join()
    assert len(taken) == len(set(taken)) == 4_000
