"""Panels about the machine that more than one board has: latency, lag, cost, losses, the judge's health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import NO_LEGEND, Heading, Panel, Query, by_pattern
from ragtrace_dashboards.expressions import JOB, METRIC, SERIES, WORKFLOW, gauge_by, label, legend_of, on, summed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace_dashboards.boards.panels import Kind, Place
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import Json, JsonObject

MODEL = label(semconv.JUDGE_MODEL)
OUTCOME = label(semconv.OUTCOME)
REASON = label(semconv.REASON)
NO_ANCHORS = "no anchors: see ragtrace anchors freeze"
BREAKER_STATES = (("closed", "green"), ("half open", "orange"), ("open", "red"))
ANCHOR_STATES = (("learning", "blue"), ("ok", "green"), ("warning", "orange"), ("alarm", "red"))


def latency(name: str, *, by: Sequence[str] = (WORKFLOW,), where: str = JOB, **heading: Unpack[Heading]) -> Panel:
    """Return the median and the 95th percentile of a histogram of seconds, with exemplars."""
    rate = f"sum by ({', '.join(('le', *by))}) (rate({SERIES[name]}_bucket{{{where}}}[$__rate_interval]))"
    legend = legend_of(*by)
    return Panel(
        unit="s",
        low=0,
        queries=[
            Query(f"histogram_quantile(0.5, {rate})", legend=f"p50 {legend}"),
            Query(f"histogram_quantile(0.95, {rate})", legend=f"p95 {legend}", has_exemplars=True),
        ],
        **heading,
    )


def counted(name: str, *, by: Sequence[str], unit: str = "short", **heading: Unpack[Heading]) -> Panel:
    """Return the increase of a counter over an hour, as stacked bars by labels."""
    return Panel(
        unit=unit,
        low=0,
        queries=[Query(summed(SERIES[name], "1h", by), legend=legend_of(*by))],
        custom={"fillOpacity": 25, "lineWidth": 1, "stacking": {"group": "A", "mode": "normal"}},
        **heading,
    )


class Look(Heading, total=False):
    """Looks of a gauge."""

    kind: Kind
    unit: str
    low: float
    high: float
    steps: Sequence[tuple[float, str]]
    states: Sequence[tuple[str, str]]
    overrides: Sequence[JsonObject]
    custom: Mapping[str, Json]
    nothing: str


def gauge(name: str, *, by: Sequence[str] = ("job",), how: str = "max", **look: Unpack[Look]) -> Panel:
    """Return a gauge by labels; replicas are joined by `how` (``max``, ``sum`` or ``min``)."""
    shape: Literal["series", "now"] = "series" if look.get("kind", "timeseries") == "timeseries" else "now"
    return Panel(queries=[Query(gauge_by(how, name, by), legend=legend_of(*by), shape=shape)], **look)


def age(**place: Unpack[Place]) -> Panel:
    """Return the seconds since the last score."""
    return Panel(
        title="Last score",
        description="Time since the last score of any replica. Longer than ten minutes under traffic: the scorer "
        "is down, its queue is empty by mistake, or the judge refuses everything. Nothing here: it never scored.",
        kind="stat",
        unit="s",
        steps=[(0.0, "green"), (600.0, "orange"), (3_600.0, "red")],
        queries=[
            Query(
                f"time() - max by (job) ({SERIES[semconv.EVALUATION_LAST_TIME]}{{{JOB}}})",
                legend="{{job}}",
                shape="now",
            )
        ],
        **place,
    )


def judge_errors(**place: Unpack[Place]) -> Panel:
    """Return the share of each judge's results that are errors, by reason."""
    name = SERIES[semconv.EVALUATIONS]
    by = (METRIC, MODEL)
    failed = summed(name, "1h", (*by, REASON), f'{JOB},{OUTCOME}="error"')
    tried = summed(name, "1h", by, f'{JOB},{OUTCOME}=~"ok|error"')
    share = f"{failed} / {on(by)} group_left () ({tried} > 0)"
    return Panel(
        title="Failed evaluations",
        description="Share of each judge's results that are errors, by reason. The answers that fail are not a "
        "random sample: above a few per cent the means are biased. judge_refused and judge_invalid: look at the "
        "prompt or the model; judge_timeout and judge_rate_limited: at limits and the budget.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(share, legend=legend_of(METRIC, REASON, MODEL))],
        **place,
    )


def sampled_share(**place: Unpack[Place]) -> Panel:
    """Return the share of captured traces that were drawn for scoring."""
    name, decision = SERIES[semconv.TRACES], label(semconv.DECISION)
    drawn = summed(name, "1h", ("job",), f'{JOB},{decision}="sampled"')
    return Panel(
        title="Sampling fraction",
        description="Share of captured traces that the scorer draws. It may fall under pressure; the weights undo "
        "that in every mean, at the price of effective scores. Near 0 the board is blind.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(f"{drawn} / ({summed(name, '1h', ('job',))} > 0)", legend="{{job}}")],
        **place,
    )


def coverage(**place: Unpack[Place]) -> Panel:
    """Return the share of drawn traces that got a score."""
    return gauge(
        semconv.COVERAGE_RATIO,
        title="Coverage: drawn traces that were scored",
        description="What is missing here is missing from every mean, and not at random: hard answers time out "
        "more often. Below .95 read the losses on Scorer internals before the trend.",
        unit="percentunit",
        low=0,
        high=1,
        how="min",
        **place,
    )


def waiting(name: str) -> str:
    """Return a gauge of queues by job: each process's own, and each spool's once, whoever tells it."""
    gauge, spool = SERIES[name], label(semconv.SPOOL)
    own = f'{gauge}{{{JOB},{spool}=""}}'
    shared = f'max by (job, {spool}) ({gauge}{{{JOB},{spool}!=""}})'
    return f"sum by (job) ({own} or {shared})"


def queue(**place: Unpack[Place]) -> Panel:
    """Return the queue's size and capacity."""
    return Panel(
        title="Queue",
        description="Traces that wait to be scored, and how many may. At the top the scorer drops traces: give it "
        "more concurrency, a faster judge, or a lower sampling rate.",
        unit="short",
        low=0,
        queries=[
            Query(waiting(semconv.QUEUE_SIZE), legend="waiting {{job}}"),
            Query(waiting(semconv.QUEUE_CAPACITY), legend="capacity {{job}}"),
        ],
        **place,
    )


def decisions(**place: Unpack[Place]) -> Panel:
    """Return captured traces by the scorer's decision."""
    return counted(
        semconv.TRACES,
        title="Captured traces an hour",
        description="What the scorer decided about each trace, counted once. dropped is a loss with its reason; "
        "skipped is sampling and no loss. What became of the sampled ones is the ledger's: queue_full there wants "
        "more capacity, shutdown a longer flush.",
        by=(label(semconv.DECISION), REASON),
        **place,
    )


def lag(**place: Unpack[Place]) -> Panel:
    """Return the time from a run's end to its scores."""
    return latency(
        semconv.EVALUATION_LAG,
        title="Lag behind the runs",
        description="Time from the end of a run to its scores. Every alert is late by at least this much: when it "
        "grows with the queue, the judge is slower than the traffic.",
        **place,
    )


def cost(**place: Unpack[Place]) -> Panel:
    """Return what judging cost an hour."""
    return counted(
        semconv.EVALUATION_COST_METRIC,
        title="Cost of judging an hour",
        description="Dollars an hour, as far as prices of the judge are known. If it grows faster than the "
        "traffic, look at the tokens below: longer contexts, more claims or more retries.",
        by=(WORKFLOW,),
        unit="currencyUSD",
        **place,
    )


def budget(*, kind: Kind = "timeseries", **place: Unpack[Place]) -> Panel:
    """Return what is left of today's budget."""
    return gauge(
        semconv.BUDGET_REMAINING,
        title="Budget left today",
        description="Dollars and tokens the judge may still spend today. At 0 judged metrics stop until midnight "
        "UTC and the trends go blind: raise the budget or lower the sampling rate.",
        unit="currencyUSD",
        by=(MODEL, label(semconv.UNIT)),
        how="min",
        overrides=[by_pattern(" token$", unit="short")],
        kind=kind,
        **place,
    )


def canary_gap(config: Config, **place: Unpack[Place]) -> Panel:
    """Return what instructions inside an answer gain with the judge, and the alert's limit."""
    return gauge(
        semconv.CANARY_GAP,
        title="Canary gap",
        description="What the judge gives answers with instructions to it beyond the same answers without. Above "
        "the line it obeys what it reads: distrust judged metrics, look at its model and prompt version.",
        by=(MODEL,),
        steps=[(0.0, "green"), (config.canary_gap, "red")],
        custom={"axisSoftMax": 1.5 * config.canary_gap, "thresholdsStyle": {"mode": "line"}},
        **place,
    )


def judge_change(**place: Unpack[Place]) -> Panel:
    """Return how far the judge is from its own earlier scores of the same runs, with the interval."""
    by = (METRIC, label(semconv.K), MODEL, label(semconv.JUDGE_VERSION))
    names = {"change": semconv.ANCHOR_MEAN, "low": semconv.ANCHOR_LOW, "high": semconv.ANCHOR_HIGH}
    legend = legend_of(*by)
    lines = [Query(gauge_by("avg", name, by), legend=f"{shown} {legend}") for shown, name in names.items()]
    return Panel(
        title="Change of the judge on the same runs",
        description="Mean score of the anchors now minus their reference, with its 95 % interval. An interval that "
        "leaves 0 is a judge that changed behind the same name: a drop of that size is no drop of the answers.",
        decimals=3,
        queries=[*lines, Query(gauge_by("max", semconv.ANCHOR_N, by), legend=f"runs {legend}")],
        overrides=[
            by_pattern("^(low|high) ", custom_lineWidth=0.5, custom_hideFrom=NO_LEGEND),
            by_pattern(
                "^runs ",
                unit="short",
                decimals=0,
                min=0,
                custom_axisPlacement="right",
                custom_lineWidth=1,
                custom_lineStyle={"dash": [2, 6], "fill": "dash"},
            ),
        ],
        nothing=NO_ANCHORS,
        **place,
    )
