"""Units, jobs, statistics and the protocol of a queue."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from ragtrace.capture.assembly import fact_chars_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ragtrace.model import End, Missed, RagRecord
    from ragtrace.telemetry.spans.writer import Root

    Ended = Callable[[End, str], None]

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record to score, complete in itself.

    Attributes:
        record: what to score.
        decision: ``random`` or ``forced``.
        reason: why it was forced.
        probability: inclusion probability of the draw; the weight is 1 / (head probability * this * `kept`).
        rates: the same for each metric that is to be computed; empty = every metric, at `probability`.
        factor: the part of it that is the pressure's; the unit stands for 1 / factor that wanted to be here.
        kept: probability with which it outlived the evictions of full queues; it divides the weight too.
        missed: what its metrics were counted missing with at its first failed try, by output; empty before. Their
            scores take it back, in whichever process.
        is_recorded: whether the root span was sampled for export; without it no evaluation span is written.
        root: the process's own handle of the root span, None for a unit from elsewhere.
        offered_at: monotonic seconds.
    """

    record: RagRecord
    decision: Literal["random", "forced"] = "random"
    reason: str | None = None
    probability: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    factor: float = 1.0
    kept: float = 1.0
    missed: Mapping[str, Missed] = field(default_factory=dict)
    is_recorded: bool = True
    root: Root | None = None
    offered_at: float = field(default_factory=time.monotonic)

    @property
    def size_bytes(self) -> int:
        """Approximate size, at one byte a character in every language."""
        record = self.record
        passages = [*record.unranked_contexts, *(p for pool in record.pools for p in pool.passages)]
        said = (record.query, record.answer, record.reference, record.interrupt)
        return (
            1_024
            + sum({id(p.text): len(p.text) for p in passages}.values())
            + sum(map(fact_chars_of, passages))
            + sum(len(text) for text in said if text)
            + sum(len(turn.shown) for turn in record.history)
            + sum(len(part.text) for part in record.answer_parts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A unit that a scorer holds; `attempt` counts from 1."""

    unit: Unit
    attempt: int = 1
    key: str = ""


class QueueStats(NamedTuple):
    """Statistics of one place where units wait.

    Attributes:
        size: units waiting.
        capacity: most units that may wait.
        oldest_s: age of the oldest in seconds.
        is_shared: whether all processes of the queue share the place.
        used_bytes: bytes that the units hold.
        capacity_bytes: most bytes that they may hold, 0 = no bound.
    """

    size: int
    capacity: int
    oldest_s: float
    is_shared: bool = False
    used_bytes: int = 0
    capacity_bytes: int = 0

    @property
    def fill(self) -> tuple[int, int]:
        """Units waiting, and most that may at their mean size.

        Example:
            >>> QueueStats(size=4, capacity=100, oldest_s=0.0, used_bytes=400, capacity_bytes=1_000).fill
            (4, 10)
        """
        if not (self.used_bytes and self.capacity_bytes):
            return self.size, self.capacity
        return self.size, max(min(self.capacity, self.size * self.capacity_bytes // self.used_bytes), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counters of a shared queue; offered is the sum of ends and pending.

    Attributes:
        offered: units that were ever put in, duplicates among them.
        ends: by (state, reason).
        ready: jobs waiting, those not yet due among them.
        leased: jobs that a scorer holds.
        bytes: payload of both.
        oldest_s: age of the oldest of both in seconds, 0.0 without any.
        due_s: seconds until the next job that waits is due, None when none waits.
        wanted: units that all processes wanted to put in, before pressure thinned them.
    """

    offered: int
    ends: Mapping[tuple[str, str], int]
    ready: int
    leased: int
    bytes: int
    oldest_s: float
    due_s: float | None = None
    wanted: float = 0.0

    @property
    def pending(self) -> int:
        """Jobs without an end."""
        return self.ready + self.leased


@runtime_checkable
class Queue(Protocol):
    """Units on their way from capture to one scorer.

    A package offers a queue as an entry point of the group ``ragtrace.queues``, named by a scheme of the setting
    ``queue``: ``queue="acme://broker/topic"`` calls the entry point ``acme`` with that address and the keyword
    arguments of `ragtrace.queues.registry.open_queue`. `ragtrace.testing.queue.QueueConformance` checks a queue.

    Delivery is at least once. A leased job is its scorer's until it is acked, nacked, or its lease runs out. An ack
    that returns False found the lease lost: the scorer publishes nothing of that job. Units of one priority are
    leased in the order of their puts. The same unit put twice may be given out twice. A full queue evicts units at
    random and notes on the others with which probability they were kept (`Unit.kept`): evicting the oldest would
    bias the means of a spike.

    Threads: `put`, `on_put`, `stats`, `flush` and `close` are called from any thread; the others from the scorer's,
    one at a time.

    Errors: `put` never raises and does not wait for a network or a disk. `ack` and `nack` raise `OSError`,
    `sqlite3.Error` or `ragtrace.errors.QueueError` while the queue cannot be written; the scorer keeps the job and
    asks again. No other method raises: a failure is counted by `ragtrace.capture.record_internal_error`.

    Closed: `put` returns its unit, `lease` returns nothing, and an ack changes nothing.

    Attributes:
        is_shared: whether other processes draw on it too; its units outlive this process then.
    """

    is_shared: bool

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the evicted units."""
        ...

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set the function that is called when a new job can be leased."""
        ...

    def lease(self, limit: int) -> list[Job]:
        """Lease at most `limit` jobs that are due; none with 0, where a queue may still write its buffer."""
        ...

    def ack(
        self, job: Job, state: End, reason: str = "", also: Callable[[sqlite3.Connection], None] | None = None
    ) -> bool:
        """End a job; return False when its lease was lost.

        Args:
            job: of `lease`.
            state: its end.
            reason: of an end other than ``scored``.
            also: writes the job's scores on the transaction of the ack. It is given only to a queue whose file is
                the store's too.
        """
        ...

    def nack(self, job: Job, delay_s: float = 0.0, reason: str = "", *, is_attempt: bool = True) -> bool:
        """Give a job back, due in `delay_s`; return False when its lease was lost.

        The next lease gives it out with the `Unit.missed` that it has now. An attempt counts: after `MAX_ATTEMPTS`
        the job ends as ``dead`` with its reason. Without an attempt and without a delay the scorer stops: a queue
        that dies with the process drops the job.
        """
        ...

    def heartbeat(self, held: Sequence[Job]) -> None:
        """Prolong the leases of these jobs; called about once a second."""
        ...

    def requeue_expired(self) -> None:
        """Take back jobs with expired leases; called about once a second."""
        ...

    def next_due_s(self) -> float | None:
        """Return the seconds until a job is due, None when none waits."""
        ...

    def stats(self) -> Sequence[QueueStats]:
        """Return the statistics of this process's units, then the shared ones."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Wait until units outlive the process; False when the time ends first."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Flush, give back every lease and close; False when units were lost."""
        ...


@runtime_checkable
class SharedQueue(Queue, Protocol):
    """A queue that several processes use; `is_shared` is True."""

    def counters(self, *, is_fresh: bool = False) -> Counters | None:
        """Return the counters of all processes as of the last look; None before the first.

        Fresh counters may be read from any thread; they raise as `ack` does.
        """
        ...

    def publish_names(self, names: Collection[str]) -> set[str]:
        """Publish names to the other processes; return the known names of all."""
        ...

    @property
    def unread_s(self) -> float:
        """Seconds for which the queue could not be read or written, 0.0 when it can."""
        ...


@runtime_checkable
class LossTellingQueue(Protocol):
    """A queue that tells of units that it loses, so that they count as missing scores.

    It tells of those for which nothing else stands: the weights of the units that are left stand for those that a
    full queue evicts at random.
    """

    def on_lost(self, lost: Callable[[Unit, str], None]) -> None:
        """Set the function that is called with each lost unit and the reason, from any thread."""
        ...


@runtime_checkable
class PartitionedQueue(Protocol):
    """A queue on partitions of a topic, of which this process has some."""

    @property
    def topic(self) -> str:
        """Name of the topic."""
        ...

    @property
    def lag(self) -> Mapping[int, int]:
        """Records without an end, of each partition that this process has; from any thread."""
        ...

    @property
    def own_ends(self) -> Mapping[tuple[str, str], int]:
        """Units and records that this process ended, by state and reason; from any thread."""
        ...


def counters_of(queue: Queue, *, is_fresh: bool = False) -> Counters | None:
    """Return the counters of a shared queue, None of any other."""
    return queue.counters(is_fresh=is_fresh) if isinstance(queue, SharedQueue) else None
