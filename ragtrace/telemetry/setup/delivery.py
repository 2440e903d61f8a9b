"""Count items that exporters could not send, since the SDK drops them silently."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, MetricExportResult
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragtrace.capture import kind_of, record_internal_error
from ragtrace.telemetry.setup.collector import own_export
from ragtrace.telemetry.setup.receipts import collection_began
from ragtrace.telemetry.setup.zeros import Zeros
from ragtrace.text import size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from enum import Enum

    from opentelemetry.sdk._logs import ReadableLogRecord, ReadWriteLogRecord
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.trace import ReadableSpan

    from ragtrace.telemetry.setup.receipts import Receipts
    from ragtrace.telemetry.setup.zeros import Send

    Listens = Callable[[], bool]  # whether anybody listens where a batch would go

Exporter = TypeVar("Exporter", SpanExporter, LogRecordExporter, MetricExporter)

MOST_BATCH_BYTES = 3_500_000  # a gRPC receiver refuses 4 MiB by default, and then the whole batch is lost


class Delivery:
    """Accounts of one signal: items given to its pipeline, sent, and failed. Thread-safe.

    Attributes:
        unheard: items for a default address without a listener; they are owed to nobody.

    Example:
        >>> delivery = Delivery("spans")
        >>> delivery.took(3); delivery.sent(2)
        >>> delivery.unsent
        1
    """

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self.is_void = False
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child, whose queues the SDK empties: the parent sends the items in them."""
        self._lock = threading.Lock()
        self._taken = 0
        self._sent = 0
        self._failed = 0
        self._reported = 0
        self.unheard = 0

    def took(self, count: int = 1) -> None:
        """Note items given to the pipeline."""
        with self._lock:
            self._taken += count

    def sent(self, count: int) -> None:
        """Note items the receiver took."""
        with self._lock:
            self._sent += count

    def passed_over(self, count: int) -> None:
        """Note items for a default address without a listener."""
        with self._lock:
            self._sent += count
            self.unheard += count

    def failed(self, count: int, error: BaseException | None = None) -> None:
        """Note items that are gone, and count one loss."""
        with self._lock:
            self._failed += count
        cause = "the exporter gave up, see its line" if error is None else kind_of(error)
        line = f"ragtrace: {self.signal} could not be sent: {cause}; the application is not affected"
        record_internal_error(f"ragtrace.telemetry.delivery.{self.signal}", error, line=line)

    @property
    def unsent(self) -> int:
        """Items taken and owed to a receiver: waiting, failed, or dropped by a full queue."""
        return max(self._taken - self._sent, 0)

    @property
    def arrived(self) -> int:
        """Items that the receiver took."""
        return self._sent - self.unheard

    @property
    def taken(self) -> int:
        """Items given to the pipeline so far."""
        return self._taken

    def is_whole(self, taken: int | None = None) -> bool:
        """Return whether everything was sent, except items that an earlier call reported missing.

        Args:
            taken: count only the first so many items, since later ones are under way. A later item that was sent
                stands for an earlier one.
        """
        with self._lock:
            owed = self._taken if taken is None else taken
            missing = max(owed - self._sent, self._failed)
            is_whole = missing <= self._reported
            self._reported = missing
            return is_whole


class TakenSpans(SpanProcessor):
    """Counts the spans that end and are to be sent."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def on_end(self, span: ReadableSpan) -> None:
        """Count one span."""
        if span.context is not None and span.context.trace_flags.sampled:
            self._delivery.took()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - nothing is held here
        """Do nothing; the base class returns None, at which older SDKs leave out the processors behind."""
        return True


class TakenLogs(LogRecordProcessor):
    """Counts the log records that are to be sent."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:  # noqa: ARG002 - only its number counts
        """Count one record."""
        self._delivery.took()

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - nothing is held here
        """Do nothing."""
        return True


class _Counted(Generic[Exporter]):
    """Sends through another exporter, and counts delivered items.

    Args:
        inner: the exporter.
        delivery: the accounts.
        listens: asked before each export to the default address; None = always export.
        receipts: acknowledges delivered items; None where another exporter does.
    """

    def __init__(
        self,
        inner: Exporter,
        delivery: Delivery,
        listens: Listens | None = None,
        receipts: Receipts | None = None,
    ) -> None:
        self._inner: Exporter = inner
        self._delivery = delivery
        self._listens = listens
        self._receipts = receipts

    def shutdown(self) -> None:
        """Stop sending."""
        with own_export():
            self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        """Flush the inner exporter."""
        return bool(self._inner.force_flush(int(timeout_millis)))

    def _is_heard(self) -> bool:
        return self._listens is None or self._listens()

    def _is_sent(self, count: int, export: Callable[[], Enum]) -> bool:
        error = None
        with own_export():
            try:
                is_sent = export().name == "SUCCESS"
            except Exception as raised:
                is_sent, error = False, raised
                self._log_raised(raised)
        if is_sent:
            self._delivery.sent(count)
        else:
            self._delivery.failed(count, error)
        return is_sent

    def _log_raised(self, error: Exception) -> None:
        """Say what an exporter raises and does not log itself, as older ones do of an endpoint that is down."""
        cause = error if isinstance(error, OSError) else type(error).__name__  # others may name contents
        logging.getLogger(type(self._inner).__module__).error(
            "Failed to export %s: %s", self._delivery.signal, cause
        )


class CountedSpans(_Counted[SpanExporter], SpanExporter):
    """Sends spans in batches that a receiver takes."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; FAILURE when any of them could not be sent."""
        if not self._is_heard():
            self._delivery.passed_over(len(spans))
            return SpanExportResult.SUCCESS
        are_sent = [self._is_sent(len(batch), partial(self._inner.export, batch)) for batch in batches(spans)]
        return SpanExportResult.SUCCESS if all(are_sent) else SpanExportResult.FAILURE


class CountedLogs(_Counted[LogRecordExporter], LogRecordExporter):
    """Sends log records, and acknowledges the scores in them."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send log records."""
        is_done = True
        if self._is_heard():
            is_done = self._is_sent(len(batch), partial(self._inner.export, batch))
        else:
            self._delivery.passed_over(len(batch))
        if self._receipts is not None:
            if is_done:
                self._receipts.delivered(batch)
            else:
                self._receipts.refused()
        return LogRecordExportResult.SUCCESS if is_done else LogRecordExportResult.FAILURE


class CountedMetrics(_Counted[MetricExporter], MetricExporter):
    """Sends metrics, new series first at zero, and counts failed collections; sums are cumulative, so a gap heals.

    Args:
        inner: the exporter.
        delivery: the accounts.
        listens: as of spans and logs.
        receipts: as of spans and logs.
        is_scraped: whether scrapes acknowledge instead, where no collector listens.
    """

    def __init__(
        self,
        inner: MetricExporter,
        delivery: Delivery,
        listens: Listens | None = None,
        receipts: Receipts | None = None,
        *,
        is_scraped: bool = False,
    ) -> None:
        MetricExporter.__init__(
            self,
            preferred_temporality=inner._preferred_temporality,  # noqa: SLF001 - the reader asks the exporter it is given
            preferred_aggregation=inner._preferred_aggregation,  # noqa: SLF001
        )
        _Counted.__init__(self, inner, delivery, listens, receipts)
        self._is_scraped = is_scraped
        self._zeros = Zeros() if not isinstance(inner, ConsoleMetricExporter) else None  # a person reads that

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Stop sending."""
        with own_export():
            self._inner.shutdown(timeout_millis, **kwargs)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Send one collection."""
        if self._delivery.is_void:
            return MetricExportResult.SUCCESS
        began_ns = 0 if self._receipts is None else collection_began(metrics_data)
        is_heard = self._is_heard()
        if is_heard:
            self._delivery.took()
            send: Send = partial(self._inner.export, timeout_millis=timeout_millis, **kwargs)  # type: ignore[arg-type]
            export = send if self._zeros is None else partial(self._zeros.export, send=send)
            if not self._is_sent(1, partial(export, metrics_data)):
                return MetricExportResult.FAILURE
        if self._receipts is not None and (is_heard or not self._is_scraped):
            self._receipts.reported(began_ns)
        return MetricExportResult.SUCCESS


def batches(spans: Sequence[ReadableSpan], most_bytes: int = MOST_BATCH_BYTES) -> Iterator[list[ReadableSpan]]:
    """Yield spans in batches whose texts stay below a size; a span beyond it goes alone."""
    batch: list[ReadableSpan] = []
    room = most_bytes
    for span in spans:
        size = 512 + sum(size_bytes(value) for value in (span.attributes or {}).values() if isinstance(value, str))
        if batch and size > room:
            yield batch
            batch, room = [], most_bytes
        batch.append(span)
        room -= size
    if batch:
        yield batch
