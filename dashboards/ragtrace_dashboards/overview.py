"""RAG quality overview: is quality all right, since when not, in which slice, at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards import operations, scores
from ragtrace_dashboards.config import PANELS
from ragtrace_dashboards.expressions import CHOSEN, CUTOFF, JOB, METRIC, SERIES, WORKFLOW, label
from ragtrace_dashboards.panels import NO_LEGEND, Panel, Query, Row, Search, by_pattern

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

RECALLS = ("context_recall", "pool_recall4_at_k", "n_recall4_at_k", "n_recall5_at_k")
SETS = ("ra_nwg_at_k", "proc_at_k", "pct_proc_at_k", "precision4_at_k")


def rows(config: Config) -> list[Row]:
    """Return the rows in their fixed order."""
    return [
        Row(number=10, title="Is quality OK?", panels=_now(config)),
        Row(number=20, title="Trends", panels=_trends(config)),
        Row(number=30, title="Distribution", panels=[
            scores.distribution(number=31, width=12), scores.quantiles(number=32, width=12),
        ]),
        Row(number=40, title="Retrieval", panels=_retrieval()),
        Row(number=50, title="Slices by $slice", panels=[scores.by_slice(number=51)]),
        Row(number=60, title="Cost and latency", panels=_cost()),
        Row(number=70, title="Can the board see? Health of the scorer", panels=_health()),
        Row(number=80, title="Traces", panels=[_traces()]),
    ]  # fmt: skip


def _now(config: Config) -> list[Panel]:
    return [
        scores.means(config, number=PANELS["quality"][1], width=14, height=10),
        scores.drift_state(number=12, width=10, height=5),
        operations.budget(number=13, kind="stat", width=5, height=5),
        operations.age(number=14, width=5, height=5),
    ]


def _trends(config: Config) -> list[Panel]:
    return [
        scores.trend(
            config,
            number=21,
            title="$metric",
            description="Weighted mean over the window, its 95 % band and the baseline at the picture's right "
            "edge. Act when the band leaves the baseline, not when the line does. Of a metric at several K choose "
            "one above, or they are averaged.",
            repeat="metric",
            width=24,
        ),
        scores.low_share(number=PANELS["low_share"][1], repeat="metric", width=24),
        _windows(),
        _passes(),
    ]


def _windows() -> Panel:
    gauges = {"mean": semconv.WINDOW_MEAN, "low": semconv.WINDOW_LOW, "high": semconv.WINDOW_HIGH}
    return Panel(
        number=22,
        title="The last hour as each process sees it",
        description="Mean and interval that the scorer computes itself, also of metrics that can be negative and "
        "have no sums. Use it for those and for a first look after a release; it is too short for a verdict.",
        kind="timeseries",
        unit="none",
        decimals=3,
        queries=[
            Query(
                expr=f"avg by ({METRIC}, {CUTOFF}) ({SERIES[name]}{{{CHOSEN}}})",
                legend=f"{shown} {{{{{METRIC}}}}} {{{{{CUTOFF}}}}}",
            )
            for shown, name in gauges.items()
        ],
        overrides=[by_pattern("^(low|high) ", custom_lineWidth=0.5, custom_hideFrom=NO_LEGEND)],
    )


def _passes() -> Panel:
    return Panel(
        number=23,
        title="Share that passes, last hour",
        description="Weighted share of the last hour's scores on the good side of the metric's threshold. Compare "
        "it with the promise made to users; the low-score alert watches the same share over days.",
        kind="timeseries",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(
                expr=f"avg by ({METRIC}, {CUTOFF}) ({SERIES[semconv.PASS_RATIO]}{{{CHOSEN}}})",
                legend=f"{{{{{METRIC}}}}} {{{{{CUTOFF}}}}}",
            )
        ],
    )


def _retrieval() -> list[Panel]:
    return [
        scores.several(
            RECALLS,
            number=41,
            title="Was it found? Recall",
            description="Share of what an answer needs that retrieval brought, by K. A fall here explains a fall "
            "of faithfulness and is mended in the index, the embedding or the filters.",
            width=8,
        ),
        scores.several(
            SETS,
            number=42,
            title="Was the best chosen? Set-based metrics",
            description="RA-nWG, PROC (what the pool allowed) and %PROC (what the reranker made of it). PROC down: "
            "retrieval. %PROC down: reranking. Follow the link to Retrieval and reranking.",
            width=8,
        ),
        scores.empty_share(number=43, width=8),
        pool_size(number=44),
    ]


def pool_size(*, number: int, width: int = 24) -> Panel:
    """Return the number of retrieved passages by TraceQL: no metric counts them."""
    count = f"span.{semconv.RETRIEVAL_DOCUMENT_COUNT}"
    return Panel(
        number=number,
        title="Passages retrieved a search",
        description="Median and tenth percentile of passages a search brought, from Tempo's spans (TraceQL metrics "
        "must be on in Tempo). A fall means a filter or a score threshold that cuts too much.",
        kind="timeseries",
        unit="short",
        low=0,
        queries=[Search(traceql=f"{{ {count} >= 0 }} | quantile_over_time({count}, .1, .5)")],
        width=width,
    )


def _cost() -> list[Panel]:
    model = label(semconv.GEN_AI_REQUEST_MODEL)
    kind = label(semconv.GEN_AI_TOKEN_TYPE)
    tokens = f"{SERIES[semconv.CLIENT_TOKEN_USAGE]}_sum"
    return [
        operations.latency(
            semconv.INVOKE_WORKFLOW_DURATION,
            number=61,
            title="Time of a run",
            description="What users wait. Diamonds are single runs: open a slow one in Tempo and look whether "
            "search, rerank or the model took the time.",
            width=8,
        ),
        operations.latency(
            semconv.CLIENT_OPERATION_DURATION,
            number=62,
            title="Time of a model call",
            description="Time of single calls of the application's models. A rise with unchanged tokens is the "
            "provider; with more tokens it is the prompt or the passages.",
            by=(model,),
            width=8,
        ),
        Panel(
            number=63,
            title="Tokens of the application an hour",
            description="Input and output tokens by model. A step in input tokens is usually a larger K or longer "
            "chunks: check whether the quality above paid for it.",
            kind="timeseries",
            unit="short",
            low=0,
            queries=[
                Query(
                    expr=f"sum by ({model}, {kind}) (increase({tokens}{{{JOB}}}[1h]))",
                    legend=f"{{{{{model}}}}} {{{{{kind}}}}}",
                )
            ],
            width=8,
        ),
        operations.cost(number=64),
        operations.latency(
            semconv.EVALUATION_DURATION,
            number=65,
            title="Time to score a trace",
            description="What scoring one trace takes, judge calls included. It bounds how many traces a scorer "
            "can do: concurrency divided by this is the rate.",
            by=(WORKFLOW,),
        ),
    ]


def _health() -> list[Panel]:
    return [
        operations.queue(number=71, width=8),
        operations.lag(number=72, width=8),
        operations.decisions(number=73, width=8),
        operations.judge_errors(number=74, width=12),
        operations.sampled_share(number=75, width=12),
    ]


def _traces() -> Panel:
    label_, name = semconv.GEN_AI_EVALUATION_SCORE_LABEL, semconv.GEN_AI_EVALUATION_NAME
    return scores.bad_answers(
        number=81,
        title="Recent answers that failed",
        traceql=f'{{ event.{label_} = "fail" && event.{name} =~ "($metric).*" }}',
        description="Traces with a score on the failing side of its threshold. Read five before changing anything: "
        "the passages that were retrieved, what the prompt got, and what the answer claims.",
    )
