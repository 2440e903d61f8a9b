"""What the service gives the observable instruments to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.model import is_drawn
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Observed = tuple[float, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """The scorer's queue, or one place of it, in one moment.

    Attributes:
        size: units waiting.
        capacity: most that may wait.
        oldest_s: age of the oldest in seconds.
        spool: the identity of a spool that other processes tell of as well; None for a process's own queue.
    """

    size: int
    capacity: int
    oldest_s: float
    spool: str | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """The point attributes of this queue."""
        return clean_attributes({semconv.SPOOL: self.spool})

    def value(self, name: str) -> float:
        """Return what a gauge of the queue shows."""
        found: float = getattr(self, _QUEUE_FIELDS[name])
        return found


_QUEUE_FIELDS = {semconv.QUEUE_SIZE: "size", semconv.QUEUE_CAPACITY: "capacity", semconv.QUEUE_OLDEST: "oldest_s"}
QUEUE_GAUGES = tuple(_QUEUE_FIELDS)
"""Names of the gauges that a `QueueReading` fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReading:
    """Accounts in one moment: of one process, or of a spool, which every process that scores it tells alike.

    Attributes:
        ends: ended traces by (state, reason).
        pending: those without an end.
        spool: the spool's identity; None for a process's own accounts.
    """

    ends: Mapping[tuple[Any, str], int]
    pending: int
    spool: str | None = None


def ledger_points(readings: Iterable[LedgerReading]) -> Iterator[Observed]:
    """Yield the ledger: what became of offered traces, by state and reason, and those still pending.

    Points of a spool have its identity: over processes their maximum counts, and the sum of all other points.
    ``spooled`` is the way from the one to the other, and no end.
    """
    for reading in readings:
        for (state, reason), count in (*reading.ends.items(), (("pending", ""), reading.pending)):
            about = {semconv.STATE: state, semconv.REASON: reason or None, semconv.SPOOL: reading.spool}
            yield float(count), clean_attributes(about)


def coverage(readings: Iterable[LedgerReading]) -> float | None:
    """Return the share of drawn and ended traces that were scored; None before the first.

    Example:
        >>> own = LedgerReading(ends={("spooled", ""): 9, ("dropped", "queue_full"): 1}, pending=0)
        >>> shared = LedgerReading(ends={("scored", ""): 9}, pending=0, spool="0a1b2c3d")
        >>> coverage([own, shared])
        0.9
    """
    drawn = scored = 0
    for reading in readings:
        for (state, reason), count in reading.ends.items():
            drawn += count * is_drawn(state, reason)
            scored += count * (state == "scored")
    return scored / drawn if drawn else None
