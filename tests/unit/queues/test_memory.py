"""The memory queue: in order, bounded, never blocking."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ragtrace.queues import MemoryQueue, Unit
from ragtrace.testing.queue import unit_of as unit


def test_the_bound_in_bytes_evicts_the_oldest() -> None:
    queue = MemoryQueue(capacity_bytes=10_000)
    assert queue.put(unit("a", "x" * 5_000)) == []
    assert [u.record.id for u in queue.put(unit("b", "x" * 5_000))] == ["a"]
    assert [u.record.id for u in queue.put(unit("huge", "x" * 50_000))] == ["huge"]
    assert queue.size == 1


def held_bytes(queue: MemoryQueue) -> int:
    return sum(unit.size_bytes for unit in queue.clear())


def ids(units: list[Unit]) -> list[str]:
    return [one.record.id for one in units]


@pytest.mark.parametrize("is_attempt", [False, True])
def test_what_is_given_back_counts_in_both_bounds(*, is_attempt: bool) -> None:
    """A judge that is away: every unit is leased, and comes back to be tried later."""
    ends: Counter[tuple[str, str]] = Counter()

    def ended(state: str, reason: str) -> None:
        ends[state, reason] += 1

    queue = MemoryQueue(capacity=10, capacity_bytes=20_000, ended=ended)
    evicted = 0
    for number in range(200):
        evicted += len(queue.put(unit(str(number), "x" * (1_500 if number > 100 else 10))))
        for job in queue.lease(8):
            queue.nack(job, 600.0, "judge_unavailable", is_attempt=is_attempt)
        assert queue.size <= 10
    assert evicted + ends["dropped", "queue_full"] + queue.size == 200
    assert set(ends) <= {("dropped", "queue_full")}
    assert 15_000 < held_bytes(queue) <= 20_000


def test_the_oldest_go_first_whether_or_not_they_were_leased() -> None:
    queue = MemoryQueue(capacity=4)
    for name in "abcd":
        queue.put(unit(name))
    first, second = queue.lease(2)
    queue.nack(second, 60.0, is_attempt=False)
    queue.nack(first, 600.0, is_attempt=False)
    assert ids(queue.put(unit("e"))) == ["a"]
    assert ids(queue.put(unit("f"))) == ["b"]
    assert ids(queue.put(unit("g"))) == ["c"]
    assert ids(queue.clear()) == ["d", "e", "f", "g"]


def test_a_job_given_back_into_a_full_queue_goes_itself_when_it_is_the_oldest() -> None:
    ends: list[tuple[str, str]] = []
    queue = MemoryQueue(capacity=2, ended=lambda state, reason: ends.append((state, reason)))
    queue.put(unit("a"))
    (job,) = queue.lease(1)
    for name in "bc":
        queue.put(unit(name))
    queue.nack(job, 60.0, is_attempt=False)
    assert ends == [("dropped", "queue_full")]
    assert ids(queue.clear()) == ["b", "c"]


def test_its_size_and_age_are_those_of_what_waits_after_any_sequence() -> None:
    chance, now = random.Random(3), 0.0
    queue = MemoryQueue(capacity=20, capacity_bytes=60_000, clock=lambda: now)
    offered = lost = 0
    jobs = []
    for number in range(3_000):
        now += 1.0
        match chance.randrange(4):
            case 0 | 1:
                offered += 1
                lost += len(queue.put(unit(str(number), "x" * chance.randrange(6_000))))
            case 2:
                jobs += queue.lease(chance.randrange(4))
            case _:
                for _ in jobs[:2]:
                    job = jobs.pop(chance.randrange(len(jobs)))
                    queue.nack(job, chance.uniform(1.0, 60.0), is_attempt=False)
        assert queue.size <= 20
        assert (queue.next_due_s() is None) == (queue.size == 0)
    left = queue.clear()
    assert (queue.size, queue.next_due_s(), queue.stats()[0].oldest_s) == (0, None, 0.0)
    assert left == sorted(left, key=lambda one: one.offered_at)
    assert lost + len(left) + len(jobs) <= offered
