"""Report each new series at zero before its first counts, so that ``increase()`` sees all of them.

A counter that is first reported with 5 has risen by nothing: Prometheus takes the difference of two reports. So a
process that ends within one interval of export would count nothing, and neither would the first runs of a model, a
judge's version or a reason that is new to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    ExponentialHistogramDataPoint,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
    Sum,
)

from ragtrace import semconv
from ragtrace.capture import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.metrics.export import Metric, NumberDataPoint

    Send = Callable[[MetricsData], MetricExportResult]

PointT = TypeVar("PointT", "NumberDataPoint", HistogramDataPoint, ExponentialHistogramDataPoint)
_BEFORE_NS: Final = 1_000_000_000  # between the two reports: some backends keep whole seconds
_MOST_BEFORE_NS: Final = 300_000_000_000  # far less than the hour after which Prometheus takes no sample
_LEAST_NS: Final = 1_000_000


class Zeros:
    """Sends collections through an exporter, and before them the series at zero that they have first.

    Counters and histograms of the scope ``ragtrace`` with cumulative values are meant; a delta is seen as it is.
    The report of zeros has a time of its own, at which nothing was counted yet; all new series of a collection
    share it. A few bytes a series are kept; the SDK has at most 2,000 series an instrument. A reader makes one call
    at a time.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        >>> MeterProvider([reader := InMemoryMetricReader()]).get_meter("ragtrace").create_counter("asked").add(5)
        >>> sent = []
        >>> Zeros().export(reader.get_metrics_data(), lambda data: sent.append(data) or MetricExportResult.SUCCESS)
        <MetricExportResult.SUCCESS: 0>
        >>> [data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points[0].value for data in sent]
        [0, 5]
    """

    # The time of the last report that was taken, of all providers: those of a process have one service.instance.id,
    # so that the zeros of a second one stand behind the reports of the first. Readers of two providers may write it
    # at once: either time is one at which a report was taken.
    _sent_ns: ClassVar[int] = 0

    def __init__(self) -> None:
        self._seen: set[int] = set()  # hashes of series that the receiver has
        self._is_refused = False

    def export(self, data: MetricsData, send: Send) -> MetricExportResult:
        """Send a collection, and before it the zeros of its new series.

        Where the zeros cannot be sent, the collection waits for the next one, which has all counts. Two in a row do
        not wait, so that a receiver that takes no zeros gets the counts.

        Args:
            data: the collection.
            send: exports a report.
        """
        found = self._new(data)
        zeros, new = (None, set[int]()) if found is None else found
        if zeros is not None:
            result = send(zeros)
            waits = result is not MetricExportResult.SUCCESS and not self._is_refused
            self._is_refused = result is not MetricExportResult.SUCCESS
            if waits:
                return result
        result = send(data)
        if result is MetricExportResult.SUCCESS:
            self._seen |= new
            Zeros._sent_ns = max(Zeros._sent_ns, *_times(data), 0)
        return result

    @guarded
    def _new(self, data: MetricsData) -> tuple[MetricsData | None, set[int]] | None:
        """Return the new series of a collection that have counts, at zero, and the keys of all new ones."""
        new: set[int] = set()
        resources = []
        for resource in data.resource_metrics:
            scopes = []
            for scope in resource.scope_metrics:
                if scope.scope.name == semconv.SCOPE:
                    metrics = [zero for metric in scope.metrics if (zero := self._zero(metric, new)) is not None]
                    if metrics:
                        scopes.append(replace(scope, metrics=metrics))
            if scopes:
                resources.append(replace(resource, scope_metrics=scopes))
        return (MetricsData(resource_metrics=resources) if resources else None), new

    def _zero(self, metric: Metric, new: set[int]) -> Metric | None:
        """Return a metric with its new series at zero, None where none has counts; add all new ones to `new`."""
        data = metric.data
        if isinstance(data, Gauge) or data.aggregation_temporality is not AggregationTemporality.CUMULATIVE:
            return None
        if isinstance(data, Sum):
            if not data.is_monotonic:
                return None
            numbers = [
                self._zero_number(point)
                for point in self._unseen(metric.name, data.data_points, new)
                if point.value
            ]
            return replace(metric, data=replace(data, data_points=numbers)) if numbers else None
        if isinstance(data, Histogram):
            empty = [
                self._zero_histogram(point)
                for point in self._unseen(metric.name, data.data_points, new)
                if point.count
            ]
            return replace(metric, data=replace(data, data_points=empty)) if empty else None
        flat = [
            self._zero_exponential(point)
            for point in self._unseen(metric.name, data.data_points, new)
            if point.count
        ]
        return replace(metric, data=replace(data, data_points=flat)) if flat else None

    def _unseen(self, name: str, points: Sequence[PointT], new: set[int]) -> list[PointT]:
        keys = [hash((name, frozenset((point.attributes or {}).items()))) for point in points]
        unseen = [(key, point) for key, point in zip(keys, points, strict=True) if key not in self._seen]
        new.update(key for key, _ in unseen)
        return [point for _, point in unseen]

    def _zero_number(self, point: NumberDataPoint) -> NumberDataPoint:
        return replace(self._earlier(point), value=type(point.value)(0), exemplars=[])

    def _zero_histogram(self, point: HistogramDataPoint) -> HistogramDataPoint:
        counts = [0] * len(point.bucket_counts)
        none = replace(self._earlier(point), count=0, sum=type(point.sum)(0), bucket_counts=counts, exemplars=[])
        return replace(none, min=0.0, max=0.0)

    def _zero_exponential(self, point: ExponentialHistogramDataPoint) -> ExponentialHistogramDataPoint:
        positive, negative = (
            replace(side, bucket_counts=[0] * len(side.bucket_counts)) for side in (point.positive, point.negative)
        )
        none = replace(self._earlier(point), count=0, sum=type(point.sum)(0), zero_count=0, exemplars=[])
        return replace(none, positive=positive, negative=negative, min=0.0, max=0.0)

    def _earlier(self, point: PointT) -> PointT:
        """Return a point at a time after the last report, and before anything was counted."""
        now, start = point.time_unix_nano, point.start_time_unix_nano or point.time_unix_nano
        last = min(self._sent_ns, now)
        at = max(min(start, now - _BEFORE_NS), now - _MOST_BEFORE_NS, last + _LEAST_NS)
        at = min(at, max(now - _LEAST_NS, (last + now) // 2))
        return replace(point, time_unix_nano=at, start_time_unix_nano=min(start, at))


class ZerosFirst(MetricExporter):
    """An exporter of an application's provider, before which `Zeros` stand."""

    def __init__(self, inner: MetricExporter) -> None:
        super().__init__(
            preferred_temporality=inner._preferred_temporality,  # noqa: SLF001 - as a reader asks
            preferred_aggregation=inner._preferred_aggregation,  # noqa: SLF001
        )
        self._inner = inner
        self._zeros = Zeros()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Send one collection, and before it the zeros of our new series."""
        return self._zeros.export(
            metrics_data, lambda data: self._inner.export(data, timeout_millis=timeout_millis, **kwargs)
        )

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Flush the exporter."""
        return self._inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """End the exporter."""
        self._inner.shutdown(timeout_millis, **kwargs)


@guarded
def send_zeros_first(meter_provider: object) -> None:
    """Have an application's provider report our new series at zero first, where it is the SDK's and pushes.

    It exports what it did, in its own threads and intervals, and one more report where our series are new.
    """
    for reader in readers_of(meter_provider):
        exporter = getattr(reader, "_exporter", None)  # the SDK has no public way
        if (
            isinstance(reader, PeriodicExportingMetricReader)
            and isinstance(exporter, MetricExporter)
            and not isinstance(exporter, ZerosFirst | ConsoleMetricExporter)
        ):
            reader._exporter = ZerosFirst(exporter)  # noqa: SLF001


def readers_of(meter_provider: Any) -> tuple[object, ...]:
    """Return the metric readers of an SDK's provider; none of any other."""
    config = getattr(meter_provider, "_sdk_config", None)  # no public way; 1.39 keeps the readers in it
    readers = getattr(meter_provider, "_metric_readers", None) or getattr(config, "metric_readers", None)
    return tuple(readers or ())


def _times(data: MetricsData) -> list[int]:
    return [
        point.time_unix_nano
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points[:1]
    ]
