"""Scorer internals and cost, for who runs it: life, lag, losses, the judge and its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import Panel, Query, Row, by_pattern, fixed
from ragtrace_dashboards.boards.shared import (
    ANCHOR_STATES,
    DASHED,
    GOOD_OR_BAD,
    MOST,
    WHOLE,
    counted,
    failed_share,
    first,
    gauge,
    latency,
)
from ragtrace_dashboards.config import PANELS
from ragtrace_dashboards.expressions import (
    CUTOFF,
    JOB,
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    OUTCOME,
    REASON,
    SERIES,
    SIGN,
    WORKFLOW,
    gauge_by,
    label,
    legend_of,
    on,
    summed,
)

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

STATE, SPOOL, UNIT = label(semconv.STATE), label(semconv.SPOOL), label(semconv.UNIT)
NO_ANCHORS = "no anchors: see ragtrace anchors freeze"
BREAKER_STATES = (("closed", "green"), ("half open", "orange"), ("open", "red"))


def rows(config: Config) -> list[Row]:
    """Return the rows from alive to expensive."""
    return [
        Row(10, "Alive and in time?", _alive(config)),
        Row(30, "What was lost?", _losses()),
        Row(40, "The judge", _judge(config)),
        Row(60, "Can the judge be believed?", _canaries(config)),
        Row(50, "Cost", _cost()),
    ]


def waiting(name: str) -> str:
    """Return a gauge of queues by job: each process's own, and each spool's once, whoever tells it."""
    own = f'{SERIES[name]}{{{JOB},{SPOOL}=""}}'
    shared = f'max by (job, {SPOOL}) ({SERIES[name]}{{{JOB},{SPOOL}!=""}})'
    return f"sum by (job) ({own} or {shared})"


def _alive(config: Config) -> list[Panel]:
    last = f"time() - max by (job) ({SERIES[semconv.EVALUATION_LAST_TIME]}{{{JOB}}})"
    fill = f"{waiting(semconv.QUEUE_SIZE)} / ({waiting(semconv.QUEUE_CAPACITY)} > 0)"
    return [
        Panel(
            number=PANELS["last_score"][1],
            title="Last score",
            description="Time since the last score of any replica, the seven longest. Orange from ten minutes, "
            "red from an hour under traffic: the scorer is down, its queue is empty by mistake, or the judge "
            "refuses everything. Nothing here: it never scored.",
            kind="stat",
            unit="s",
            steps=[(0.0, "green"), (600.0, "orange"), (3_600.0, "red")],
            queries=[Query(f"topk({MOST}, {last})", legend="{{job}}", shape="now")],
            width=8,
            height=4,
        ),
        gauge(
            semconv.BREAKER_STATE,
            number=13,
            title="Circuit breaker of the judge (7 worst)",
            description="Open: the judge failed so often that it is left alone for a while; half open: one call "
            "tries it. Look at the failed evaluations for the reason, then at the provider's status page.",
            by=(JUDGE_MODEL,),
            kind="stat",
            states=BREAKER_STATES,
            width=8,
            height=4,
        ),
        Panel(
            number=12,
            title="Queue fill (7 fullest)",
            description="Waiting traces as a share of what may wait: orange from 50 %, red from 90 %. At 100 % "
            "new traces are dropped: raise concurrency, or lower the sampling rate until it falls.",
            kind="stat",
            unit="percentunit",
            low=0,
            high=1,
            decimals=0,
            steps=[(0.0, "green"), (0.5, "orange"), (0.9, "red")],
            queries=[Query(f"topk({MOST}, {fill})", legend="{{job}}", shape="now")],
            width=8,
            height=4,
        ),
        latency(
            semconv.EVALUATION_LAG,
            number=PANELS["lag"][1],
            title="Lag behind the runs",
            description="95th percentile of the time from the end of a run to its scores, of the seven slowest "
            f"workflows. Every alert is late by this much; {config.lag_limit_s} s is too long. When it grows "
            "with the queue, the judge is slower than the traffic.",
            width=8,
        ),
        gauge(
            semconv.QUEUE_OLDEST,
            number=23,
            title="Oldest waiting trace (7 oldest)",
            description="Age of the oldest trace in the queue. It grows by a second a second when nothing is "
            "scored: then a worker hangs or the breaker is open.",
            unit="s",
            low=0,
            width=8,
        ),
        latency(
            semconv.EVALUATION_DURATION,
            number=24,
            title="Time to score a trace, p95 (7 slowest workflows)",
            description="Judge calls included. A rise means a slower judge, longer contexts, or retries: "
            "compare calls and tokens below. Concurrency divided by this is the rate a scorer can do.",
            width=8,
        ),
    ]


def _ledger() -> Panel:
    """Return what became of traces: each process's own, and each spool's once, whoever of its scorers tells it."""

    def told(at: str) -> str:
        own = f'{SERIES[semconv.LEDGER]}{{{JOB},{SPOOL}="",{STATE}!="spooled"}}{at}'
        shared = f'max by ({SPOOL}, {STATE}, {REASON}) ({SERIES[semconv.LEDGER]}{{{JOB},{SPOOL}!=""}}{at})'
        return f"sum by ({STATE}, {REASON}) ({own} or {shared})"

    return Panel(
        number=34,
        title="Ledger: what became of offered traces (top 7)",
        description="Every offered trace stands in exactly one line, since the scorer or its spool began. "
        "dropped and failed are losses, with their reason, and so is skipped with expired, evicted or "
        "no_metric; pending that never falls is a scorer that hangs.",
        unit="short",
        queries=[Query(first(told(""), told(" @ end()")), legend=legend_of(STATE, REASON))],
        overrides=[by_pattern(pattern, color=fixed(color)) for pattern, color in GOOD_OR_BAD],
        low=0,
        width=8,
    )


def _signed() -> Panel:
    """Return the share of runs with a sign: the seven largest in the picture."""

    def share(window: str, at: str = "") -> str:
        signed = summed(SERIES[semconv.RUNS_SIGNED], window, (WORKFLOW, SIGN), at=at)
        runs = summed(SERIES[semconv.RUNS], window, (WORKFLOW,), at=at)
        return f"{signed} / {on((WORKFLOW,))} group_left () ({runs} > 0)"

    return Panel(
        number=37,
        title="Runs with a sign (top 7)",
        description="Share of a workflow's runs of which capture was unsure, by sign; any: of those that count as "
        "signed. Their scores may be over a wrong question, answer or evidence. Open such a run in ragtrace ui: "
        "its page says what is unsure, and has the line that settles it. Copy it to the handler.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(first(share("1h"), f"({share(*WHOLE)} > 0)"), legend=legend_of(WORKFLOW, SIGN))],
        custom={"axisSoftMax": 0.1},
        nothing="no run has a sign",
        width=8,
    )


def _losses() -> list[Panel]:
    return [
        gauge(
            semconv.COVERAGE_RATIO,
            number=PANELS["coverage"][1],
            title="Coverage: drawn traces that were scored (7 lowest)",
            description="What is missing here is missing from every mean, and not at random: hard answers time "
            "out more often. Below 95 % read the ledger beside it before the trend.",
            unit="percentunit",
            by=(WORKFLOW,),
            low=0,
            high=1,
            how="min",
            width=8,
        ),
        _ledger(),
        counted(
            semconv.TRACES,
            number=32,
            title="Captured traces an hour by decision (top 7)",
            description="What the scorer decided about each trace, counted once. dropped is a loss with its "
            "reason; skipped is sampling and no loss. If sampled falls to nothing, every board is blind.",
            by=(label(semconv.DECISION), REASON),
            width=8,
        ),
        counted(
            semconv.WEIGHT_CAPPED,
            number=35,
            title="Weights at the cap an hour (7 workflows)",
            description="Scores whose weight was cut: their means are biased a little towards what is drawn "
            "often. More than a few: raise the floor of the sampling rate.",
            by=(WORKFLOW,),
            width=8,
        ),
        counted(
            semconv.INTERNAL_LOSSES,
            number=36,
            title="Swallowed errors an hour by place (top 7)",
            description="Errors inside ragtrace that were kept from the application, by place. Any steady "
            "number is a defect: the log has the first of each; please report it.",
            by=(label(semconv.SITE),),
            width=8,
        ),
        _signed(),
    ]


def _judge(config: Config) -> list[Panel]:
    by = (METRIC, JUDGE_MODEL)
    failed = summed(SERIES[semconv.EVALUATIONS], WHOLE[0], (*by, REASON), f'{JOB},{OUTCOME}="error"', WHOLE[1])
    return [
        Panel(
            number=PANELS["judge_errors"][1],
            title="Failed evaluations",
            description="Share of each judge's results that are errors, by reason, the seven most frequent. The "
            f"answers that fail are no random sample: above {config.error_share:.0%} the means are biased. "
            "judge_refused and judge_invalid: look at the prompt or the model; judge_timeout and "
            "judge_rate_limited: at limits and the budget.",
            unit="percentunit",
            low=0,
            high=1,
            queries=[
                Query(
                    first(failed_share("1h", by, (REASON,)), failed), legend=legend_of(METRIC, REASON, JUDGE_MODEL)
                )
            ],
            custom={"axisSoftMax": 0.1},
        ),
        counted(
            semconv.EVALUATIONS,
            number=42,
            title="Results an hour by outcome (top 7)",
            description="ok, na (the metric does not apply, see the reason), error and skipped. Much na: the "
            "input of a metric is not captured; see the reason's name in the docs.",
            by=(OUTCOME, REASON),
        ),
        counted(
            semconv.JUDGE_CALLS,
            number=43,
            title="Judge calls an hour (top 7)",
            description="Calls by judge and outcome. Calls that rise while scores do not are retries: look at "
            "the provider's rate limit and at the breaker.",
            by=(OUTCOME, JUDGE_MODEL),
        ),
        counted(
            semconv.JUDGE_TOKENS,
            number=44,
            title="Judge tokens an hour (top 7)",
            description="Input and output tokens of the judge. They are the cost: shorter contexts, fewer "
            "claims or a cheaper judge for the same metric bring them down.",
            by=(JUDGE_MODEL, label(semconv.GEN_AI_TOKEN_TYPE)),
        ),
    ]


def _canaries(config: Config) -> list[Panel]:
    by = (METRIC, CUTOFF, JUDGE_MODEL, JUDGE_VERSION)
    names = {"change": semconv.ANCHOR_MEAN, "lower": semconv.ANCHOR_LOW, "upper": semconv.ANCHOR_HIGH}
    # Three lines each.
    most = f"topk(2, abs(avg by ({', '.join(by)}) ({SERIES[semconv.ANCHOR_MEAN]}{{{JOB}}} @ end())))"
    return [
        gauge(
            semconv.CANARY_GAP,
            number=PANELS["canary_gap"][1],
            title="Canary gap",
            description="The seven largest: what a judge gives answers with instructions to it beyond the same "
            f"answers without. Red from {config.canary_gap:g}: it obeys what it reads. Distrust judged metrics, "
            "look at its model and prompt version.",
            by=(JUDGE_MODEL,),
            steps=[(0.0, "transparent"), (config.canary_gap, "red")],
            custom={"axisSoftMax": 1.5 * config.canary_gap, "thresholdsStyle": {"mode": "line"}},
            nothing="no canaries",
            width=8,
        ),
        Panel(
            number=62,
            title="Change of the judge on the same runs (2 largest)",
            description="Mean score of the anchors now minus their reference, with its 95 % interval. An "
            "interval that leaves 0 is a judge that changed behind the same name: a drop of that size is no "
            "drop of the answers.",
            decimals=3,
            queries=[
                Query(f"{gauge_by('avg', name, by)} and {most}", legend=f"{shown} {legend_of(*by)}")
                for shown, name in names.items()
            ],
            overrides=[by_pattern("^(lower|upper) ", custom_lineWidth=1, custom_lineStyle=DASHED)],
            nothing=NO_ANCHORS,
            width=8,
        ),
        gauge(
            semconv.ANCHOR_STATE,
            number=63,
            title="Judge beside its reference (7 worst)",
            description="Alarm: the judge scores the same runs differently than when they were frozen, behind "
            "the same version. Learning: no reference yet, or scores too old. Nothing here: freeze anchors.",
            by=(METRIC, JUDGE_MODEL),
            kind="stat",
            states=ANCHOR_STATES,
            options={"textMode": "value_and_name"},
            nothing=NO_ANCHORS,
            width=8,
        ),
    ]


def _cost() -> list[Panel]:
    spent = summed(SERIES[semconv.EVALUATION_COST_METRIC], "1d", ("job",))
    scored = f"sum by (job) (increase({SERIES[semconv.EVALUATION_DURATION]}_count{{{JOB}}}[1d]))"
    whole = summed(SERIES[semconv.EVALUATION_COST_METRIC], WHOLE[0], ("job",), JOB, WHOLE[1])
    return [
        gauge(
            semconv.BUDGET_REMAINING,
            number=PANELS["budget"][1],
            title="Budget left today",
            description="Dollars and tokens a judge may still spend today, the seven smallest. At 0 judged "
            "metrics stop until midnight UTC and the trends go blind: raise the budget or lower the sampling "
            "rate.",
            unit="currencyUSD",
            by=(JUDGE_MODEL, UNIT),
            how="min",
            overrides=[by_pattern(" token$", unit="short", custom_axisPlacement="right")],
            nothing="no budget is set",
            width=8,
        ),
        counted(
            semconv.EVALUATION_COST_METRIC,
            number=52,
            title="Cost of judging an hour (7 dearest workflows)",
            description="Dollars an hour, as far as prices of the judge are known. If it grows faster than the "
            "traffic, look at the tokens above: longer contexts, more claims or more retries.",
            by=(WORKFLOW,),
            unit="currencyUSD",
            width=8,
        ),
        Panel(
            number=53,
            title="Cost of a scored trace (7 dearest jobs)",
            description="Dollars of the last day divided by its scored traces. Multiply by the traffic to see "
            "what sampling everything would cost.",
            unit="currencyUSD",
            low=0,
            decimals=4,
            queries=[Query(first(f"{spent} / ({scored} > 0)", whole), legend="{{job}}")],
            width=8,
        ),
    ]
