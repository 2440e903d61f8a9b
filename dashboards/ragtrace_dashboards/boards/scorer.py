"""Scorer internals and cost: life, lag, losses, the judge and its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards import operations
from ragtrace_dashboards.boards.operations import MODEL, OUTCOME, REASON
from ragtrace_dashboards.boards.panels import Panel, Query, Row, by_name
from ragtrace_dashboards.config import PANELS
from ragtrace_dashboards.expressions import JOB, METRIC, SERIES, WORKFLOW, label, legend_of, summed

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

OUTCOMES = (("ok", "green"), ("na", "blue"), ("error", "red"), ("skipped", "text"))
STATE = label(semconv.STATE)


def rows(config: Config) -> list[Row]:
    """Return the rows from alive to expensive."""
    return [
        Row(10, "Alive?", _alive()),
        Row(20, "In time?", _time()),
        Row(30, "What was lost?", _losses()),
        Row(40, "The judge", _judge()),
        Row(50, "Cost", _cost()),
        Row(60, "Can the judge be believed?", _canaries(config)),
    ]


def _alive() -> list[Panel]:
    return [operations.age(number=PANELS["last_score"][1], width=6, height=5), _fill(), _breaker(), _today()]


def _fill() -> Panel:
    size, capacity = operations.waiting(semconv.QUEUE_SIZE), operations.waiting(semconv.QUEUE_CAPACITY)
    return Panel(
        number=12,
        title="Queue fill",
        description="Waiting traces as a share of what may wait. At 1 new traces are dropped: raise "
        "concurrency, or lower the sampling rate until it falls.",
        kind="bargauge",
        unit="percentunit",
        low=0,
        high=1,
        steps=[(0.0, "green"), (0.5, "orange"), (0.9, "red")],
        queries=[
            Query(
                f"{size} / ({capacity} > 0)",
                legend="{{job}}",
                shape="now",
            )
        ],
        width=6,
        height=5,
    )


def _breaker() -> Panel:
    return operations.gauge(
        semconv.BREAKER_STATE,
        number=13,
        title="Circuit breaker of the judge",
        description="Open: the judge failed so often that it is left alone for a while; half open: one call "
        "tries it. Look at the failed evaluations for the reason, then at the provider's status page.",
        by=(MODEL,),
        kind="stat",
        states=operations.BREAKER_STATES,
        width=6,
        height=5,
    )


def _today() -> Panel:
    return Panel(
        number=14,
        title="Scores today",
        description="Results of all metrics in the last day. Far fewer than yesterday with the same traffic: "
        "look at sampling, budget and losses below.",
        kind="stat",
        unit="short",
        queries=[
            Query(summed(SERIES[semconv.EVALUATIONS], "1d", (OUTCOME,)), legend=legend_of(OUTCOME), shape="now")
        ],
        overrides=[by_name(shown, color={"fixedColor": color, "mode": "fixed"}) for shown, color in OUTCOMES],
        width=6,
        height=5,
    )


def _time() -> list[Panel]:
    return [
        operations.queue(number=21, width=12),
        operations.lag(number=PANELS["lag"][1], width=12),
        operations.gauge(
            semconv.QUEUE_OLDEST,
            number=23,
            title="Oldest waiting trace",
            description="Age of the oldest trace in the queue. It grows by a second a second when nothing is "
            "scored: then a worker hangs or the breaker is open.",
            unit="s",
            low=0,
            width=12,
        ),
        operations.latency(
            semconv.EVALUATION_DURATION,
            number=24,
            title="Time to score a trace",
            description="Judge calls included. A rise means a slower judge, longer contexts, or retries: compare "
            "calls and tokens below.",
            width=12,
        ),
    ]


def _ledger() -> Panel:
    """Return what became of traces: each process's own, and each spool's once, whoever of its scorers tells it."""
    spool, state, reason = label(semconv.SPOOL), STATE, REASON
    ledger = SERIES[semconv.LEDGER]
    own = f'{ledger}{{{JOB},{spool}="",{state}!="spooled"}}'
    shared = f'max by ({spool}, {state}, {reason}) ({ledger}{{{JOB},{spool}!=""}})'
    return Panel(
        number=34,
        title="Ledger: what became of offered traces",
        description="Every offered trace stands in exactly one line, since the scorer or its spool began. dropped "
        "and failed are losses, with their reason, and so is skipped with expired, evicted or no_metric; pending "
        "that never falls is a scorer that hangs.",
        unit="short",
        queries=[Query(f"sum by ({state}, {reason}) ({own} or {shared})", legend=legend_of(state, reason))],
        low=0,
        width=8,
    )


def _losses() -> list[Panel]:
    return [
        operations.coverage(number=PANELS["coverage"][1], width=8),
        operations.decisions(number=32, width=8),
        operations.sampled_share(number=33, width=8),
        _ledger(),
        operations.counted(
            semconv.WEIGHT_CAPPED,
            number=35,
            title="Weights at the cap an hour",
            description="Scores whose weight was cut: their means are biased a little towards what is drawn often. "
            "More than a few: raise the floor of the sampling rate.",
            by=(WORKFLOW,),
            width=8,
        ),
        operations.counted(
            semconv.INTERNAL_LOSSES,
            number=36,
            title="Swallowed errors an hour",
            description="Errors inside ragtrace that were kept from the application, by place. Any steady number "
            "is a defect: the log has the first of each; please report it.",
            by=(label(semconv.SITE),),
            width=8,
        ),
    ]


def _judge() -> list[Panel]:
    return [
        operations.judge_errors(number=PANELS["judge_errors"][1], width=12),
        operations.counted(
            semconv.EVALUATIONS,
            number=42,
            title="Results an hour by outcome",
            description="ok, na (the metric does not apply, see the reason), error and skipped. Many na of one "
            "metric: its input is not captured; see the reason's name in the docs.",
            by=(METRIC, OUTCOME, REASON),
            width=12,
        ),
        operations.counted(
            semconv.JUDGE_CALLS,
            number=43,
            title="Judge calls an hour",
            description="Calls by judge and outcome. Calls that rise while scores do not are retries: look at the "
            "provider's rate limit and at the breaker.",
            by=(MODEL, OUTCOME),
            width=12,
        ),
        operations.counted(
            semconv.JUDGE_TOKENS,
            number=44,
            title="Judge tokens an hour",
            description="Input and output tokens of the judge. They are the cost: shorter contexts, fewer claims "
            "or a cheaper judge for the same metric bring them down.",
            by=(MODEL, label(semconv.GEN_AI_TOKEN_TYPE)),
            width=12,
        ),
    ]


def _cost() -> list[Panel]:
    spent = summed(SERIES[semconv.EVALUATION_COST_METRIC], "1d", ("job",))
    scored = f"sum by (job) (increase({SERIES[semconv.EVALUATION_DURATION]}_count{{{JOB}}}[1d]))"
    return [
        operations.budget(number=PANELS["budget"][1], width=8),
        operations.cost(number=52, width=8),
        Panel(
            number=53,
            title="Cost of a scored trace",
            description="Dollars of the last day divided by its scored traces. Multiply by the traffic to see what "
            "sampling everything would cost.",
            unit="currencyUSD",
            low=0,
            decimals=5,
            queries=[Query(f"{spent} / ({scored} > 0)", legend="{{job}}")],
            width=8,
        ),
    ]


def _canaries(config: Config) -> list[Panel]:
    return [
        operations.canary_gap(config, number=PANELS["canary_gap"][1], width=24),
        operations.judge_change(number=62, width=16),
        operations.gauge(
            semconv.ANCHOR_STATE,
            number=63,
            title="Judge beside its reference",
            description="Alarm: the judge scores the same runs differently than when they were frozen, behind "
            "the same version. Learning: no reference yet, or scores too old. Nothing here: freeze anchors.",
            by=(METRIC, MODEL),
            kind="stat",
            states=operations.ANCHOR_STATES,
            width=8,
            nothing=operations.NO_ANCHORS,
        ),
    ]
