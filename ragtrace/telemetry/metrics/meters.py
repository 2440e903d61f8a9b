"""Create every instrument of `ragtrace.semconv.METRICS` once for each meter."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from opentelemetry.metrics import Observation

from ragtrace import semconv
from ragtrace.capture import record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter
    from opentelemetry.util.types import AttributeValue

    Points = Iterable[tuple[float, Mapping[str, AttributeValue]]]
    Reader = Callable[[], Points]


class MeterInstruments:
    """All instruments of one meter.

    The SDK never unregisters a callback, and ignores that of a second instrument of the same name. So callbacks are
    registered once and ask the readers of the time.

    Attributes:
        counters: by name.
        histograms: by name.
        readers: give the points of observable instruments by name.

    Example:
        >>> from opentelemetry.metrics import NoOpMeter
        >>> MeterInstruments(NoOpMeter("ragtrace")).counters[semconv.SCORE_N].add(1.0)
    """

    def __init__(self, meter: Meter) -> None:
        self.counters: dict[str, Counter] = {}
        self.histograms: dict[str, Histogram] = {}
        self.readers: Mapping[str, Reader] = {}
        for it in semconv.METRICS:
            if it.kind == "counter":
                self.counters[it.name] = meter.create_counter(it.name, it.unit, it.description)
            elif it.kind == "histogram":
                self.histograms[it.name] = meter.create_histogram(
                    it.name, it.unit, it.description, explicit_bucket_boundaries_advisory=it.boundaries
                )
            else:
                is_gauge = it.kind == "observable_gauge"
                create = meter.create_observable_gauge if is_gauge else meter.create_observable_counter
                create(it.name, [self._callback(it.name)], it.unit, it.description)

    def _callback(self, name: str) -> Callable[[CallbackOptions], list[Observation]]:
        def observe(_: CallbackOptions) -> list[Observation]:
            read = self.readers.get(name)
            try:
                return [] if read is None else [Observation(value, about) for value, about in read()]
            except Exception as error:  # the other gauges are collected all the same
                record_internal_error(f"ragtrace.telemetry.board.{name}", error)
                return []

        return observe


_instruments: weakref.WeakKeyDictionary[Meter, MeterInstruments] = weakref.WeakKeyDictionary()


def instruments_of(meter: Meter) -> MeterInstruments:
    """Return the instruments of a meter; a meter that is configured again keeps those it has."""
    found = _instruments.get(meter)
    if found is None:
        found = _instruments[meter] = MeterInstruments(meter)
    return found
