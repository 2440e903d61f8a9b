"""The memory queue: in order, bounded, never blocking."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ragtrace.queues import MemoryQueue, Unit
from ragtrace.testing.queue import unit_of as unit


def test_the_bound_in_bytes_evicts() -> None:
    queue = MemoryQueue(capacity_bytes=10_000)
    assert queue.put(unit("a", "x" * 5_000)) == []
    assert len(queue.put(unit("b", "x" * 5_000))) == 1
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


def test_each_unit_is_evicted_with_the_same_chance() -> None:
    """Also one that was leased and given back."""
    evicted: Counter[str] = Counter()
    for seed in range(2_000):
        queue = MemoryQueue(capacity=4, rng=random.Random(seed))
        for name in "abcd":
            queue.put(unit(name))
        (first,) = queue.lease(1)
        queue.nack(first, 60.0, is_attempt=False)
        evicted.update(ids(queue.put(unit("e"))))
    assert set(evicted) == set("abcde")
    assert all(330 < times < 470 for times in evicted.values()), evicted  # 400 each; sd 18


def test_only_a_unit_that_no_weight_stands_for_is_told_as_lost() -> None:
    """A new unit that is evicted at random, like any other, is not."""
    evicted: Counter[str] = Counter()
    for seed in range(20):
        lost: list[tuple[str, str]] = []
        queue = MemoryQueue(capacity=1, capacity_bytes=10_000, rng=random.Random(seed))
        queue.on_lost(lambda unit, reason, lost=lost: lost.append((unit.record.id, reason)))
        queue.put(unit("a"))
        evicted.update(ids(queue.put(unit("b"))))
        assert lost == []
        queue.put(unit("huge", "x" * 50_000))
        assert lost == [("huge", "queue_full")]
        queue.clear()
        assert ids(queue.put(unit("late"))) == ["late"]
        assert lost[1:] == [("late", "shutdown")]
    assert set(evicted) == {"a", "b"}


def test_a_job_given_back_into_a_full_queue_evicts_one() -> None:
    ends: list[tuple[str, str]] = []
    queue = MemoryQueue(capacity=2, ended=lambda state, reason: ends.append((state, reason)))
    queue.put(unit("a"))
    (job,) = queue.lease(1)
    for name in "bc":
        queue.put(unit(name))
    queue.nack(job, 60.0, is_attempt=False)
    assert ends == [("dropped", "queue_full")]
    assert queue.size == 2


def test_a_unit_of_before_the_spike_is_kept_for_certain() -> None:
    queue = MemoryQueue(capacity=3, rng=random.Random(1))
    queue.put(unit("early"))
    (early,) = queue.lease(1)
    for name in "abcde":
        queue.put(unit(name))
    assert early.unit.kept == 1.0
    # 4 waited at the first eviction and at the second; the last unit came between them.
    kept = {job.unit.record.id: job.unit.kept for job in queue.lease(9)}
    assert kept == {name: pytest.approx(0.75 if name == "e" else 0.75**2) for name in kept}
    assert len(kept) == 3


def spiked(seed: int) -> tuple[float, float]:
    """Return the mean over a spike in which answers get worse, and its estimate from the units that were kept."""
    chance = random.Random(seed)
    queue, values, done = MemoryQueue(capacity=100, rng=random.Random(seed)), {}, []
    for number in range(1_000):
        values[str(number)] = float(chance.random() > number / 2_000)
        queue.put(unit(str(number)))
        if number % 4 == 0:
            (job,) = queue.lease(1)
            if chance.random() < 0.2:
                queue.nack(job, 0.0, "judge_unavailable")
            else:
                done.append(job.unit)
    done += [job.unit for job in queue.lease(1_000)]
    weights = [1.0 / one.kept for one in done]
    weighted = sum(w * values[one.record.id] for w, one in zip(weights, done, strict=True))
    return sum(values.values()) / len(values), weighted / sum(weights)


def test_the_weighted_mean_over_a_spike_is_unbiased() -> None:
    truths, estimates = zip(*(spiked(seed) for seed in range(100)), strict=True)
    differences = [estimate - truth for estimate, truth in zip(estimates, truths, strict=True)]
    assert abs(sum(differences) / len(differences)) < 0.008, differences


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
