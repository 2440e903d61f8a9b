"""RAG quality overview: means, trends, slices, cost and the scorer's health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards import failures, operations, other_means, people, scores
from ragtrace_dashboards.boards.panels import Panel, Query, Row, band
from ragtrace_dashboards.config import PANELS, duration
from ragtrace_dashboards.expressions import CHOSEN, SERIES, WORKFLOW, Sample, label, legend_of, summed

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

RECALLS = ("context_recall", "pool_recall4_at_k", "n_recall4_at_k", "n_recall5_at_k")
MODEL = label(semconv.GEN_AI_REQUEST_MODEL)
SETS = ("ra_nwg_at_k", "proc_at_k", "pct_proc_at_k", "precision4_at_k")


def rows(config: Config) -> list[Row]:
    """Return the rows in their fixed order."""
    return [
        Row(10, "Is quality OK?", _now(config)),
        Row(20, "Trends", _trends(config)),
        Row(30, "Distribution", [
            scores.distribution(number=31, repeat="metric", width=24),
            scores.quantiles(config, number=32, repeat="metric", width=24, height=9),
        ]),
        Row(40, "Retrieval", _retrieval()),
        Row(50, "Slices by $slice", [scores.by_slice(number=51)]),
        Row(60, "Cost and latency", _cost()),
        Row(70, "Can the board see? Health of the scorer", _health()),
        Row(80, "Traces", [_traces()]),
        Row(90, "What people say", people.panels()),
    ]  # fmt: skip


def _now(config: Config) -> list[Panel]:
    return [
        scores.means(config, number=PANELS["quality"][1]),
        scores.drift_state(number=12, width=12, height=5),
        operations.budget(number=13, kind="stat", width=6, height=5),
        operations.age(number=14, width=6, height=5),
    ]


def _trends(config: Config) -> list[Panel]:
    return [
        scores.trend(
            config,
            number=21,
            title="$metric",
            description="Weighted mean over the window, its 95 % band and the baseline at the picture's right "
            "edge. The paler band holds the mean of all runs, whatever the missing ones scored. Act when "
            "the band leaves the baseline, not when the line does. Several workflows, K or judges have a line each "
            "and no band: choose one above.",
            repeat="metric",
            width=24,
            height=9,
        ),
        scores.low_share(number=PANELS["low_share"][1], repeat="metric", width=24),
        _windows(),
        other_means.both_judges(number=27, width=8, height=9),
        _passes(config),
        failures.verdicts_over_time(number=25, width=12, height=10),
        failures.share_without_a_score(number=26, width=12, height=10),
    ]


def _windows() -> Panel:
    mean = f"{SERIES[semconv.WINDOW_MEAN]}{{{CHOSEN}}}"
    ends = {scores.LOWER: semconv.WINDOW_LOW, scores.UPPER: semconv.WINDOW_HIGH}
    return Panel(
        number=22,
        title="The last hour as each process sees it",
        description="Mean and interval that the scorer computes itself, also of metrics that can be negative and "
        "have no sums. Use it for those and for a first look after a release; it is too short for a verdict. "
        "Choose one metric and workflow for the 95 % band.",
        decimals=3,
        queries=[
            Query(mean, legend=f"{scores.EACH} {legend_of(MODEL, 'instance')}"),
            *(
                Query(f"{SERIES[name]}{{{CHOSEN}}} and on () (count({mean}) == 1)", legend=shown, name=shown[:5])
                for shown, name in ends.items()
            ),
        ],
        overrides=band(scores.LOWER, scores.UPPER),
        width=8,
        height=9,
    )


def _passes(config: Config) -> Panel:
    recent = Sample(window=duration(config.fast_window_s))
    return Panel(
        number=23,
        title=f"Share that passes, last {recent.window}",
        description=f"Weighted share of the last scores on the good side of the metric's threshold, from "
        f"{config.min_n_eff} effective scores on. Compare it with the promise made to users. With so few it moves "
        "by tenths: the panel above has the share over the window, with its band.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(f"1 - {recent.low_share} and ({recent.n_eff}) >= {config.min_n_eff}", legend=scores.EACH)],
        width=8,
        height=9,
        nothing=f"fewer than {config.min_n_eff} effective scores in {recent.window}",
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
            height=10,
        ),
        scores.several(
            SETS,
            number=42,
            title="Was the best chosen? Set-based metrics",
            description="RA-nWG, PROC (what the pool allowed) and %PROC (what the reranker made of it). PROC down: "
            "retrieval. %PROC down: reranking. Follow the link to Retrieval and reranking.",
            width=8,
            height=10,
        ),
        scores.empty_share(number=43, width=8, height=10),
        scores.pool_size(number=44, width=24),
    ]


def _cost() -> list[Panel]:
    return [_run_time(), _call_time(), _tokens(), operations.cost(number=64), _scoring_time()]


def _run_time() -> Panel:
    return operations.latency(
        semconv.INVOKE_WORKFLOW_DURATION,
        number=61,
        title="Time of a run",
        description="What users wait. Diamonds are single runs: open a slow one in Tempo and look whether "
        "search, rerank or the model took the time.",
        width=8,
    )


def _call_time() -> Panel:
    return operations.latency(
        semconv.CLIENT_INFERENCE_DURATION,
        number=62,
        title="Time of a model call",
        description="Time of single calls of the application's models. A rise with unchanged tokens is the "
        "provider; with more tokens it is the prompt or the passages.",
        by=(MODEL,),
        width=8,
    )


def _tokens() -> Panel:
    kinds = {
        "input": semconv.CLIENT_INPUT_TOKENS,
        "output": semconv.CLIENT_OUTPUT_TOKENS,
        "read from cache": semconv.CLIENT_CACHE_READ_TOKENS,
        "written to cache": semconv.CLIENT_CACHE_WRITE_TOKENS,
        "reasoning": semconv.CLIENT_REASONING_TOKENS,
    }
    return Panel(
        number=63,
        title="Tokens of the application an hour",
        description="Tokens by model. Input holds what was read from the cache, output holds reasoning. A step in "
        "input tokens is usually a larger K or longer chunks: check whether the quality above paid for it.",
        unit="short",
        low=0,
        queries=[
            Query(summed(SERIES[name], "1h", (MODEL,)), legend=f"{legend_of(MODEL)} {kind}")
            for kind, name in kinds.items()
        ],
        width=8,
    )


def _scoring_time() -> Panel:
    return operations.latency(
        semconv.EVALUATION_DURATION,
        number=65,
        title="Time to score a trace",
        description="What scoring one trace takes, judge calls included. It bounds how many traces a scorer "
        "can do: concurrency divided by this is the rate.",
        by=(WORKFLOW,),
    )


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
        f'{{ event.{label_} = "fail" && event.{name} =~ "($metric).*" }}',
        number=81,
        title="Recent answers that failed",
        description="Traces with a score on the failing side of its threshold. Read five before changing anything: "
        "the passages that were retrieved, what the prompt got, and what the answer claims.",
    )
