"""Acknowledge scores to the outbox as exporters deliver them."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opentelemetry._logs import LogRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.metrics.export import MetricsData

    Mark = tuple[int, int, int]
    Source = Literal["exporter", "time", "nobody"]

GIVEN_S = 60.0  # after it, a provider of the application counts as having delivered
_MOST_STEPS = 4_096


class ScoreEvent(LogRecord):
    """A log record with the mark of its score; the mark never leaves the process."""

    mark: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An acknowledgement: events by their marks, and everything published up to a place.

    Attributes:
        marks: of events.
        events_upto: the events of all places up to this one.
        counts_upto: the counts of all places up to this one.
    """

    marks: Sequence[Mark] = ()
    events_upto: int = 0
    counts_upto: int = 0


class Receipts:
    """Passes acknowledgements to a listener; without one nothing is kept. Thread-safe.

    Events are acknowledged by their marks, and counts by time: a delivered report holds all that was counted
    before its collection began. The entries of a listener have places, 1, 2, ..., in the order in which
    they are written; an entry that is written and not yet published holds back those behind it.

    Attributes:
        events: source of the receipts for events. ``exporter`` is our own; ``time`` (or a flush) stands for a
            provider of the application; ``nobody`` means that nothing is sent.
        counts: the same of metrics reports.

    Example:
        >>> receipts, heard = Receipts(), []
        >>> receipts.listen(heard.append)
        >>> receipts.counts = "exporter"
        >>> place = receipts.begin()
        >>> receipts.published(place)
        >>> receipts.reported(time.monotonic_ns())
        >>> heard[-1].counts_upto
        1
    """

    def __init__(self) -> None:
        self.events: Source = "nobody"
        self.counts: Source = "nobody"
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child, without a listener."""
        self._listener: Callable[[Receipt], None] | None = None
        self._lock = threading.Lock()
        self._last = 0
        self._begun: dict[int, int] = {}  # place, monotonic ns
        self._events: deque[tuple[int, int]] = deque()  # monotonic ns, place
        self._counts: deque[tuple[int, int]] = deque()
        self.is_refused = False  # whether the last batch of events was

    def listen(self, listener: Callable[[Receipt], None]) -> None:
        """Call `listener` with each receipt, in the exporters' threads; it must not wait."""
        self._listener = listener

    # -- publication --

    def begin(self) -> int:
        """Return the next place, of an entry that is about to be written and then published."""
        with self._lock:
            self._last += 1
            self._begun[self._last] = time.monotonic_ns()
            return self._last

    def published(self, place: int) -> None:
        """Note that an entry was handed to the providers."""
        with self._lock:
            self._begun.pop(place, None)
            step = time.monotonic_ns(), min(self._begun, default=self._last + 1) - 1
            events = self._step(self.events, self._events, step)
            counts = self._step(self.counts, self._counts, step)
        self._tell(events_upto=events, counts_upto=counts)

    def abandoned(self, older_s: float) -> list[int]:
        """Return places that were begun some time ago and are not published yet."""
        with self._lock:
            before = time.monotonic_ns() - int(older_s * 1e9)
            return [place for place, began in self._begun.items() if began <= before]

    # -- delivery --

    def delivered(self, batch: Iterable[ReadableLogRecord]) -> None:
        """Note that the receiver took log records."""
        self.is_refused = False
        if self._listener is not None:
            marks = [mark for it in batch if (mark := getattr(it.log_record, "mark", None)) is not None]
            if marks:
                self._listener(Receipt(marks=marks))

    def refused(self) -> None:
        """Note that a batch of events did not arrive."""
        self.is_refused = True

    def reported(self, began_ns: int) -> None:
        """Note that a metrics report arrived whose collection began at this monotonic time."""
        if self.counts == "exporter":
            with self._lock:
                upto = _taken(self._counts, began_ns)
            self._tell(counts_upto=upto)

    def given(self, before_ns: int) -> None:
        """Count items as delivered that the application's providers got before a time."""
        with self._lock:
            events = _taken(self._events, before_ns) if self.events == "time" else 0
            counts = _taken(self._counts, before_ns) if self.counts == "time" else 0
        self._tell(events_upto=events, counts_upto=counts)

    def tick(self) -> None:
        """Count items as delivered that the application's providers got a minute ago."""
        self.given(time.monotonic_ns() - int(GIVEN_S * 1e9))

    # -- inside --

    def _step(self, source: Source, steps: deque[tuple[int, int]], step: tuple[int, int]) -> int:
        """Note the place that publication reached; return it where nobody acknowledges."""
        if source == "nobody":
            return step[1]
        if len(steps) >= _MOST_STEPS:  # nothing was delivered for long: less exact places do
            kept = list(steps)[1::2]
            steps.clear()
            steps.extend(kept)
        if source == "time" or steps is self._counts:
            steps.append(step)
        return 0

    def _tell(self, *, events_upto: int = 0, counts_upto: int = 0) -> None:
        if self._listener is not None and (events_upto or counts_upto):
            self._listener(Receipt(events_upto=events_upto, counts_upto=counts_upto))


def collection_began(data: MetricsData) -> int:
    """Return the monotonic time in ns at which a collection began; later counts may be in it or not.

    Its points carry the wall clock of the begin, which the SDK reads before any of them. Call it right after the
    collection, as the wall clock may jump.
    """
    now, wall = time.monotonic_ns(), time.time_ns()
    times = (
        point.time_unix_nano
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    )
    began = next(times, None)
    return 0 if began is None else now - max(wall - began, 0)


def _taken(steps: deque[tuple[int, int]], before_ns: int) -> int:
    """Remove steps before a time; return the place of the last one, 0 without any."""
    place = 0
    while steps and steps[0][0] < before_ns:
        place = steps.popleft()[1]
    return place
