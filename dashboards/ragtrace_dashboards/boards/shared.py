"""Panels and queries of several boards: recorded series of the drift rule, trends, latencies, tables of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Unpack

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import (
    Heading,
    Panel,
    Query,
    Search,
    by_name,
    by_pattern,
    by_query,
    fixed,
    thresholds,
)
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms, back_below, is_long
from ragtrace_dashboards.expressions import (
    CUTOFF,
    HELD,
    JOB,
    JUDGE_VERSION,
    LABEL_SCALE,
    METRIC,
    OUTCOME,
    SERIES,
    UNIVERSE,
    VERDICT,
    WORKFLOW,
    Sample,
    gauge_by,
    label,
    legend_of,
    of,
    on,
    summed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace_dashboards.boards.panels import Kind
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import Json, JsonObject

MOST: Final = 7
"""Lines that a reader can tell apart; a panel that could have more shows the first seven by a rule in its title."""

LOWER, UPPER = "lower 95 %", "upper 95 %"
WHICH = legend_of(WORKFLOW, CUTOFF, LABEL_SCALE, UNIVERSE, JUDGE_VERSION)
"""Legend that tells the series of one metric apart."""

MODEL = label(semconv.GEN_AI_REQUEST_MODEL)
DASHED: JsonObject = {"dash": [8, 6], "fill": "dash"}
ANCHOR_STATES = (("learning", "blue"), ("ok", "green"), ("warning", "orange"), ("alarm", "red"))
STACKED: JsonObject = {"fillOpacity": 25, "lineWidth": 1, "stacking": {"group": "A", "mode": "normal"}}
VERDICT_COLORS: Final = {
    "not_retrieved": "dark-blue",
    "unknown_retrieval": "light-blue",
    "lost_in_rerank": "purple",
    "cut_from_prompt": "yellow",
    "insufficient_but_answered": "light-orange",
    "sufficient_but_ignored": "orange",
    "contradicted": "dark-red",
    "unsupported": "red",
    "wrongly_refused": "dark-orange",
    "rightly_refused": "super-light-green",
    "undetermined": "#8e8e8e",
    "ok": "green",
}
"""A colour for each verdict, by the stage that it names."""


GOOD_OR_BAD: Final = (
    ("^(ok|scored|sampled)\\b", "green"),
    ("^(error|failed|dropped)\\b|\\berror$", "red"),
    ("^skipped\\b", "#8e8e8e"),
    ("^(na|pending)\\b", "blue"),
)
"""Colours of what became of a trace or a result, by the beginning of its legend."""


def recorded(name: str, where: str, arm: str = "day", at: str = "") -> str:
    """Return a recorded series of a window.

    Example:
        >>> recorded("drift_drop", JOB)
        'ragtrace:drift_drop:day{job=~"$job"}'
    """
    return f"ragtrace:{name}:{arm}{{{where}}}{f' {at}' if at else ''}"


def nearness(config: Config, where: str, at: str = "") -> str:
    """Return the drop of each watched series as a part of the drop that fires, in the window where it is largest.

    It fires above 1. Of windows of several days it is absent while the last day is back, as in the alert.
    """
    parts = []
    for arm in arms(config):
        drop, limit = (recorded(it, where, arm.name, at) for it in ("drift_drop", "drift_limit"))
        back = f" unless {recorded('drift_drop', where, at=at)} < {back_below(config):g}"
        part = f"{drop} / {limit}{back if is_long(arm, config) else ''}"
        parts.append(f'label_replace({part}, "window", "{duration(arm.window_s)}", "", "")')
    return f"max without (window) ({' or '.join(parts)})"


def left_normal(config: Config, where: str) -> str:
    """Return when each watched series left its normal: when its drop was last below half of the drop that fires."""
    drop, limit = (recorded(it, where, "fast") for it in ("drift_drop", "drift_limit"))
    steps = f"{duration(config.week_window_s)}:{duration(max(1, config.fast_window_s // 36))}"
    return f"max by ({', '.join(HELD)}) (max_over_time(timestamp({drop} < 0.5 * {limit})[{steps}]))"


def alone(expr: str, series: str) -> str:
    """Keep an expression where one series is drawn: a band is between two names, not among several."""
    return f"({expr}) and on () (count({series}) == 1)"


def first(expr: str, ranked: str, *, how: Literal["topk", "bottomk"] = "topk", most: int = MOST) -> str:
    """Return the series whose rank is largest, or smallest; `ranked` is one value for the whole picture.

    A plain ``topk(7, x)`` over time may have other seven at each point, and so any number of lines.
    """
    return f"{expr} and {how}({most}, {ranked})"


WHOLE: Final = ("$__range", "@ end()")
"""Range and modifier of a rank by the whole picture."""


def several(names: Sequence[str], **heading: Unpack[Heading]) -> Panel:
    """Return the means of some metrics over time: the seven with the lowest means in the picture."""
    sample = Sample(window="$window", where=f'{of(names)},{CUTOFF}=~"$k"')
    ranked = Sample(window=WHOLE[0], where=sample.where, at=WHOLE[1])
    return Panel(
        low=0,
        high=1,
        decimals=3,
        queries=[Query(first(sample.mean, ranked.mean, how="bottomk"), legend=f"{legend_of(METRIC)} {WHICH}")],
        **heading,
    )


def latency(name: str, *, by: Sequence[str] = (WORKFLOW,), where: str = JOB, **heading: Unpack[Heading]) -> Panel:
    """Return the 95th percentile of a histogram of seconds, with exemplars: the seven slowest in the picture."""
    bucket, kept = f"{SERIES[name]}_bucket{{{where}}}", ", ".join(("le", *by))
    now = f"histogram_quantile(0.95, sum by ({kept}) (rate({bucket}[$__rate_interval])))"
    whole = f"histogram_quantile(0.95, sum by ({kept}) (increase({bucket}[{WHOLE[0]}] {WHOLE[1]})))"
    return Panel(
        unit="s",
        low=0,
        queries=[Query(first(now, whole), legend=legend_of(*by), has_exemplars=True)],
        **heading,
    )


def counted(
    name: str, *, by: Sequence[str], where: str = JOB, unit: str = "short", **heading: Unpack[Heading]
) -> Panel:
    """Return the increase of a counter over an hour, stacked by labels: the seven largest in the picture."""
    hour, whole = summed(SERIES[name], "1h", by, where), summed(SERIES[name], WHOLE[0], by, where, WHOLE[1])
    return Panel(
        unit=unit,
        low=0,
        queries=[Query(first(hour, whole), legend=legend_of(*by))],
        custom=STACKED,
        overrides=[by_pattern(pattern, color=fixed(color)) for pattern, color in GOOD_OR_BAD],
        **heading,
    )


class Look(Heading, total=False):
    """Looks of a gauge."""

    kind: Kind
    unit: str
    low: float
    high: float
    decimals: int
    steps: Sequence[tuple[float, str]]
    states: Sequence[tuple[str, str]]
    options: Mapping[str, Json]
    overrides: Sequence[JsonObject]
    custom: Mapping[str, Json]
    nothing: str


def gauge(
    name: str, *, by: Sequence[str] = ("job",), how: Literal["max", "min"] = "max", **look: Unpack[Look]
) -> Panel:
    """Return a gauge by labels, the larger or the smaller of its replicas: the seven largest, or smallest."""
    rank: Literal["topk", "bottomk"] = "bottomk" if how == "min" else "topk"
    now, kept = gauge_by(how, name, by), ", ".join(by)
    if look.get("kind", "timeseries") != "timeseries":
        return Panel(queries=[Query(f"{rank}({MOST}, {now})", legend=legend_of(*by), shape="now")], **look)
    whole = f"{how} by ({kept}) ({how}_over_time({SERIES[name]}{{{JOB}}}[{WHOLE[0]}] {WHOLE[1]}))"
    return Panel(queries=[Query(first(now, whole, how=rank), legend=legend_of(*by))], **look)


def failed_share(window: str, by: Sequence[str], kept: Sequence[str] = (), where: str = JOB) -> str:
    """Return the share of results that are errors, by labels, and by the further ones of errors alone."""
    name = SERIES[semconv.EVALUATIONS]
    failed = summed(name, window, (*by, *kept), f'{where},{OUTCOME}="error"')
    tried = summed(name, window, by, f'{where},{OUTCOME}=~"ok|error"')
    share = f"{failed} / {on(by)} group_left () ({tried} > 0)"
    return share if kept else f"({share} or 0 * ({tried} > 0))"


def verdict_changes(where: str, *, number: int, title: str, width: int, height: int) -> Panel:
    """Return a table of verdicts: share before, share in the last day, and how much it grew; seven rows."""
    chosen = f'{where},{VERDICT}!="ok"'
    now = recorded("verdict_share", chosen)
    before = f"({recorded('verdict_share_before', chosen)} or 0 * {now})"
    change = f"{now} - {before}"
    # Times 1: a result without a name, so that the columns of a row have the same labels.
    columns = {"before": f"{before} * 1", "now": f"{now} * 1", "change": change}
    return Panel(
        number=number,
        title=title,
        description="Share of a workflow's runs that end with each verdict, in the last day and in the "
        "baseline: the seven that grew most. Red from 5 % more. The first line names the stage to look at: "
        "not_retrieved is search, lost_in_rerank the reranker, cut_from_prompt the prompt, the others the model.",
        kind="table",
        unit="percentunit",
        low=0,
        high=1,
        decimals=1,
        queries=[
            Query(first(expr, f"({change}) > 0.005"), name=key, shape="table") for key, expr in columns.items()
        ],
        transformations=one_table(
            {VERDICT: "verdict", WORKFLOW: "workflow"} | {f"Value #{it}": it for it in columns}, sort="change"
        ),
        overrides=[
            by_pattern(".", noValue="-"),
            by_name("verdict", unit="string", custom_minWidth=150),
            by_name("workflow", unit="string", custom_width=72),
            *(by_name(it, custom_width=60) for it in ("before", "now")),
            by_name("change", custom_width=66, **colored(((0.0, "transparent"), (0.02, "orange"), (0.05, "red")))),
        ],
        nothing="nothing grew, or the recording rules are not loaded",
        width=width,
        height=height,
    )


def colored(steps: Sequence[tuple[float, str]]) -> dict[str, Json]:
    """Return the properties of a table's column whose cells are coloured from a value on."""
    return {
        "color": {"mode": "thresholds"},
        "custom_cellOptions": {"type": "color-background", "mode": "basic"},
        "thresholds": thresholds(steps),
    }


def one_table(shown: Mapping[str, str], *, sort: str, is_rising: bool = False) -> list[JsonObject]:
    """Return the transformations that merge a table's queries, and show some columns in this order, sorted by one.

    Args:
        shown: heading of each column by its label, or by ``Value #`` and its query's name.
        sort: heading of the column by which the rows are sorted, the largest first.
        is_rising: whether the smallest comes first.
    """
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": list(shown)}}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {},
                "indexByName": {key: at for at, key in enumerate(shown)},
                "renameByName": dict(shown),
            },
        },
        {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": sort, "desc": not is_rising}]}},
    ]


def found_traces(traceql: str, *, number: int, title: str, description: str) -> Panel:
    """Return a table of traces from Tempo; each line opens its trace."""
    opened: JsonObject = {
        "title": "Open the trace",
        "internal": {
            "datasourceName": "",
            "datasourceUid": "${tempo_datasource}",
            "query": {"query": "${__value.raw}", "queryType": "traceql"},
        },
        "url": "",
    }
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="table",
        queries=[Search(traceql)],
        overrides=[by_name("Trace ID", links=[opened]), by_query("A", custom_filterable=True)],
        width=12,
        height=9,
    )
