"""The scorer's thread: everything offered ends exactly once, whatever the handler does."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.capture import internal_errors
from ragtrace.model import RagRecord
from ragtrace.queues import Job, MemoryQueue, SqliteQueue, Unit
from ragtrace.scoring import Ledger, Outcome, Worker
from ragtrace.scoring.worker import FAILED_S
from ragtrace.stores import SqliteStore, sqlite
from tests import make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ragtrace.model import End


def wait_for(is_so: Callable[[], bool], for_s: float = 20.0) -> None:
    deadline = time.monotonic() + for_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def offer(ledger: Ledger, queue: MemoryQueue, name: str) -> None:
    ledger.offer()
    queue.put(Unit(record=RagRecord(id=name)))


def test_units_are_handled_and_the_accounts_add_up() -> None:
    ledger, seen = Ledger(), []
    queue = MemoryQueue(ended=ledger.end)

    async def handle(job: Job) -> Outcome:
        await asyncio.sleep(0)
        if job.unit.record.id == "bad":
            raise ValueError("a defect")
        seen.append((job.unit.record.id, threading.current_thread().name))
        return Outcome()

    worker = Worker(queue, handle)
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
    ledger = Ledger()
    queue = MemoryQueue(ended=ledger.end)
    now, most = 0, 0
    is_full = asyncio.Event()

    async def handle(job: Job) -> Outcome:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            is_full.set()
        await is_full.wait()  # a busy machine may offer slower than one unit takes
        await asyncio.sleep(0.005)
        now -= 1
        return Outcome()

    worker = Worker(queue, handle, concurrency=3)
    for i in range(20):
        offer(ledger, queue, str(i))
    assert ledger.wait_settled(10)
    worker.stop(10)
    assert most == 3


def test_stop_drains_what_is_queued() -> None:
    ledger = Ledger()
    queue = MemoryQueue(ended=ledger.end)

    async def handle(job: Job) -> Outcome:
        await asyncio.sleep(0.001)
        return Outcome()

    worker = Worker(queue, handle)
    for i in range(50):
        offer(ledger, queue, str(i))
    assert worker.stop(20)
    assert ledger.snapshot()["scored"] == 50


def test_stop_keeps_its_deadline_when_a_judge_hangs() -> None:
    ledger = Ledger()
    queue = MemoryQueue(ended=ledger.end)
    begun = threading.Event()

    async def handle(job: Job) -> Outcome:
        begun.set()
        await asyncio.sleep(3_600)
        return Outcome()

    worker = Worker(queue, handle)
    offer(ledger, queue, "a")
    assert begun.wait(10)
    start = time.monotonic()
    assert not worker.stop(0.2)
    assert time.monotonic() - start < 30  # a judge that hangs would take an hour
    assert ledger.wait_settled(10)
    assert ledger.snapshot()["dropped:shutdown"] == 1


def test_a_settled_wait_gives_up_in_time() -> None:
    ledger = Ledger()
    ledger.offer()
    assert not ledger.wait_settled(0.01)
    assert ledger.pending == 1


def test_a_job_that_had_not_begun_when_time_was_over_has_its_end() -> None:
    """The time of a stop may be over between a lease and the first step of what handles it."""

    class LastMoment(MemoryQueue):
        def lease(self, limit: int) -> list[Job]:
            jobs = super().lease(limit)
            if jobs:
                worker._is_stopping, worker._is_draining = True, False
            return jobs

    async def handle(job: Job) -> Outcome:
        return Outcome()

    ledger = Ledger()
    queue = LastMoment(ended=ledger.end)
    worker = Worker(queue, handle)
    for number in range(3):
        offer(ledger, queue, str(number))
    assert worker._thread is not None
    worker._thread.join(10)
    assert worker.is_idle
    counts = ledger.snapshot()
    assert counts["dropped:shutdown"] > 0
    assert counts["pending"] == queue.size


@pytest.mark.parametrize("is_shared", [False, True])
def test_scores_are_written_before_their_job_has_its_end(tmp_path: Path, *, is_shared: bool) -> None:
    steps: list[str] = []

    def ended(state: End, reason: str) -> None:
        steps.append(state)

    queue = SqliteQueue(tmp_path / "spool", ended=ended) if is_shared else MemoryQueue(ended=ended)

    async def handle(job: Job) -> Outcome:
        return Outcome(
            write=lambda: steps.append("written"),
            also=lambda connection: steps.append("scored"),
            then=lambda: steps.append("published"),
        )

    worker = Worker(queue, handle)
    queue.put(Unit(record=RagRecord(id="a")))
    wait_for(lambda: len(steps) >= 3 + is_shared)
    assert worker.stop(10)
    queue.close(5.0)
    if is_shared:
        assert steps == ["spooled", "written", "scored", "published"]
    else:  # whoever waits for the end finds its scores published
        assert steps == ["written", "published", "scored"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.02)
    store = make.store(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def other(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A process that holds the store."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def scoring_into(store: SqliteStore, handled: list[str], published: list[str]) -> Callable[[Job], Any]:
    async def handle(job: Job) -> Outcome:
        name = job.unit.record.id
        handled.append(name)
        record = make.record(trace_id=name)
        scores = [make.score(record, at=1e9)]
        return Outcome(write=lambda: store.emit(record, scores), then=lambda: published.append(name))

    return handle


def test_scored_units_wait_for_a_locked_store_and_no_other_unit_is_scored(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    ledger, handled, published = Ledger(), list[str](), list[str]()
    queue = MemoryQueue(ended=ledger.end)
    worker = Worker(queue, scoring_into(store, handled, published), concurrency=3)
    for i in range(40):
        offer(ledger, queue, str(i))
    wait_for(lambda: worker.unwritten[0] > 0 and not worker._held)
    waiting = worker.unwritten
    time.sleep(1.5)  # a sweep tries again
    assert waiting[0] <= 3  # those that were leased at once
    assert worker.unwritten == waiting == (len(handled), "locked")
    assert (published, ledger.pending) == ([], 40)
    other.execute("ROLLBACK")
    assert ledger.wait_settled(20)
    assert worker.stop(10)
    assert sorted(handled) == sorted(published) == sorted(row["trace_id"] for row in store.rows())
    assert ledger.snapshot()["scored"] == len(handled) == 40


def test_a_stop_tries_once_more_and_then_counts_scored_units_as_dropped(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    ledger, handled, published = Ledger(), list[str](), list[str]()
    queue = MemoryQueue(ended=ledger.end)
    worker = Worker(queue, scoring_into(store, handled, published))
    for i in range(3):
        offer(ledger, queue, str(i))
    wait_for(lambda: worker.unwritten[0] > 0 and not worker._held)
    assert worker.stop(10)
    assert ledger.snapshot()["dropped:shutdown"] == len(handled) == 3 - queue.size
    assert (published, worker.unwritten[0]) == ([], 0)


def test_a_job_whose_end_can_never_be_written_is_tried_again_and_counted(tmp_path: Path) -> None:
    queue = SqliteQueue(tmp_path / "spool")
    before = internal_errors().get("ragtrace.scoring.worker.settle", 0)

    def constraint(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO jobs (key) VALUES (NULL)")

    async def handle(job: Job) -> Outcome:
        return Outcome(also=constraint)

    worker = Worker(queue, handle)
    queue.put(Unit(record=RagRecord(id="a")))
    wait_for(lambda: internal_errors().get("ragtrace.scoring.worker.settle", 0) > before)
    assert worker.stop(10)
    assert 0.0 < (queue.next_due_s() or 0.0) <= FAILED_S
    assert worker.unwritten[0] == 0
    queue.close(5.0)


@pytest.mark.parametrize("is_shared", [False, True])
def test_nothing_blocks_while_its_loop_runs(tmp_path: Path, *, is_shared: bool) -> None:
    """`langgraph dev` makes a blocking call on a thread with a running loop an error; this is blockbuster's whole list."""
    blockbuster = pytest.importorskip("blockbuster")
    ledger, ticked, looked = Ledger(), threading.Event(), threading.Event()
    queue = SqliteQueue(tmp_path / "spool", ended=ledger.end) if is_shared else MemoryQueue(ended=ledger.end)
    store, before = make.store(tmp_path / "store"), internal_errors()

    async def handle(job: Job) -> Outcome:
        await asyncio.sleep(0)
        record = make.record(trace_id=job.unit.record.id)
        write, published = store.writer([make.score(record, at=1e9)], record), lambda: list(store.rows())
        if is_shared:
            return Outcome(also=write, then=published)
        return Outcome(write=lambda: store.emit(record, [make.score(record, at=1e9)]), then=published)

    def looks() -> None:
        store.leftovers()
        looked.set()

    def tick() -> None:
        asyncio.get_running_loop().call_soon(ticked.set)

    worker = Worker(queue, handle, sweep=store.apply_retention, tick=tick)
    with blockbuster.blockbuster_ctx():
        for name in "abcdefghijkl":
            queue.put(Unit(record=RagRecord(id=name)))
        worker.call_soon(looks)
        assert ticked.wait(10)
        assert looked.wait(10)
        assert worker.stop(10)
    scored = queue.counters(is_fresh=True).ends if isinstance(queue, SqliteQueue) else ledger.read()[0]
    assert scored == {("scored", ""): 12}
    assert internal_errors() == before
    queue.close(5.0)
    store.close()
