"""Write to the instruments of several meters as one."""

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

    Points = Iterable[tuple[float, Mapping[str, Any]]]
    Reader = Callable[[], Points]


class MultiMeter:
    """Every instrument of `ragtrace.semconv.METRICS` on each of several meters.

    A scrape endpoint's meter may stand beside the application's own.

    Attributes:
        readers: give the points of observable instruments by name, from `observe` on.

    Example:
        >>> from opentelemetry.metrics import NoOpMeter
        >>> MultiMeter([NoOpMeter("ragtrace")]).add(semconv.SCORE_N, 1.0, {})
    """

    def __init__(self, meters: Sequence[Meter]) -> None:
        self._meters = [_instruments_of(meter) for meter in meters]
        self.readers: dict[str, Reader] = {}

    def add(self, name: str, amount: float, attributes: Mapping[str, Any]) -> None:
        """Add to a counter."""
        for meter in self._meters:
            meter.sync[name].add(amount, dict(attributes))  # type: ignore[union-attr]

    def record(
        self, name: str, value: float, attributes: Mapping[str, Any], context: Context | None = None
    ) -> None:
        """Record into a histogram; `context` gives the exemplar its trace."""
        for meter in self._meters:
            meter.sync[name].record(value, dict(attributes), context)  # type: ignore[union-attr]

    def observe(self) -> None:
        """Take the observable instruments over from an earlier `MultiMeter` on the same meters."""
        for meter in self._meters:
            meter.readers = self.readers

    def close(self) -> None:
        """Stop observing; a later `MultiMeter` that took over has readers of its own."""
        self.readers.clear()


class _MeterInstruments:
    """All instruments of one meter.

    The SDK never unregisters a callback, and ignores that of a second instrument of the same name. So callbacks are
    registered once and ask the readers of the time.
    """

    def __init__(self, meter: Meter) -> None:
        self.readers: Mapping[str, Reader] = {}
        self.sync: dict[str, Counter | Histogram] = {}
        for instrument in semconv.METRICS:
            self._create(meter, instrument)

    def _create(self, meter: Meter, it: semconv.Instrument) -> None:
        about: dict[str, Any] = {"unit": it.unit, "description": it.description}
        if it.kind == "counter":
            self.sync[it.name] = meter.create_counter(it.name, **about)
        elif it.kind == "histogram":
            about["explicit_bucket_boundaries_advisory"] = it.boundaries
            self.sync[it.name] = meter.create_histogram(it.name, **about)
        elif it.kind == "observable_gauge":
            meter.create_observable_gauge(it.name, [self._callback(it.name)], **about)
        else:
            meter.create_observable_counter(it.name, [self._callback(it.name)], **about)

    def _callback(self, name: str) -> Callable[[CallbackOptions], list[Observation]]:
        def observe(_: CallbackOptions) -> list[Observation]:
            read = self.readers.get(name)
            try:
                return [] if read is None else [Observation(value, about) for value, about in read()]
            except Exception as error:  # the other gauges are collected all the same
                record_internal_error(f"ragtrace.telemetry.board.{name}", error)
                return []

        return observe


_instruments: weakref.WeakKeyDictionary[Meter, _MeterInstruments] = weakref.WeakKeyDictionary()


def _instruments_of(meter: Meter) -> _MeterInstruments:
    found = _instruments.get(meter)
    if found is None:
        found = _instruments[meter] = _MeterInstruments(meter)
    return found
