"""Creates the instruments of one meter once, and lets their owner change (configure may be called again)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import Observation

from ragtrace import semconv
from ragtrace.capture import record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter

    Read = Callable[[str], Iterable[tuple[float, Mapping[str, Any]]]]


class Board:
    """All instruments of one meter.

    The SDK never unregisters a callback, and ignores that of a second instrument of the same name: callbacks
    are registered once and ask whoever owns the board at the time.

    Attributes:
        sync: counters and histograms by name.
        owner: holds what gives the observations of an observable instrument by name; empty observes nothing.
    """

    def __init__(self, meter: Meter) -> None:
        self.owner: Sequence[Read] = ()
        self.sync: dict[str, Counter | Histogram] = {}
        for instrument in semconv.METRICS:
            self._create(meter, instrument)

    def _create(self, meter: Meter, it: semconv.Instrument) -> None:
        if it.kind == "counter":
            self.sync[it.name] = meter.create_counter(it.name, unit=it.unit, description=it.description)
        elif it.kind == "histogram":
            self.sync[it.name] = meter.create_histogram(
                it.name,
                unit=it.unit,
                description=it.description,
                explicit_bucket_boundaries_advisory=it.boundaries,
            )
        elif it.kind == "observable_gauge":
            callbacks = [self._callback(it.name)]
            meter.create_observable_gauge(it.name, callbacks, unit=it.unit, description=it.description)
        else:
            callbacks = [self._callback(it.name)]
            meter.create_observable_counter(it.name, callbacks, unit=it.unit, description=it.description)

    def _callback(self, name: str) -> Callable[[CallbackOptions], list[Observation]]:
        def observe(_: CallbackOptions) -> list[Observation]:
            try:
                return [Observation(value, about) for read in self.owner for value, about in read(name)]
            except Exception as error:  # a reader of the service; the other gauges are collected all the same
                record_internal_error(f"ragtrace.telemetry.board.{name}", error)
                return []

        return observe


_boards: weakref.WeakKeyDictionary[Meter, Board] = weakref.WeakKeyDictionary()


def board_of(meter: Meter) -> Board:
    """Return the board of a meter; the same meter has one."""
    board = _boards.get(meter)
    if board is None:
        board = _boards[meter] = Board(meter)
    return board


class Fan:
    """The instruments of several meters, written to as one: a scrape-only provider beside the application's own."""

    def __init__(self, meters: Sequence[Meter]) -> None:
        self._boards = [board_of(meter) for meter in meters]
        self._owner: list[Read] = []

    def own(self, read: Read) -> None:
        """Let `read` give the observations from now on."""
        self._owner = [read]
        for board in self._boards:
            board.owner = self._owner

    def disown(self) -> None:
        """Observe nothing, unless somebody else took over."""
        self._owner.clear()  # who takes over in this moment, in another thread, brings a list of its own

    def add(self, name: str, amount: float, attributes: Mapping[str, Any]) -> None:
        """Add to a counter."""
        for board in self._boards:
            board.sync[name].add(amount, dict(attributes))  # type: ignore[union-attr]

    def record(
        self, name: str, value: float, attributes: Mapping[str, Any], context: Context | None = None
    ) -> None:
        """Record into a histogram; `context` gives the exemplar its trace."""
        for board in self._boards:
            board.sync[name].record(value, dict(attributes), context)  # type: ignore[union-attr]
