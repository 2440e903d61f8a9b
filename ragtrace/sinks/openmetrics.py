"""Collected metrics as text: OpenMetrics 1.0 with exemplars, or the older Prometheus format without."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import (
    ExponentialHistogramDataPoint,
    Gauge,
    HistogramDataPoint,
    Sum,
)
from opentelemetry.trace import format_span_id, format_trace_id

from ragtrace.capture.clamp import clean_text
from ragtrace.semconv import prometheus_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opentelemetry.sdk.metrics._internal.exemplar import Exemplar
    from opentelemetry.sdk.metrics.export import Metric, MetricsData, NumberDataPoint

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_MOST_LABEL_CHARS = 1_024


class Exemplars:
    """Remembers the last exemplar of each bucket: the SDK gives each one out once, and a second scraper lost it."""

    def __init__(self) -> None:
        self._last: dict[tuple[Any, ...], Exemplar] = {}

    def kept(
        self, series: tuple[Any, ...], fresh: Iterable[Exemplar], bounds: Sequence[float]
    ) -> dict[int, Exemplar]:
        """Return the exemplar of each bucket of a series; bucket numbers count from 0, the last is +Inf."""
        for exemplar in fresh:
            if exemplar.trace_id and exemplar.span_id:
                self._last[(*series, _bucket_of(exemplar.value, bounds))] = exemplar
        found = {}
        for bucket in range(len(bounds) + 1):
            last = self._last.get((*series, bucket))
            if last is not None:
                found[bucket] = last
        return found


def _bucket_of(value: float, bounds: Sequence[float]) -> int:
    return next((place for place, bound in enumerate(bounds) if value <= bound), len(bounds))


def render(data: MetricsData | None, exemplars: Exemplars, *, is_openmetrics: bool = True) -> str:
    """Return a whole scrape.

    Names follow `ragtrace.semconv.prometheus_name`; an exponential histogram is shown by count and sum alone
    (it breaks the official exporter's whole scrape). Two instruments that fall on one name: the first is shown.

    Args:
        data: from a cumulative reader; None is an empty scrape.
        exemplars: keeps exemplars between scrapes.
        is_openmetrics: else text format 0.0.4, without exemplars.
    """
    lines: list[str] = []
    seen: set[str] = set()
    for resource_metrics in data.resource_metrics if data else ():
        if "target_info" not in seen:
            seen.add("target_info")
            lines += _target_info(resource_metrics.resource.attributes, is_openmetrics=is_openmetrics)
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                family = _Family(metric, is_openmetrics=is_openmetrics)
                if family.name not in seen:
                    seen.add(family.name)
                    lines += family.lines(exemplars)
    if is_openmetrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


class _Family:
    """One metric family and its lines."""

    def __init__(self, metric: Metric, *, is_openmetrics: bool) -> None:
        self._metric = metric
        self._is_openmetrics = is_openmetrics
        data = metric.data
        self._is_counter = isinstance(data, Sum) and data.is_monotonic
        self.name = prometheus_name(metric.name, metric.unit or "")
        self._sample = prometheus_name(metric.name, metric.unit or "", is_counter=self._is_counter)
        if self._is_counter:
            self.name = self._sample.removesuffix("_total")

    def lines(self, exemplars: Exemplars) -> Iterator[str]:
        metric = self._metric
        points: list[Any] = list(metric.data.data_points)
        shown = self.name if self._is_openmetrics else self._sample
        yield f"# TYPE {shown} {self._kind()}"
        if self._is_openmetrics and self.name.endswith("_seconds"):
            yield f"# UNIT {shown} seconds"
        if metric.description:
            yield f"# HELP {shown} {_help(metric.description, is_openmetrics=self._is_openmetrics)}"
        for point in points:
            labels = _labels(point.attributes or {})
            if isinstance(point, HistogramDataPoint):
                yield from self._histogram(point, labels, exemplars)
            elif isinstance(point, ExponentialHistogramDataPoint):
                yield from self._totals(point, labels)
            else:
                yield self._number(point, labels, exemplars)

    def _kind(self) -> str:
        if self._is_counter:
            return "counter"
        data = self._metric.data
        if isinstance(data, Gauge | Sum):
            return "gauge"
        return "histogram"

    def _number(self, point: NumberDataPoint, labels: str, exemplars: Exemplars) -> str:
        line = f"{self._sample}{_braced(labels)} {_float(point.value)}"
        if self._is_counter and self._is_openmetrics:
            found = exemplars.kept((self.name, labels), point.exemplars, ())
            if found:
                line += _exemplar(found[0])
        return line

    def _histogram(self, point: HistogramDataPoint, labels: str, exemplars: Exemplars) -> Iterator[str]:
        found: Mapping[int, Exemplar] = {}
        if self._is_openmetrics:
            found = exemplars.kept((self.name, labels), point.exemplars, point.explicit_bounds)
        total = 0
        for bucket, count in enumerate(point.bucket_counts):
            total += count
            bound = point.explicit_bounds[bucket] if bucket < len(point.explicit_bounds) else math.inf
            joined = ",".join(filter(None, (labels, f'le="{_float(bound)}"')))
            line = f"{self.name}_bucket{{{joined}}} {total}"
            yield line + _exemplar(found[bucket]) if bucket in found else line
        yield from self._sums(point.count, point.sum, labels)

    def _totals(self, point: ExponentialHistogramDataPoint, labels: str) -> Iterator[str]:
        joined = ",".join(filter(None, (labels, 'le="+Inf"')))
        yield f"{self.name}_bucket{{{joined}}} {point.count}"
        yield from self._sums(point.count, point.sum, labels)

    def _sums(self, count: int, total: float, labels: str) -> Iterator[str]:
        yield f"{self.name}_count{_braced(labels)} {count}"
        yield f"{self.name}_sum{_braced(labels)} {_float(total)}"


def _target_info(attributes: Mapping[str, Any], *, is_openmetrics: bool) -> list[str]:
    name = "target" if is_openmetrics else "target_info"
    kind = "info" if is_openmetrics else "gauge"
    return [
        f"# TYPE {name} {kind}",
        f"# HELP {name} Target metadata",
        f"target_info{_braced(_labels(attributes))} 1",
    ]


def _labels(attributes: Mapping[str, Any]) -> str:
    """Return labels in the order of their names; values of keys that fall on one name are joined by ``;``."""
    found: dict[str, str] = {}
    for key in sorted(attributes):
        name = _label_name(key)
        value = _label_value(attributes[key])
        found[name] = f"{found[name]};{value}" if name in found else value
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(found.items()))


def _label_name(key: str) -> str:
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in key)
    return f"_{name}" if not name or name[0].isdigit() else name


def _label_value(value: Any) -> str:
    if isinstance(value, str):
        return clean_text(value, _MOST_LABEL_CHARS)[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return clean_text(json.dumps(value, ensure_ascii=False, default=str), _MOST_LABEL_CHARS)[0]
    return clean_text(value, _MOST_LABEL_CHARS)[0]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _help(text: str, *, is_openmetrics: bool) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if is_openmetrics else escaped


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _float(value: float) -> str:
    """Return a number as both formats read it; a whole float keeps its ``.0``."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def _exemplar(exemplar: Exemplar) -> str:
    trace_id = format_trace_id(exemplar.trace_id or 0)
    span_id = format_span_id(exemplar.span_id or 0)
    seconds = f"{exemplar.time_unix_nano / 1e9:.3f}"
    return f' # {{trace_id="{trace_id}",span_id="{span_id}"}} {_float(exemplar.value)} {seconds}'
