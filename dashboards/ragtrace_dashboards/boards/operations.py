"""Panels about the machine that more than one board has: latency, lag, cost, losses, the judge's health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import Panel, Query, by_pattern
from ragtrace_dashboards.expressions import JOB, METRIC, SERIES, WORKFLOW, label, summed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

MODEL = label(semconv.JUDGE_MODEL)
OUTCOME = label(semconv.OUTCOME)
REASON = label(semconv.REASON)
BREAKER_STATES = (("closed", "green"), ("half open", "orange"), ("open", "red"))


def latency(
    name: str,
    *,
    number: int,
    title: str,
    description: str,
    by: Sequence[str] = (WORKFLOW,),
    where: str = JOB,
    **look: Any,
) -> Panel:
    """Return the median and the 95th percentile of a histogram of seconds, with exemplars."""
    rate = f"sum by ({', '.join(('le', *by))}) (rate({SERIES[name]}_bucket{{{where}}}[$__rate_interval]))"
    legend = " ".join(f"{{{{{it}}}}}" for it in by)
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit="s",
        low=0,
        queries=[
            Query(expr=f"histogram_quantile(0.5, {rate})", legend=f"p50 {legend}"),
            Query(expr=f"histogram_quantile(0.95, {rate})", legend=f"p95 {legend}", has_exemplars=True),
        ],
        **look,
    )


def counted(  # a counter an hour, by labels
    name: str,
    *,
    number: int,
    title: str,
    description: str,
    by: Sequence[str],
    unit: str = "short",
    **look: Any,
) -> Panel:
    """Return the increase of a counter over an hour, as stacked bars by labels."""
    legend = " ".join(f"{{{{{it}}}}}" for it in by)
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit=unit,
        low=0,
        queries=[Query(expr=summed(SERIES[name], "1h", by), legend=legend)],
        custom={"fillOpacity": 25, "lineWidth": 1, "stacking": {"group": "A", "mode": "normal"}},
        **look,
    )


def gauge(
    name: str, *, number: int, title: str, description: str, unit: str, by: Sequence[str] = (),
    by_kind: str = "max", kind: Any = "timeseries", **look: Any,
) -> Panel:  # fmt: skip
    """Return a gauge by labels; replicas are joined by `by_kind` (``max``, ``sum`` or ``min``)."""
    legend = " ".join(f"{{{{{it}}}}}" for it in by) or "{{job}}"
    kept = ", ".join(by) or "job"
    expr = f"{by_kind} by ({kept}) ({SERIES[name]}{{{JOB}}})"
    shape: Any = "series" if kind == "timeseries" else "now"
    return Panel(
        number=number,
        title=title,
        description=description,
        kind=kind,
        unit=unit,
        queries=[Query(expr=expr, legend=legend, shape=shape)],
        **look,
    )


def age(*, number: int, **look: Any) -> Panel:
    """Return the seconds since the last score."""
    return Panel(
        number=number,
        title="Last score",
        description="Time since the last score of any replica. Longer than ten minutes under traffic: the scorer "
        "is down, its queue is empty by mistake, or the judge refuses everything. Nothing here: it never scored.",
        kind="stat",
        unit="s",
        steps=[(0.0, "green"), (600.0, "orange"), (3_600.0, "red")],
        queries=[
            Query(
                expr=f"time() - max by (job) ({SERIES[semconv.EVALUATION_LAST_TIME]}{{{JOB}}})",
                legend="{{job}}",
                shape="now",
            )
        ],
        **look,
    )


def judge_errors(*, number: int, **look: Any) -> Panel:
    """Return the share of results that are errors, by reason."""
    name = SERIES[semconv.EVALUATIONS]
    failed = summed(name, "1h", (METRIC, REASON), f'{JOB},{OUTCOME}="error"')
    tried = summed(name, "1h", (METRIC,), f'{JOB},{OUTCOME}=~"ok|error"')
    share = f"{failed} / on ({METRIC}) group_left () ({tried} > 0)"
    return Panel(
        number=number,
        title="Failed evaluations",
        description="Share of results that are errors, by reason. The answers that fail are not a random sample: "
        "above a few per cent the means are biased. judge_refused and judge_invalid: look at the prompt or the "
        "model; judge_timeout and judge_rate_limited: at limits and the budget.",
        kind="timeseries",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(expr=share, legend=f"{{{{{METRIC}}}}} {{{{{REASON}}}}}")],
        **look,
    )


def sampled_share(*, number: int, **look: Any) -> Panel:
    """Return the share of captured traces that were drawn for scoring."""
    name, decision = SERIES[semconv.TRACES], label(semconv.DECISION)
    drawn = summed(name, "1h", ("job",), f'{JOB},{decision}="sampled"')
    return Panel(
        number=number,
        title="Sampling fraction",
        description="Share of captured traces that the scorer draws. It may fall under pressure; the weights undo "
        "that in every mean, at the price of effective scores. Near 0 the board is blind.",
        kind="timeseries",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(expr=f"{drawn} / ({summed(name, '1h', ('job',))} > 0)", legend="{{job}}")],
        **look,
    )


def coverage(*, number: int, width: int) -> Panel:
    """Return the share of drawn traces that got a score."""
    return gauge(
        semconv.COVERAGE_RATIO,
        number=number,
        title="Coverage: drawn traces that were scored",
        description="What is missing here is missing from every mean, and not at random: hard answers time out "
        "more often. Below .95 read the losses on Scorer internals before the trend.",
        unit="percentunit",
        low=0,
        high=1,
        by=("job",),
        by_kind="min",
        width=width,
    )


def waiting(name: str) -> str:
    """Return a gauge of queues by job: each process's own, and each spool's once, whoever tells it."""
    gauge, spool = SERIES[name], label(semconv.SPOOL)
    own = f'{gauge}{{{JOB},{spool}=""}}'
    shared = f'max by (job, {spool}) ({gauge}{{{JOB},{spool}!=""}})'
    return f"sum by (job) ({own} or {shared})"


def queue(*, number: int, **look: Any) -> Panel:
    """Return the queue's size and capacity."""
    return Panel(
        number=number,
        title="Queue",
        description="Traces that wait to be scored, and how many may. At the top the scorer drops traces: give it "
        "more concurrency, a faster judge, or a lower sampling rate.",
        kind="timeseries",
        unit="short",
        low=0,
        queries=[
            Query(expr=waiting(semconv.QUEUE_SIZE), legend="waiting {{job}}"),
            Query(expr=waiting(semconv.QUEUE_CAPACITY), legend="capacity {{job}}"),
        ],
        **look,
    )


def decisions(*, number: int, **look: Any) -> Panel:
    """Return captured traces by the scorer's decision."""
    return counted(
        semconv.TRACES,
        number=number,
        title="Captured traces an hour",
        description="What the scorer decided about each trace, counted once. dropped is a loss with its reason; "
        "skipped is sampling and no loss. What became of the sampled ones is the ledger's: queue_full there wants "
        "more capacity, shutdown a longer flush.",
        by=(label(semconv.DECISION), REASON),
        **look,
    )


def lag(*, number: int, **look: Any) -> Panel:
    """Return the time from a run's end to its scores."""
    return latency(
        semconv.EVALUATION_LAG,
        number=number,
        title="Lag behind the runs",
        description="Time from the end of a run to its scores. Every alert is late by at least this much: when it "
        "grows with the queue, the judge is slower than the traffic.",
        **look,
    )


def cost(*, number: int, **look: Any) -> Panel:
    """Return what judging cost an hour."""
    return counted(
        semconv.EVALUATION_COST_METRIC,
        number=number,
        title="Cost of judging an hour",
        description="Dollars an hour, as far as prices of the judge are known. If it grows faster than the "
        "traffic, look at the tokens below: longer contexts, more claims or more retries.",
        by=(WORKFLOW,),
        unit="currencyUSD",
        **look,
    )


def budget(*, number: int, **look: Any) -> Panel:
    """Return what is left of today's budget."""
    return gauge(
        semconv.BUDGET_REMAINING,
        number=number,
        title="Budget left today",
        description="Dollars and tokens the judge may still spend today. At 0 judged metrics stop until midnight "
        "UTC and the trends go blind: raise the budget or lower the sampling rate.",
        unit="currencyUSD",
        by=(MODEL, label(semconv.UNIT)),
        by_kind="min",
        overrides=[by_pattern(" token$", unit="short")],
        **look,
    )


def canary_gap(config: Config, *, number: int, **look: Any) -> Panel:
    """Return what instructions inside an answer gain with the judge, and the alert's limit."""
    return gauge(
        semconv.CANARY_GAP,
        number=number,
        title="Canary gap",
        description="What the judge gives answers with instructions to it beyond the same answers without. Above "
        "the line it obeys what it reads: distrust judged metrics, look at its model and prompt version.",
        unit="none",
        by=(MODEL,),
        steps=[(0.0, "green"), (config.canary_gap, "red")],
        custom={"axisSoftMax": 1.5 * config.canary_gap, "thresholdsStyle": {"mode": "line"}},
        **look,
    )
