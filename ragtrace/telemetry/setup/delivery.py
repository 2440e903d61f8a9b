"""Exporters that count what they could not send: the SDK drops without telling."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragtrace.capture import record_internal_error
from ragtrace.capture.forking import in_children
from ragtrace.telemetry.setup.collector import own_export
from ragtrace.telemetry.setup.receipts import collection_began
from ragtrace.telemetry.wire import size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opentelemetry.sdk._logs import ReadableLogRecord, ReadWriteLogRecord
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.trace import ReadableSpan

    from ragtrace.telemetry.setup.receipts import Receipts

    Listens = Callable[[], bool]  # whether anybody listens where a batch would go

MOST_BATCH_BYTES = 3_500_000  # a gRPC receiver refuses 4 MiB by default, and then the whole batch is lost


class Delivery:
    """Accounts of one signal: items given to its pipeline, sent, and failed. Thread-safe.

    Example:
        >>> delivery = Delivery("spans")
        >>> delivery.took(3); delivery.sent(2)
        >>> delivery.unsent
        1
    """

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self.is_void = False
        self._reset()
        in_children(self._reset)

    def _reset(self) -> None:
        """Begin anew; in a forked child too, whose queues the SDK empties: the parent sends what was there."""
        self._lock = threading.Lock()
        self._taken = 0
        self._sent = 0
        self._unwanted = 0
        self._failed = 0
        self._reported = 0

    def took(self, count: int = 1) -> None:
        """Note items given to the pipeline."""
        with self._lock:
            self._taken += count

    def sent(self, count: int) -> None:
        """Note items the receiver took."""
        with self._lock:
            self._sent += count

    def unwanted(self, count: int) -> None:
        """Note items for a default address where nobody listens: they are owed to nobody."""
        with self._lock:
            self._unwanted += count

    def failed(self, count: int, error: BaseException | None = None) -> None:
        """Note items that are gone, and count one loss."""
        with self._lock:
            self._failed += count
        record_internal_error(f"ragtrace.telemetry.delivery.{self.signal}", error)

    @property
    def unsent(self) -> int:
        """Items taken and owed to a receiver: waiting, failed, or dropped by a full queue."""
        return max(self._taken - self._sent - self._unwanted, 0)

    @property
    def taken(self) -> int:
        """Items given to the pipeline so far."""
        return self._taken

    def is_whole(self, taken: int | None = None) -> bool:
        """Say whether everything was sent, apart from what an earlier call reported missing.

        Args:
            taken: count the first so many items alone, as what came since is still under way. What of that was sent
                stands for as many of the first.
        """
        with self._lock:
            owed = (self._taken if taken is None else taken) - self._unwanted
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


class CountedSpans(SpanExporter):
    """Sends spans through another exporter, in batches a receiver will take, and counts the outcome."""

    def __init__(self, inner: SpanExporter, delivery: Delivery, listens: Listens | None = None) -> None:
        self._inner = inner
        self._delivery = delivery
        self._listens = listens

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; FAILURE when any of them could not be sent."""
        if self._listens is not None and not self._listens():
            self._delivery.unwanted(len(spans))
            return SpanExportResult.SUCCESS
        outcome = SpanExportResult.SUCCESS
        for batch in batches(spans):
            try:
                with own_export():
                    result, error = self._inner.export(batch), None
            except Exception as raised:
                result, error = SpanExportResult.FAILURE, raised
            if result is SpanExportResult.SUCCESS:
                self._delivery.sent(len(batch))
            else:
                outcome = result
                self._delivery.failed(len(batch), error)
        return outcome

    def shutdown(self) -> None:
        """Stop sending."""
        with own_export():
            self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the inner exporter holds back."""
        return self._inner.force_flush(timeout_millis)


class TakenLogs(LogRecordProcessor):
    """Counts the log records that are to be sent."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:  # noqa: ARG002 - only its number counts
        """Count one record."""
        self._delivery.took()

    def shutdown(self) -> None:
        """Nothing is held here."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - nothing is held here
        """Nothing is held here."""
        return True


class CountedLogs(LogRecordExporter):
    """Sends log records through another exporter and counts the outcome."""

    def __init__(
        self,
        inner: LogRecordExporter,
        delivery: Delivery,
        listens: Listens | None = None,
        receipts: Receipts | None = None,
    ) -> None:
        self._inner = inner
        self._receipts = receipts
        self._delivery = delivery
        self._listens = listens

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send log records."""
        if self._listens is not None and not self._listens():
            self._delivery.unwanted(len(batch))
            self._tell(batch, is_taken=True)
            return LogRecordExportResult.SUCCESS
        try:
            with own_export():
                result, error = self._inner.export(batch), None
        except Exception as raised:
            result, error = LogRecordExportResult.FAILURE, raised
        if result is LogRecordExportResult.SUCCESS:
            self._delivery.sent(len(batch))
        else:
            self._delivery.failed(len(batch), error)
        self._tell(batch, is_taken=result is LogRecordExportResult.SUCCESS)
        return result

    def _tell(self, batch: Sequence[ReadableLogRecord], *, is_taken: bool) -> None:
        if self._receipts is None:
            return
        if is_taken:
            self._receipts.delivered(batch)
        else:
            self._receipts.refused()

    def shutdown(self) -> None:
        """Stop sending."""
        with own_export():
            self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the inner exporter holds back."""
        return self._inner.force_flush(timeout_millis)


class CountedMetrics(MetricExporter):
    """Sends metrics through another exporter and counts failed collections; sums are cumulative, so a gap heals."""

    def __init__(
        self,
        inner: MetricExporter,
        delivery: Delivery,
        listens: Listens | None = None,
        receipts: Receipts | None = None,
        *,
        is_scraped: bool = False,
    ) -> None:
        super().__init__(
            preferred_temporality=inner._preferred_temporality,  # noqa: SLF001 - the reader asks the exporter it is given
            preferred_aggregation=inner._preferred_aggregation,  # noqa: SLF001
        )
        self._inner = inner
        self._delivery = delivery
        self._listens = listens
        self._receipts = receipts
        self._is_scraped = is_scraped  # who scrapes says what arrived where nobody listens

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Send one collection."""
        if self._delivery.is_void:
            return MetricExportResult.SUCCESS
        began_ns = 0 if self._receipts is None else collection_began(metrics_data)
        if self._listens is not None and not self._listens():
            if self._receipts is not None and not self._is_scraped:
                self._receipts.reported(began_ns)
            return MetricExportResult.SUCCESS
        self._delivery.took()
        try:
            with own_export():
                result, error = self._inner.export(metrics_data, timeout_millis=timeout_millis, **kwargs), None
        except Exception as raised:
            result, error = MetricExportResult.FAILURE, raised
        if result is MetricExportResult.SUCCESS:
            self._delivery.sent(1)
            if self._receipts is not None:
                self._receipts.reported(began_ns)
        else:
            self._delivery.failed(1, error)
        return result

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Stop sending."""
        with own_export():
            self._inner.shutdown(timeout_millis, **kwargs)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Send what the inner exporter holds back."""
        return self._inner.force_flush(timeout_millis)


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
