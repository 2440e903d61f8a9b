"""The tests that every queue of ragtrace passes.

An author subclasses `QueueConformance`, returns a queue from `make`, and pytest or unittest runs the rest.
"""

# ruff: noqa: PT009 - pytest does not rewrite the asserts of an installed package
from __future__ import annotations

import threading
import time
import unittest
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace.model import Missed, Passage, Pool, RagRecord
from ragtrace.queues.base import MAX_ATTEMPTS, Queue, SharedQueue, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.model import End
    from ragtrace.queues.base import Job

_WAIT_S = 30.0


def unit_of(name: str, text: str = "Oslo.", **facts: Any) -> Unit:
    """Return a unit of one question and one passage, as the tests of a queue put it.

    Args:
        name: of the record and its trace.
        text: of the passage.
        facts: other fields of `Unit`.
    """
    pool = Pool(stage="used", passages=(Passage(id="p", text=text, rank=1),))
    return Unit(record=RagRecord(id=name, trace_id=name, query="Where?", pools=(pool,)), **facts)


def names_of(jobs: Iterable[Job]) -> list[str]:
    """Return the names of the units of some jobs."""
    return [job.unit.record.id for job in jobs]


class Ends(Counter[tuple[str, str]]):
    """Counts the ends that a queue tells, by state and reason."""

    def __call__(self, state: End, reason: str) -> None:
        """Count one end."""
        self[state, reason] += 1


class QueueConformance(unittest.TestCase):
    """Checks a `ragtrace.queues.Queue`; subclass it and write `make` and `wait`, and `settle` where it is needed.

    Attributes:
        ends: the ends that the queue told of this process's units.
    """

    __test__ = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__test__ = True

    def make(self, ended: Ends) -> Queue:
        """Return an empty queue with a capacity of at least 100 units.

        Args:
            ended: the queue's callback for ends.
        """
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Advance time: turn the queue's clock, or sleep."""
        raise NotImplementedError

    def settle(self) -> None:
        """Wait until what was flushed can be leased; at once, unless the units travel over a network."""

    def setUp(self) -> None:
        self.ends = Ends()
        self.queue = self.make(self.ends)
        self.addCleanup(self.queue.close, 1.0)

    def put(self, *names: str) -> None:
        """Put units and wait until they can be leased."""
        for name in names:
            self.assertEqual(self.queue.put(unit_of(name)), [])
        self.assertTrue(self.queue.flush(_WAIT_S))
        self.settle()

    def ends_of_all(self) -> dict[tuple[str, str], int]:
        """Return the ends of all units, also where the queue keeps them beyond the process."""
        self.queue.requeue_expired()
        if isinstance(self.queue, SharedQueue):
            counters = self.queue.counters()
            return dict(counters.ends) if counters is not None else {}
        return dict(self.ends)

    def waiting(self) -> int:
        """Return the number of units waiting."""
        self.queue.requeue_expired()
        return sum(part.size for part in self.queue.stats())

    def test_an_empty_queue_has_nothing_to_lease(self) -> None:
        self.assertIsInstance(self.queue, Queue)
        self.assertEqual(isinstance(self.queue, SharedQueue), self.queue.is_shared)
        self.assertEqual((self.queue.lease(5), self.queue.next_due_s(), self.waiting()), ([], None, 0))

    def test_units_are_leased_whole_and_in_order(self) -> None:
        unit = unit_of("a", probability=0.25, rates={"faithfulness": 0.25}, reason="rule")
        self.assertEqual(self.queue.put(unit), [])
        self.put("b", "c")
        self.assertEqual((self.waiting(), self.queue.next_due_s()), (3, 0.0))
        first, second = self.queue.lease(2)
        self.assertEqual(names_of([first, second]), ["a", "b"])
        found = first.unit
        self.assertEqual(
            (found.probability, dict(found.rates), found.reason), (0.25, {"faithfulness": 0.25}, "rule")
        )
        self.assertEqual((found.record.contexts[0].text, first.attempt), ("Oslo.", 1))
        self.assertEqual(names_of(self.queue.lease(5)), ["c"])

    def test_an_acked_job_is_over(self) -> None:
        self.put("a")
        (job,) = self.queue.lease(1)
        self.assertTrue(self.queue.ack(job, "scored"))
        self.assertEqual((self.queue.lease(1), self.waiting()), ([], 0))
        self.assertEqual(self.ends_of_all().get(("scored", "")), 1)

    def test_a_nacked_job_waits_for_its_delay_and_counts_an_attempt(self) -> None:
        self.put("a")
        (job,) = self.queue.lease(1)
        self.assertTrue(self.queue.nack(job, 1.0, "judge_timeout"))
        self.assertEqual(self.queue.lease(1), [])
        due_s = self.queue.next_due_s()
        self.assertTrue(due_s is not None and 0.0 < due_s <= 1.0)
        self.wait(1.0)
        (again,) = self.queue.lease(1)
        self.assertEqual((again.unit.record.id, again.attempt), ("a", 2))

    def test_a_job_is_given_back_with_what_its_unit_was_counted_missing_with(self) -> None:
        self.put("a")
        missed = {"faithfulness": Missed(20.0, "error", "judge_timeout")}
        (job,) = self.queue.lease(1)
        self.assertTrue(self.queue.nack(replace(job, unit=replace(job.unit, missed=missed)), 1.0, "judge_timeout"))
        self.wait(1.0)
        (again,) = self.queue.lease(1)
        self.assertEqual(dict(again.unit.missed), missed)

    def test_the_last_attempt_is_dead(self) -> None:
        self.put("a")
        for attempt in range(1, MAX_ATTEMPTS + 1):
            (job,) = self.queue.lease(1)
            self.assertEqual(job.attempt, attempt)
            self.assertTrue(self.queue.nack(job, 0.0, "judge_timeout"))
        self.assertEqual(self.queue.lease(1), [])
        self.assertEqual(self.ends_of_all().get(("dead", "judge_timeout")), 1)

    def test_a_job_given_back_without_an_attempt_counts_none(self) -> None:
        self.put("a")
        for _ in range(MAX_ATTEMPTS + 1):
            (job,) = self.queue.lease(1)
            self.assertTrue(self.queue.nack(job, 0.01, is_attempt=False))  # without a delay the scorer stops
            self.wait(0.01)
        (job,) = self.queue.lease(1)
        self.assertTrue(self.queue.nack(job, 1.0, is_attempt=False))
        self.assertEqual(self.queue.lease(1), [])
        self.wait(1.0)
        self.assertEqual(self.queue.lease(1)[0].attempt, 1)

    def test_a_held_job_is_given_out_once(self) -> None:
        self.put("a")
        held = self.queue.lease(1)
        for _ in range(3):
            self.queue.heartbeat(held)
            self.queue.requeue_expired()
            self.assertEqual(self.queue.lease(1), [])

    def test_a_put_wakes(self) -> None:
        woken = threading.Event()
        self.queue.on_put(woken.set)
        self.put("a")
        self.assertTrue(woken.wait(_WAIT_S))

    def test_units_of_several_threads_are_each_leased_once(self) -> None:
        givers = [
            threading.Thread(target=lambda n=n: [self.queue.put(unit_of(f"{n}-{i}")) for i in range(25)])
            for n in range(4)
        ]
        for giver in givers:
            giver.start()
        for giver in givers:
            giver.join(_WAIT_S)
        self.assertTrue(self.queue.flush(_WAIT_S))
        self.settle()
        found: list[str] = []
        while jobs := self.queue.lease(7):
            found += names_of(jobs)
        self.assertEqual(sorted(found), sorted(f"{n}-{i}" for n in range(4) for i in range(25)))

    def test_a_closed_queue_takes_and_gives_nothing(self) -> None:
        self.put("a")
        self.queue.close(_WAIT_S)
        late = unit_of("late")
        self.assertEqual(self.queue.put(late), [late])
        self.assertEqual(self.queue.lease(5), [])

    def test_a_close_loses_nothing_uncounted(self) -> None:
        self.put("a", "b")
        is_whole = self.queue.close(_WAIT_S)
        self.assertEqual(is_whole, self.queue.is_shared)
        self.assertEqual(self.ends["dropped", "shutdown"], 0 if is_whole else 2)


class SharedQueueConformance(QueueConformance):
    """Checks a `ragtrace.queues.SharedQueue` as well; `make` returns queues of one and the same place.

    Attributes:
        lease_s: seconds of a lease in the queues of `make`.
    """

    __test__ = False
    lease_s = 10.0

    def other(self) -> SharedQueue:
        """Return a second queue at the same place, as another process has it."""
        queue = self.make(Ends())
        self.addCleanup(queue.close, 1.0)
        if not isinstance(queue, SharedQueue):
            raise TypeError(f"{type(queue).__name__} is no SharedQueue")
        return queue

    def test_a_job_whose_lease_ran_out_is_another_scorer_s(self) -> None:
        other = self.other()
        self.put("a")
        (job,) = self.queue.lease(1)
        self.assertEqual(other.lease(1), [])
        self.wait(self.lease_s + 1.0)
        other.requeue_expired()
        (again,) = other.lease(1)
        self.assertFalse(self.queue.ack(job, "scored"))
        self.assertFalse(self.queue.nack(job, 1.0, "judge_timeout"))
        self.assertTrue(other.ack(again, "scored"))

    def test_a_heartbeat_keeps_a_lease(self) -> None:
        other = self.other()
        self.put("a")
        (job,) = self.queue.lease(1)
        for _ in range(4):
            self.wait(self.lease_s * 0.6)
            self.queue.heartbeat([job])
            other.requeue_expired()
        self.assertEqual(other.lease(1), [])
        self.assertTrue(self.queue.ack(job, "scored"))

    def test_a_closed_queue_gives_its_leases_back(self) -> None:
        self.put("a", "b")
        held = self.queue.lease(2)
        self.assertTrue(self.queue.close(_WAIT_S))
        jobs = self.other().lease(5)
        self.assertEqual([(job.unit.record.id, job.attempt) for job in jobs], [("a", 1), ("b", 1)])
        self.assertFalse(self.queue.ack(held[0], "scored"))
        self.assertFalse(self.queue.nack(held[1], 1.0, "judge_timeout"))

    def test_counters_add_up_for_every_process(self) -> None:
        self.put("a", "b")
        (job, _) = self.queue.lease(2)
        self.queue.ack(job, "scored")
        for queue in (self.queue, self.other()):
            found = queue.counters(is_fresh=True) if isinstance(queue, SharedQueue) else None
            self.assertTrue(found is not None)
            if found is not None:
                self.assertEqual((found.offered, found.leased, found.ready), (2, 1, 0))
                self.assertEqual((dict(found.ends), found.pending), ({("scored", ""): 1}, 1))

    def test_names_reach_the_other_processes(self) -> None:
        first, second = self.other(), self.other()
        first.publish_names(["a"])
        ends_at = time.monotonic() + _WAIT_S
        while (found := second.publish_names(["b"])) != {"a", "b"} and time.monotonic() < ends_at:
            time.sleep(0.05)  # names of another process are those of the last look
        self.assertEqual(found, {"a", "b"})
