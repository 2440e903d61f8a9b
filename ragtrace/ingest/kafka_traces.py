"""Traces that a Collector wrote to a Kafka topic, as the units of a queue.

The Collector's exporter writes one ``ExportTraceServiceRequest`` a record. With ``partition_traces_by_id`` all
records of a trace lie on one partition, under its trace id as key.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from ragtrace.errors import ConfigError
from ragtrace.ingest.assembly.assembler import Assembler, AssemblyLimits
from ragtrace.ingest.base import is_own_evaluation
from ragtrace.ingest.receiving.options import ReceiverLimits
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.ingest.receiving.wire import read_spans
from ragtrace.queues.kafka.address import KafkaAddress
from ragtrace.queues.kafka.queue import KafkaQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ragtrace.ingest.assembly.assembler import AssembledTrace
    from ragtrace.queues.base import Unit
    from ragtrace.queues.kafka.consumer import Assignment, Record, Token

SCHEME = "kafka-traces"
_LOOK_EVERY_S = 0.25
_FULL = 0.9  # of the bounds of assembly: fetched records still find room


class UnitsOfTraces(Protocol):
    """Draws the units of traces; called in the queue's thread alone."""

    def is_wanted(self, trace_id: bytes) -> bool:
        """Say by its id whether a trace may be drawn."""
        ...

    def skip(self, count: int) -> None:
        """Count traces that were left out by their id."""
        ...

    def units_of(self, trace: AssembledTrace) -> Sequence[Unit]:
        """Return the drawn units of one trace, and count everything else about it."""
        ...


@dataclass(slots=True)
class _Assembly:
    """Open traces of one assignment: another owner of the partition begins anew."""

    assembler: Assembler
    units: UnitsOfTraces


def open_kafka_traces(address: str, *, is_producer: bool, config: str | None = None, **options: Any) -> KafkaTraces:
    """Open the traces of an address such as ``kafka-traces://HOST:PORT/otlp_spans``; the entry point of the scheme.

    Raises:
        ConfigError: the address is wrong, or this process does not score.
    """
    if is_producer:
        raise ConfigError(f"queue: {SCHEME}:// is read by `ragtrace worker`; applications send OTLP to a Collector")
    return KafkaTraces(KafkaAddress.parse(address, config), **options)


class KafkaTraces(KafkaQueue):
    """Units of the traces on a topic; takes none by `put`.

    A record is finished when every trace with a span in it has its end: not drawn, or its units ended. So an open
    trace holds the watermark, for at most `AssemblyLimits.longest_s`. A record that is no request goes to the dead
    letters.

    Args:
        address: brokers, topic, group and options.
        options: of `KafkaQueue`.
    """

    makes_topic = False

    def __init__(self, address: KafkaAddress, **options: Any) -> None:
        self._limits = AssemblyLimits()
        self._requests = ReceiverLimits()
        self._units_for: Callable[[Assembler], UnitsOfTraces] | None = None
        self._assemblies: dict[Assignment, _Assembly] = {}
        self._holders: Counter[Token] = Counter()
        self._closed_at_s = 0.0
        super().__init__(address, **options)

    def read_with(self, units_for: Callable[[Assembler], UnitsOfTraces], limits: AssemblyLimits) -> None:
        """Set how traces become units; call it before the first `lease`.

        Args:
            units_for: makes the units of an assembler's traces.
            limits: of the assembly, for each partition; together they fill the bounds of one.
        """
        self._units_for, self._limits = units_for, limits

    def put(self, unit: Unit) -> list[Unit]:
        """Return the unit: an application's own runs go through a Collector."""
        return [unit]

    # -- in the queue's thread --

    def _read(self, record: Record) -> None:
        assembly = self._assembly_of(record.token.assignment)
        try:
            spans = read_spans(record.value, self._requests, assembly.units.is_wanted)
        except ReceiverRefusal as error:
            is_json = record.value.lstrip()[:1] == b"{"
            hint = "; it is JSON, and the Collector's exporter needs encoding otlp_proto" if is_json else ""
            self._bury_unread(record, error.reason, error.message + hint)
            return
        assembly.units.skip(spans.skipped_roots)
        wanted = [raw for raw in spans.wanted if not is_own_evaluation(raw)]
        holders = assembly.assembler.put(wanted, token=record.token).holders
        with self._changed:
            self._holders[record.token] = holders
        if not holders:
            self._done((record.token,))

    def _sweep(self) -> None:
        now_s = time.monotonic()
        if now_s - self._closed_at_s < _LOOK_EVERY_S:
            return
        self._closed_at_s = now_s
        for owner, assembly in list(self._assemblies.items()):
            for trace in assembly.assembler.due():
                self._close_trace(trace, assembly.units.units_of(trace) if owner.is_live else ())

    def _close_trace(self, trace: AssembledTrace, units: Sequence[Unit]) -> None:
        tokens = cast("tuple[Token, ...]", trace.tokens)  # those that `_read` gave
        with self._changed:
            for token in tokens:
                self._holders[token] += len(units) - 1  # each unit holds what the trace held
        for unit in units:
            self._add(unit, tokens)
        if not units:
            self._finish_free(tokens)

    def _done(self, tokens: Iterable[Token], *, units: int = 0) -> None:
        tokens = tuple(tokens)
        with self._changed:
            for token in tokens:
                self._holders[token] -= 1
        self._finish_free(tokens, units=units)

    def _finish_free(self, tokens: Iterable[Token], *, units: int = 0) -> None:
        with self._changed:
            free = [token for token in tokens if self._holders[token] <= 0]
            for token in free:
                del self._holders[token]
        super()._done(free, units=units)

    def _is_full(self) -> bool:
        fill = sum(one.assembler.fill for one in list(self._assemblies.values()))
        return fill >= _FULL or super()._is_full()

    def _on_gone(self, owners: Sequence[Assignment]) -> None:
        super()._on_gone(owners)
        with self._changed:
            for owner in owners:
                self._assemblies.pop(owner, None)
            for token in [token for token in self._holders if token.assignment in owners]:
                del self._holders[token]

    def _assembly_of(self, owner: Assignment) -> _Assembly:
        found = self._assemblies.get(owner)
        if found is None:
            if self._units_for is None:
                raise RuntimeError("read_with was not called")
            assembler = Assembler(self._limits)
            found = self._assemblies[owner] = _Assembly(assembler, self._units_for(assembler))
        return found
