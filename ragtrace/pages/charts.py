"""Small pictures as SVG, and the data of large charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from ragtrace.model.printable import printable
from ragtrace.pages.formats import as_json, interval, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.views.types import Histogram, MetricView, Trend

_WIDTH, _HEIGHT, _EDGE = 150.0, 34.0, 2.0


class TrendPoint(NamedTuple):
    """A bin with scores; `at` is where it begins."""

    at: float
    mean: float
    low: float
    high: float
    scores: int


def points(trend: Trend | None) -> list[TrendPoint]:
    """Return the bins with scores; the mean stands for bounds that one score does not give."""
    if trend is None:
        return []
    rows = zip(trend.starts, trend.means, trend.lows, trend.highs, trend.counts, strict=True)
    return [
        TrendPoint(at, mean, mean if low is None else low, mean if high is None else high, count)
        for at, mean, low, high, count in rows
        if mean is not None
    ]


def spark(trend: Trend | None, name: str) -> Markup:
    """Return a line with its band over time, without axes; nothing where no bin has a score."""
    bins = points(trend)
    if not bins:
        return Markup()
    xs = _scale([point.at for point in bins], _EDGE, _WIDTH - _EDGE)
    least, most = min(point.low for point in bins), max(point.high for point in bins)
    room = max((most - least) * 0.05, 0.01)

    def y(value: float) -> float:
        return _HEIGHT - (value - least + room) / (most - least + 2 * room) * _HEIGHT

    upper = [(x, y(point.high)) for x, point in zip(xs, bins, strict=True)]
    lower = [(x, y(point.low)) for x, point in zip(xs, bins, strict=True)]
    line = [(x, y(point.mean)) for x, point in zip(xs, bins, strict=True)]
    label = f"{name} over time: {number(bins[0].mean)} at first, {number(bins[-1].mean)} at last"
    return _svg(
        "spark",
        label,
        (_WIDTH, _HEIGHT),
        Markup('<polygon class="band" points="{}"/><polyline class="line" points="{}"/>').format(
            _path([*upper, *reversed(lower)]), _path(line)
        ),
        Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="2"/>').format(*line[-1]),
    )


def bars(histogram: Histogram | None, name: str) -> Markup:
    """Return a distribution as bars; nothing without scores."""
    most = max(histogram.counts, default=0) if histogram else 0
    if histogram is None or not most:
        return Markup()
    width, height = 92.0, 34.0
    step = width / len(histogram.counts)
    rects = Markup().join(
        Markup(
            '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{} to {}: {:,}</title></rect>'
        ).format(index * step + 0.5, height - tall, step - 1, tall, number(low), number(high), found)
        for index, (low, high, found) in enumerate(
            zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False)
        )
        if (tall := max(found / most * (height - 2), 1.0 if found else 0.0))
    )
    base = Markup('<line class="base" x1="0" x2="{0}" y1="{1}" y2="{1}"/>').format(width, height - 0.5)
    first, last = histogram.edges[0], histogram.edges[-1]
    return _svg(
        "hist", f"Distribution of {name} from {number(first)} to {number(last)}", (width, height), rects, base
    )


def interval_bar(metric: MetricView) -> Markup:
    """Return the interval on the metric's scale, with its threshold; nothing without bounds or scale."""
    mean, low, high = metric.mean
    if None in {mean, low, high, metric.low, metric.high} or metric.low == metric.high:
        return Markup()

    def x(value: float | None) -> float:
        return min(max((value - metric.low) / (metric.high - metric.low), 0.0), 1.0) * 120  # type: ignore[operator] # none is None

    parts = [
        Markup('<rect class="track" x="0" y="3" width="120" height="4" rx="2"/>'),
        Markup('<rect class="span" x="{:.1f}" y="3" width="{:.1f}" height="4" rx="2"/>').format(
            x(low), max(x(high) - x(low), 1.0)
        ),
        Markup('<rect class="point" x="{:.1f}" y="1" width="2" height="8"/>').format(min(x(mean), 118)),
    ]
    if metric.threshold is not None:
        parts.append(
            Markup('<rect class="limit" x="{:.1f}" y="0" width="1" height="10"/>').format(
                min(x(metric.threshold), 119)
            )
        )
    scale = f"on a scale from {number(metric.low)} to {number(metric.high)}"
    return _svg("range", f"{metric.label}: 95 % interval {interval(metric.mean)} {scale}", (120.0, 10.0), *parts)


def chart_data(metric: MetricView) -> str:
    """Return the data of a large chart as JSON, for the attribute that `charts.js` reads."""
    trend = metric.trend
    if trend is None:
        return ""
    return as_json(
        {
            "x": [start + trend.width_s / 2 for start in trend.starts],
            "mean": trend.means,
            "lower": trend.lows,
            "upper": trend.highs,
            "n": trend.counts,
            "low": metric.low,
            "high": metric.high,
            "threshold": metric.threshold,
            "since": metric.drift.since if metric.drift.state in {"fell", "rose"} else None,
        }
    )


def _scale(values: Sequence[float], first: float, last: float) -> list[float]:
    span = values[-1] - values[0]
    return [first + (value - values[0]) / span * (last - first) if span else last for value in values]


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _svg(kind: str, label: str, size: tuple[float, float], *parts: Markup) -> Markup:
    head = Markup('<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {:g} {:g}" preserveAspectRatio="none">')
    return head.format(kind, printable(label), *size) + Markup().join(parts) + Markup("</svg>")
