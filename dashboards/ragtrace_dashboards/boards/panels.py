"""One panel of a board as a value, and its place in the grid of Grafana's dashboard JSON."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace_dashboards.yaml_text import Json, JsonObject

PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
TEMPO = {"type": "tempo", "uid": "${tempo_datasource}"}
COLUMNS = 24
NO_VALUE = "no data"
NO_LEGEND = {"legend": True, "tooltip": False, "viz": False}

NOT_RECORDED = "not recorded: no score yet, or the recording rules are not loaded"
"""Text for no value of a panel that reads recorded series alone."""

Kind = Literal["stat", "timeseries", "table", "heatmap", "text"]


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query of a panel.

    Attributes:
        expr: the expression; Grafana's variables may stand in it.
        legend: legend with ``{{label}}`` places; empty = the labels themselves.
        shape: ``series`` over the picture's time, ``now`` one value at its right edge, ``table`` the same as
            rows, ``buckets`` a histogram's for a heatmap.
        has_exemplars: whether the points of single traces are drawn too.
        name: its name in overrides and transformations; empty = A, B, C by place.
    """

    expr: str
    _: KW_ONLY
    legend: str = ""
    shape: Literal["series", "now", "table", "buckets"] = "series"
    has_exemplars: bool = False
    name: str = ""

    def json(self, ref: str) -> JsonObject:
        """Return the target with the given reference letter."""
        is_now = self.shape in {"now", "table"}
        shown: JsonObject = {
            "datasource": dict(PROMETHEUS),
            "editorMode": "code",
            "exemplar": self.has_exemplars,
            "expr": self.expr,
            "format": {"table": "table", "buckets": "heatmap"}.get(self.shape, "time_series"),
            "instant": is_now,
            "range": not is_now,
            "refId": self.name or ref,
        }
        if self.legend:
            shown["legendFormat"] = self.legend
        return shown


@dataclass(frozen=True, slots=True)
class Search:
    """One TraceQL search of a panel; at most `limit` traces."""

    traceql: str
    limit: int = 20

    def json(self, ref: str) -> JsonObject:
        """Return the target with the given reference letter."""
        return {
            "datasource": dict(TEMPO),
            "limit": self.limit,
            "query": self.traceql,
            "queryType": "traceql",
            "refId": ref,
            "tableType": "traces",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel with its queries, its advice to the reader and its looks.

    Attributes:
        number: its id on the board, never reused: alerts link to it.
        title: a question or a noun, short.
        description: advice to the reader, 40 characters at least.
        queries: the queries whose results it shows; a text has none.
        kind: Grafana's panel type.
        unit: Grafana's unit id.
        width: columns of 24.
        height: grid rows of 30 pixels.
        low: lower end of the axis, None = by the data.
        high: upper end.
        steps: colours from a value on, lowest first; the first value is ignored.
        states: texts of the numbers 0, 1, 2, ... with a colour each.
        overrides: Grafana's field overrides.
        transformations: Grafana's data transformations.
        options: differences from the kind's own options.
        custom: differences from the kind's own field options.
        decimals: digits shown, None = Grafana's.
        nothing: text shown where the queries give nothing.
    """

    number: int
    title: str
    description: str
    queries: Sequence[Query | Search]
    kind: Kind = "timeseries"
    unit: str = "none"
    width: int = 12
    height: int = 8
    low: float | None = None
    high: float | None = None
    steps: Sequence[tuple[float, str]] = ()
    states: Sequence[tuple[str, str]] = ()
    overrides: Sequence[JsonObject] = ()
    transformations: Sequence[JsonObject] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    custom: Mapping[str, Json] = field(default_factory=dict)
    decimals: int | None = None
    nothing: str = NO_VALUE

    def json(self, x: int, y: int) -> JsonObject:
        """Return the panel with its place in the grid."""
        shown: JsonObject = {
            "datasource": dict(TEMPO if self.queries and isinstance(self.queries[0], Search) else PROMETHEUS),
            "description": self.description,
            "fieldConfig": {"defaults": self._defaults(), "overrides": list(self.overrides)},
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "id": self.number,
            "options": {**_OPTIONS[self.kind], **self.options},
            "targets": [query.json(chr(ord("A") + at)) for at, query in enumerate(self.queries)],
            "title": self.title,
            "transformations": list(self.transformations),
            "type": self.kind,
        }
        return shown

    def _defaults(self) -> JsonObject:
        # Lines that share a colour cannot be told apart: they take the palette, the limits are lines of their own.
        is_judged = (self.steps or self.states) and self.kind != "timeseries"
        shown: JsonObject = {
            "color": {"mode": "thresholds" if is_judged else "palette-classic"},
            "custom": {**_CUSTOM.get(self.kind, {}), **self.custom},
            "mappings": _mappings(self.states),
            "noValue": self.nothing,
            "thresholds": thresholds(self.steps or [(0.0, "text")]),
            "unit": self.unit,
        }
        limits = {"decimals": self.decimals, "min": self.low, "max": self.high}
        return shown | {key: value for key, value in limits.items() if value is not None}


class Heading(TypedDict, total=False):
    """Number, words and size of a panel that several boards share."""

    number: Required[int]
    title: Required[str]
    description: Required[str]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Row:
    """A heading of a board and the panels below it; an empty title is no heading."""

    number: int
    title: str
    panels: Sequence[Panel]
    is_collapsed: bool = False


def grid(rows: Iterable[Row]) -> list[JsonObject]:
    """Return the rows' panels with places: left to right, a new line where the 24 columns are full.

    A panel that fits below lower ones at the end of a line, beside a higher one, goes there.

    Example:
        >>> panel = Panel(number=2, title="Asked", description="", kind="stat", queries=[Query("x")])
        >>> [it["gridPos"] for it in grid([Row(1, "First", [panel])])]
        [{'h': 1, 'w': 24, 'x': 0, 'y': 0}, {'h': 8, 'w': 12, 'x': 0, 'y': 1}]
    """
    placed: list[JsonObject] = []
    y = 0
    for row in rows:
        below: list[JsonObject] = []
        if row.title:
            placed.append(
                {
                    "collapsed": row.is_collapsed, "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
                    "id": row.number, "panels": below if row.is_collapsed else [], "title": row.title,
                    "type": "row",
                }
            )  # fmt: skip
            y += 1
        tops = [y] * COLUMNS  # first free grid row of each column
        for panel in row.panels:
            places = range(COLUMNS - panel.width + 1)
            top, x = min((max(tops[x : x + panel.width]), x) for x in places)  # the highest, of these the leftmost
            below.append(panel.json(x, top))
            tops[x : x + panel.width] = [top + panel.height] * panel.width
        if not row.is_collapsed:
            placed += below
            y = max(tops)
    return placed


def by_query(ref: str, **properties: Json) -> JsonObject:
    """Return an override of everything that one query gave; ``custom_x`` means ``custom.x``.

    Example:
        >>> by_query("A", custom_lineWidth=0)["properties"]
        [{'id': 'custom.lineWidth', 'value': 0}]
    """
    return _override({"id": "byFrameRefID", "options": ref}, properties)


def by_name(name: str, **properties: Json) -> JsonObject:
    """Return an override of the field of one name; ``custom_x`` means ``custom.x``."""
    return _override({"id": "byName", "options": name}, properties)


def by_pattern(pattern: str, **properties: Json) -> JsonObject:
    """Return an override of the fields whose name has a regular expression; ``custom_x`` means ``custom.x``."""
    return _override({"id": "byRegexp", "options": f"/{pattern}/"}, properties)


def fixed(color: str) -> JsonObject:
    """Return the colour of a line, whatever its value."""
    return {"fixedColor": color, "mode": "fixed"}


def band(low: str, high: str, *, color: str = "blue", opacity: int = 15) -> list[JsonObject]:
    """Return the overrides that fill between two series of these legends, without their lines."""
    plain: JsonObject = {"custom_lineWidth": 0, "custom_hideFrom": NO_LEGEND, "color": fixed(color)}
    return [by_name(low, **plain), by_name(high, **plain, custom_fillOpacity=opacity, custom_fillBelowTo=low)]


def thresholds(steps: Sequence[tuple[float, str]]) -> JsonObject:
    """Return colours from a value on, lowest first; the first value is ignored."""
    found = [{"color": color, "value": value if at else None} for at, (value, color) in enumerate(steps)]
    return {"mode": "absolute", "steps": found}


def _override(matcher: JsonObject, properties: Mapping[str, Json]) -> JsonObject:
    named = [{"id": key.replace("custom_", "custom."), "value": value} for key, value in properties.items()]
    return {"matcher": matcher, "properties": named}


def _mappings(states: Sequence[tuple[str, str]]) -> list[JsonObject]:
    if not states:
        return []
    options: JsonObject = {
        str(at): {"color": color, "index": at, "text": text} for at, (text, color) in enumerate(states)
    }
    return [{"options": options, "type": "value"}]


_LEGEND: JsonObject = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True}
_REDUCE: JsonObject = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, JsonObject] = {
    "stat": {
        "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
        "reduceOptions": _REDUCE, "textMode": "auto", "wideLayout": True,
    },
    "timeseries": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "table": {"cellHeight": "sm", "footer": {"show": False}, "showHeader": True},
    "heatmap": {
        "calculate": False, "cellGap": 1, "color": {"mode": "scheme", "scheme": "Blues", "steps": 32},
        "exemplars": {"color": "rgba(255,0,255,0.7)"}, "filterValues": {"le": 1e-9}, "legend": {"show": True},
        "rowsFrame": {"layout": "auto"}, "tooltip": {"mode": "single", "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "reverse": False},
    },
    "text": {"mode": "markdown"},
}  # fmt: skip
_CUSTOM: dict[str, JsonObject] = {
    "timeseries": {
        "axisPlacement": "auto", "drawStyle": "line", "fillOpacity": 0, "lineInterpolation": "linear",
        "lineWidth": 2, "pointSize": 4, "showPoints": "never", "spanNulls": False,
    },
    "table": {"align": "auto", "cellOptions": {"type": "auto"}, "minWidth": 60},
    "heatmap": {"scaleDistribution": {"type": "linear"}},
}  # fmt: skip
