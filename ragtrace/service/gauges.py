"""Observe a running service: its queue, accounts, judge limits, canaries and baselines."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragtrace import semconv
from ragtrace.host import file_identity
from ragtrace.model import SERVED, is_drawn
from ragtrace.queues.base import PartitionedQueue, counters_of
from ragtrace.sampling import Load
from ragtrace.service.anchors.monitor import GAUGES as ANCHOR_GAUGES
from ragtrace.service.baseline_monitor import GAUGES as BASELINE_GAUGES
from ragtrace.service.looker import GAUGES as LOOK_GAUGES
from ragtrace.service.means.combined import GAUGES as COMBINED_GAUGES
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import End
    from ragtrace.queues import Queue
    from ragtrace.scoring import Ledger
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.scoring.limits import Blocked, JudgeLimiter
    from ragtrace.service.anchors.monitor import AnchorMonitor
    from ragtrace.service.baseline_monitor import BaselineMonitor
    from ragtrace.service.looker import Looker
    from ragtrace.service.means.combined import CombinedMeans
    from ragtrace.settings import Settings

    Points = Sequence[tuple[float, Mapping[str, AttributeValue]]]
    Ends = Mapping[tuple[End, str], int] | Mapping[tuple[str, str], int]

_QUEUE_FIELDS = {semconv.QUEUE_SIZE: "size", semconv.QUEUE_CAPACITY: "capacity", semconv.QUEUE_OLDEST: "oldest_s"}


class Accounts(NamedTuple):
    """Ends by (state, reason) and pending traces; every process that scores a spool reports the same for it.

    Attributes:
        ends: ended traces by (state, reason).
        pending: those without an end.
        spool: the spool's identity; None for a process's own accounts.
    """

    ends: Ends
    pending: int
    spool: str | None = None


class ServiceGauges:
    """Reads queue, accounts, limits, canaries and baselines; from any thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        ledger: Ledger,
        queue: Queue,
        baselines: BaselineMonitor,
        limiter: JudgeLimiter | None,
        canaries: Canaries | None,
        combined: CombinedMeans | None = None,
        anchors: AnchorMonitor | None = None,
        looker: Looker | None = None,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._queue = queue
        self._baselines = baselines
        self._limiter = limiter
        self._canaries = canaries
        self._combined = combined
        self._anchors = anchors
        self._looker = looker

    def readers(self) -> dict[str, Callable[[], Points]]:
        """Return a function for each observable instrument of a service, which gives its points."""
        points: dict[str, Callable[[], Points]] = {
            **{name: partial(self._queue_points, field) for name, field in _QUEUE_FIELDS.items()},
            **{name: partial(self._baselines.points, field) for name, field in BASELINE_GAUGES.items()},
            semconv.LEDGER: self._ledger_points,
        }
        if isinstance(self._queue, PartitionedQueue) and self._settings.scorer == "thread":
            points[semconv.KAFKA_LAG] = partial(_lag_points, self._queue)
            points[semconv.KAFKA_PARTITIONS] = partial(_partition_points, self._queue)
        if self._settings.scorer == "thread":  # where another process scores, only that one knows its coverage
            points[semconv.COVERAGE_RATIO] = self._coverage_points
        if self._combined is not None:
            points |= {name: partial(self._combined.points, field) for name, field in COMBINED_GAUGES.items()}
        if self._canaries is not None:
            points[semconv.CANARY_GAP] = self._canaries.points
        if self._anchors is not None:
            read = self._anchors.points
            points |= {name: partial(read, field) for name, field in ANCHOR_GAUGES.items()}
        if self._looker is not None:
            points |= {name: partial(self._looker.points, field) for name, field in LOOK_GAUGES.items()}
        if self._limiter is not None:
            about = {semconv.JUDGE_MODEL: self._settings.judge.name}
            points[semconv.BUDGET_REMAINING] = partial(_budget_points, self._limiter, about)
            points[semconv.BREAKER_STATE] = partial(_breaker_points, self._limiter, about)
        return points

    def load(self) -> Load | None:
        """Return the load of the queue, of a spool by its own accounts; None before these are known."""
        stats = self._queue.stats()
        size, capacity = sum(part.size for part in stats), sum(part.capacity for part in stats)
        counters = counters_of(self._queue)
        if self._queue.is_shared and counters is None:
            return None
        served = _served(self._ledger.counts() if counters is None else counters.ends)
        affordable = math.inf if self._limiter is None else self._limiter.affordable(served=served, waiting=size)
        wanted = None if counters is None else counters.wanted
        return Load(size=size, capacity=capacity, served=served, affordable=affordable, wanted=wanted)

    def blocked(self) -> Blocked | None:
        """Return why no call of the judge passes, None when one may."""
        return self._limiter.blocked() if self._limiter is not None else None

    def accounts(self, *, is_fresh: bool = False) -> tuple[Mapping[tuple[str, str], int], int]:
        """Return the ends by (state, reason), and the number of pending traces, of process and spool together.

        Beside the spool's accounts ``spooled`` is no end but a way there, and left out. The spool's are as of the
        last look or, fresh, as they are now.
        """
        own, *shared = self._all_accounts(is_fresh=is_fresh)
        counts, pending = Counter(own.ends), own.pending
        for spool in shared:
            counts.pop(("spooled", ""), None)
            counts.update(spool.ends)
            pending += spool.pending
        return counts, pending

    def own_ends(self) -> Mapping[tuple[str, str], int] | None:
        """Return the ends of this process alone, by (state, reason); None of a spool, which counts for all."""
        if not isinstance(self._queue, PartitionedQueue):
            return None
        ends, _ = self._ledger.read()
        counts: Counter[tuple[str, str]] = Counter(ends)
        counts.pop(("spooled", ""), None)
        counts.update(self._queue.own_ends)
        return counts

    def _all_accounts(self, *, is_fresh: bool = False) -> list[Accounts]:
        """Return the accounts of this process and, where it scores a spool, those that its processes share."""
        found = [Accounts(*self._ledger.read())]
        if self._settings.units_at is not None and self._settings.scorer == "thread":
            spool = counters_of(self._queue, is_fresh=is_fresh)
            if spool is not None:
                found.append(Accounts(spool.ends, spool.pending, self._spool()))
        return found

    def _spool(self) -> str | None:
        if self._settings.queue.address is not None:
            return sha256(self._settings.queue.address.partition("?")[0].encode()).hexdigest()[:8]
        path = self._settings.spool.path
        return None if path is None else file_identity(Path(path))

    def _queue_points(self, field: str) -> Points:
        return [
            (getattr(part, field), clean_attributes({semconv.SPOOL: self._spool() if part.is_shared else None}))
            for part in self._queue.stats()
        ]

    def _ledger_points(self) -> Points:
        return ledger_points(self._all_accounts())

    def _coverage_points(self) -> Points:
        share = coverage(self._all_accounts())
        return [] if share is None else [(share, {})]


def ledger_points(accounts: Iterable[Accounts]) -> Points:
    """Return the ledger: offered traces by state and reason of their end, and those still pending.

    Points of a spool have its identity: over processes their maximum counts, and the sum of all other points.
    ``spooled`` is the way from the one to the other, and no end.

    Example:
        >>> ledger_points([Accounts({("scored", ""): 9}, 1)])
        [(9.0, {'ragtrace.state': 'scored'}), (1.0, {'ragtrace.state': 'pending'})]
    """
    return [
        (
            float(count),
            clean_attributes({semconv.STATE: state, semconv.REASON: reason or None, semconv.SPOOL: each.spool}),
        )
        for each in accounts
        for (state, reason), count in (*each.ends.items(), (("pending", ""), each.pending))
    ]


def coverage(accounts: Iterable[Accounts]) -> float | None:
    """Return the share of drawn and ended traces that were scored; None before the first.

    Example:
        >>> own = Accounts({("spooled", ""): 9, ("dropped", "queue_full"): 1}, 0)
        >>> coverage([own, Accounts({("scored", ""): 9}, 0, spool="0a1b2c3d")])
        0.9
    """
    drawn = scored = 0
    for each in accounts:
        for (state, reason), count in each.ends.items():
            drawn += count * is_drawn(state, reason)
            scored += count * (state == "scored")
    return scored / drawn if drawn else None


def _served(ends: Ends) -> int:
    return sum(n for (state, _), n in ends.items() if state in SERVED)


def _budget_points(limiter: JudgeLimiter, about: Mapping[str, AttributeValue]) -> Points:
    """Return the rest of today's budgets: dollars and tokens, each with its unit."""
    reading = limiter.reading()
    left = {"USD": reading.budget_usd, "token": reading.budget_tokens}
    return [(float(n), {**about, semconv.UNIT: unit}) for unit, n in left.items() if n is not None]


def _lag_points(queue: PartitionedQueue) -> Points:
    return [
        (float(n), {semconv.KAFKA_TOPIC: queue.topic, semconv.KAFKA_PARTITION: str(number)})
        for number, n in queue.lag.items()
    ]


def _partition_points(queue: PartitionedQueue) -> Points:
    return [(float(len(queue.lag)), {semconv.KAFKA_TOPIC: queue.topic})]


def _breaker_points(limiter: JudgeLimiter, about: Mapping[str, AttributeValue]) -> Points:
    """Return the judge's circuit breaker: 0 closed, 1 half-open, 2 open or held."""
    return [(float(limiter.reading().breaker), about)]
