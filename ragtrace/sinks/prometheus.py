"""Serve every metric as OpenMetrics text with exemplars, by prometheus_client."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import (
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Histogram,
    HistogramDataPoint,
    InMemoryMetricReader,
    Sum,
)
from opentelemetry.trace import format_span_id, format_trace_id
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import Exemplar, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import INF, floatToGoString

from ragtrace.http_server import HttpServer, text_page
from ragtrace.semconv import prometheus_name
from ragtrace.text import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from opentelemetry.sdk.metrics.export import Metric as OTelMetric
    from opentelemetry.sdk.metrics.export import NumberDataPoint

    Labels = dict[str, str]

PATH = "/metrics"
_OPENMETRICS = "application/openmetrics-text"
_MOST_LABEL_CHARS = 1_024


class ScrapeReader(InMemoryMetricReader):
    """Collects when it is asked to; cumulative, as Prometheus wants it.

    Attributes:
        answered: told the monotonic ns at which the collection of an answered scrape began.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> reader = ScrapeReader()
        >>> MeterProvider(metric_readers=[reader]).get_meter("x").create_counter("asked").add(1)
        >>> [family.name for family in OTelCollector(reader).collect()]
        ['target', 'asked']
    """

    def __init__(self) -> None:
        super().__init__()
        self.answered: Callable[[int], None] = lambda _: None

    def force_flush(self, timeout_millis: float = 10_000) -> bool:  # noqa: ARG002 - the SDK's signature
        """Do nothing: a scrape collects for itself, and the SDK gives each exemplar out once."""
        return True


class OTelCollector(Collector):
    """Gives what a reader collects to prometheus_client, with exemplars.

    Names follow `ragtrace.semconv.prometheus_name`. An exponential histogram is shown by count and sum alone. Of
    two instruments that fall on one name the first is shown. The SDK gives each exemplar out once, so the last one
    of each bucket is kept for other scrapers.
    """

    def __init__(self, reader: ScrapeReader) -> None:
        self._reader = reader
        self._exemplars: dict[tuple[str, ...], Exemplar] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of one collection."""
        data = self._reader.get_metrics_data()
        seen: set[str] = set()
        for resource_metrics in data.resource_metrics if data else ():
            if not seen:
                seen.add("target")
                about = _labels(resource_metrics.resource.attributes)
                yield InfoMetricFamily("target", "Target metadata", value=about)
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    family = self._family(metric)
                    if family.name not in seen:
                        seen.add(family.name)
                        yield family

    def _family(self, metric: OTelMetric) -> Metric:
        is_counter = isinstance(metric.data, Sum) and metric.data.is_monotonic
        sample = prometheus_name(metric.name, metric.unit or "", is_counter=is_counter)
        name = sample.removesuffix("_total") if is_counter else sample
        is_histogram = isinstance(metric.data, Histogram | ExponentialHistogram)
        kind = "counter" if is_counter else "histogram" if is_histogram else "gauge"
        unit = "seconds" if name.endswith("_seconds") else ""
        family = Metric(name, metric.description or "", kind, unit)
        for point in metric.data.data_points:
            labels = _labels(point.attributes or {})
            if isinstance(point, HistogramDataPoint | ExponentialHistogramDataPoint):
                self._add_histogram(family, point, labels)
            else:
                exemplars = self._kept(name, labels, point) if is_counter else {}
                family.add_sample(sample, labels, point.value, exemplar=exemplars.get(INF))
        return family

    def _add_histogram(
        self, family: Metric, point: HistogramDataPoint | ExponentialHistogramDataPoint, labels: Labels
    ) -> None:
        bounds, counts = [INF], [point.count]
        if isinstance(point, HistogramDataPoint):
            bounds, counts = [*point.explicit_bounds, INF], list(point.bucket_counts)
        exemplars = self._kept(family.name, labels, point, bounds)
        total = 0
        for bound, count in zip(bounds, counts, strict=True):
            total += count
            bucket = {**labels, "le": floatToGoString(bound)}  # type: ignore[no-untyped-call]
            family.add_sample(f"{family.name}_bucket", bucket, total, exemplar=exemplars.get(bound))
        family.add_sample(f"{family.name}_count", labels, point.count)
        family.add_sample(f"{family.name}_sum", labels, point.sum)

    def _kept(
        self,
        name: str,
        labels: Labels,
        point: NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint,
        bounds: Iterable[float] = (INF,),
    ) -> dict[float, Exemplar]:
        """Keep the fresh exemplars of a series, and return the last one of each bucket."""
        series = (name, *(part for pair in labels.items() for part in pair))
        for fresh in point.exemplars:
            if fresh.trace_id and fresh.span_id:
                bound = next(bound for bound in bounds if fresh.value <= bound)
                trace = {"trace_id": format_trace_id(fresh.trace_id), "span_id": format_span_id(fresh.span_id)}
                kept = Exemplar(trace, fresh.value, round(fresh.time_unix_nano / 1e9, 3))
                self._exemplars[*series, repr(bound)] = kept
        found = ((bound, self._exemplars.get((*series, repr(bound)))) for bound in bounds)
        return {bound: kept for bound, kept in found if kept is not None}


class OpenMetricsEndpoint(HttpServer):
    """Serves ``GET /metrics`` as OpenMetrics 1.0 with exemplars, or as text 0.0.4 for older clients.

    Give `reader` to a `MeterProvider`; the server runs in daemon threads. It binds to loopback unless told
    otherwise: metrics carry workflow and model names, and there is no authentication.

    Args:
        host: address to bind to.
        port: 0 takes any free port; see `port`.
        reader: collects the metrics; default a new `ScrapeReader`.
        replaced: servers that are closed soon; see `ragtrace.http_server.HttpServer`.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> endpoint = OpenMetricsEndpoint(port=0)
        >>> endpoint.url.startswith("http://127.0.0.1:")
        True
        >>> endpoint.close()
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9464,
        *,
        reader: ScrapeReader | None = None,
        replaced: Iterable[HttpServer] = (),
    ) -> None:
        self.reader = reader or ScrapeReader()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(OTelCollector(self.reader))
        self._exposition = make_wsgi_app(registry)
        super().__init__("metrics", self._scrape, host=host, port=port, replaced=replaced)

    @property
    def url(self) -> str:
        """Address of the scrape."""
        return super().url + PATH

    def _scrape(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            return text_page(start_response, "404 Not Found", f"metrics are at {PATH}")
        if "text/plain" not in environ.get("HTTP_ACCEPT", ""):
            environ["HTTP_ACCEPT"] = _OPENMETRICS  # a person with curl sees exemplars too
        began_ns = time.monotonic_ns()
        text: Iterable[bytes] = self._exposition(environ, start_response)
        self.reader.answered(began_ns)
        return text


def _labels(attributes: Mapping[str, object]) -> Labels:
    """Return labels; values of keys that fall on one name are joined by ``;``, in the order of the keys."""
    found: Labels = {}
    for key in sorted(attributes):
        name = _label_name(key)
        value = _label_value(attributes[key])
        found[name] = f"{found[name]};{value}" if name in found else value
    return dict(sorted(found.items()))


def _label_name(key: str) -> str:
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in key)
    return f"_{name}" if not name or name[0].isdigit() else name


def _label_value(value: object) -> str:
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, list | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return cut(value, _MOST_LABEL_CHARS)[0]
