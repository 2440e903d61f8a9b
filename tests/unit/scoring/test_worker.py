"""The scorer's thread: everything offered ends exactly once, whatever the handler does."""

from __future__ import annotations

import asyncio
import threading
import time

from ragtrace.model import RagRecord
from ragtrace.queues import MemoryQueue, Unit
from ragtrace.scoring import Ledger, Worker


def offer(ledger: Ledger, queue: MemoryQueue, name: str) -> None:
    ledger.offer()
    queue.put(Unit(record=RagRecord(id=name)))


def test_units_are_handled_and_the_accounts_add_up() -> None:
    queue, ledger, seen = MemoryQueue(), Ledger(), []

    async def handle(unit: Unit) -> None:
        await asyncio.sleep(0)
        if unit.record.id == "bad":
            raise ValueError("a defect")
        seen.append((unit.record.id, threading.current_thread().name))

    worker = Worker(queue, handle, ledger)
    for name in ["a", "bad", "b"]:
        offer(ledger, queue, name)
    assert ledger.wait_settled(10)
    assert worker.stop(10)
    assert sorted(name for name, _ in seen) == ["a", "b"]
    assert {thread for _, thread in seen} == {"ragtrace-scorer"}
    counts = ledger.snapshot()
    assert counts["offered"] == 3 == counts["scored"] + counts["failed"]
    assert counts["failed:ValueError"] == 1


def test_at_most_so_many_at_once() -> None:
    queue, ledger = MemoryQueue(), Ledger()
    now, most = 0, 0

    async def handle(unit: Unit) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1

    worker = Worker(queue, handle, ledger, concurrency=3)
    for i in range(20):
        offer(ledger, queue, str(i))
    assert ledger.wait_settled(10)
    worker.stop(10)
    assert most == 3


def test_stop_drains_what_is_queued() -> None:
    queue, ledger = MemoryQueue(), Ledger()

    async def handle(unit: Unit) -> None:
        await asyncio.sleep(0.001)

    worker = Worker(queue, handle, ledger)
    for i in range(50):
        offer(ledger, queue, str(i))
    assert worker.stop(20)
    assert ledger.snapshot()["scored"] == 50


def test_stop_keeps_its_deadline_when_a_judge_hangs() -> None:
    queue, ledger = MemoryQueue(), Ledger()
    begun = threading.Event()

    async def handle(unit: Unit) -> None:
        begun.set()
        await asyncio.sleep(3_600)

    worker = Worker(queue, handle, ledger)
    offer(ledger, queue, "a")
    assert begun.wait(10)
    start = time.monotonic()
    assert not worker.stop(0.2)
    assert time.monotonic() - start < 5
    assert ledger.wait_settled(10)
    assert ledger.snapshot()["dropped:shutdown"] == 1


def test_a_settled_wait_gives_up_in_time() -> None:
    ledger = Ledger()
    ledger.offer()
    assert not ledger.wait_settled(0.01)
    assert ledger.pending == 1
