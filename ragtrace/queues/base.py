"""What a queue is: units come in from any thread, jobs go out to one scorer, and each ends exactly once."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from ragtrace.capture.fitting import fact_chars_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ragtrace.model import End, RagRecord
    from ragtrace.queues.spool import Accounts

    Ended = Callable[[End, str], None]

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record to score, complete in itself.

    Attributes:
        record: what to score.
        decision: ``random`` or ``forced``.
        reason: why it was forced.
        probability: inclusion probability of the draw; the weight is 1 / (head probability * this).
        rates: the same for each metric that is to be computed; empty = every metric, at `probability`.
        factor: the part of it that is the pressure's; the unit stands for 1 / factor that wanted to be here.
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
    is_recorded: bool = True
    root: Any = None
    offered_at: float = field(default_factory=time.monotonic)

    @property
    def size_bytes(self) -> int:
        """About how much it holds, at one byte a character: the same for every language."""
        record = self.record
        passages = [p for pool in record.pools for p in pool.passages]
        said = (record.query, record.answer, record.reference, record.interrupt)
        return (
            1_024
            + sum({id(p.text): len(p.text) for p in passages}.values())
            + sum(map(fact_chars_of, passages))
            + sum(len(text) for text in said if text)
            + sum(len(turn.content) for turn in record.history)
            + sum(len(part.text) for part in record.answer_parts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A unit that a scorer holds; `attempt` counts from 1, `key` is its identity in the queue."""

    unit: Unit
    attempt: int = 1
    key: str = ""


class Part(NamedTuple):
    """What waits in one place: units, most that may, age of the oldest in seconds, and whose the place is."""

    size: int
    capacity: int
    oldest_s: float
    is_shared: bool = False


@runtime_checkable
class Queue(Protocol):
    """Takes units from any thread and never blocks the giver; gives jobs to one scorer, in one thread.

    Attributes:
        is_shared: whether other processes draw on it too, and what stands in it outlives this one.
    """

    is_shared: bool

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return those that had to go to make room (evicted, oldest first)."""
        ...

    def lease(self, limit: int) -> list[Job]:
        """Give out at most `limit` jobs that are due, the oldest first."""
        ...

    def settle(
        self,
        job: Job,
        state: End,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> bool:
        """End a job. False when it was no longer ours to end: its result must not be published.

        A shared queue runs `also` in the same transaction; another one does not run it. It raises where its file
        cannot be written, as do `retry` and `release`.
        """
        ...

    def retry(self, job: Job, wait_s: float, reason: str) -> bool:
        """Give a job back, due in `wait_s`; after `MAX_ATTEMPTS` it ends as ``dead``. False as in `settle`."""
        ...

    def release(self, jobs: Sequence[Job], wait_s: float = 0.0) -> None:
        """Give jobs back as if they had never been leased; a queue that dies with the process drops them."""
        ...

    def tend(self, held: Sequence[Job]) -> None:
        """Called about once a second from the scorer's thread: prolongs leases, takes back those that ran out."""
        ...

    def next_due_s(self) -> float | None:
        """Return how long until a job is due, 0.0 when one is, None when none waits."""
        ...

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called after a put, from the giver's thread."""
        ...

    def parts(self) -> Sequence[Part]:
        """Return what waits here and, of a shared queue, in the place that all of its processes share."""
        ...

    def accounts(self) -> Accounts | None:
        """Return what all processes of a shared queue did, as of the last look; None before one, and elsewhere."""
        ...

    def snapshot(self) -> Accounts | None:
        """Return the same as of now; from any thread."""
        ...

    def share(self, names: Collection[str]) -> set[str]:
        """Tell the other processes some names; return those that all of them told, as far as they are known."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Wait until a shared queue's units stand where they outlive us; False when the time is over first."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Bring what is there into safety, and give back every lease; False when units were left."""
        ...

    def clear(self) -> list[Unit]:
        """Take out and return what would be lost with the process, for good: a later `put` returns its unit."""
        ...

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child: what stands here the parent has too."""
        ...

    @property
    def size(self) -> int:
        """Units waiting."""
        ...

    @property
    def capacity(self) -> int:
        """Most units that may wait; where bytes are the bound, at the mean size of those that do."""
        ...

    @property
    def fullest(self) -> tuple[int, int]:
        """Units waiting and most that may, where a queue of several parts is nearest to its bound."""
        ...

    @property
    def unread_s(self) -> float:
        """Seconds for which a shared queue could not be read or written, 0.0 when it can."""
        ...
