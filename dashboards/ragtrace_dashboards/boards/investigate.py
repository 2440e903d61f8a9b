"""Investigate a drop: from an alert's labels to the traces and to the command that says more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import Panel, Query, Row, Search, band, by_name, by_pattern, by_query, fixed
from ragtrace_dashboards.boards.shared import (
    DASHED,
    LOWER,
    MODEL,
    MOST,
    STACKED,
    UPPER,
    VERDICT_COLORS,
    WHICH,
    WHOLE,
    alone,
    first,
    found_traces,
    latency,
    left_normal,
    nearness,
    one_table,
    recorded,
    several,
    verdict_changes,
)
from ragtrace_dashboards.config import PANELS, duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.expressions import (
    CHOSEN,
    CHOSEN_K,
    CUTOFF,
    HELD,
    IDENTITY,
    JOB,
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    OUTCOME,
    REASON,
    SERIES,
    SERVED,
    VERDICT,
    WORKFLOW,
    Sample,
    baseline_of,
    bound,
    label,
    legend_of,
    on,
    summed,
)
from ragtrace_dashboards.missing import Missing, still_missing, whatever_is_missing

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

SLICES = {
    "workflow": WORKFLOW,
    "model": MODEL,
    "judge version": JUDGE_VERSION,
    "judge model": JUDGE_MODEL,
    "K": CUTOFF,
}
"""Labels by which the board can be sliced, by the names that its reader chooses from."""

LEAST, MOST_OF_ALL = "at least, whatever is missing", "at most, whatever is missing"
_NOT_WATCHED = "not recorded: no alert watches this metric, or the recording rules are not loaded"
_ARM_COLORS = {"fast": "orange", "day": "blue", "week": "purple"}
_PASSAGES = f"span.{semconv.RETRIEVAL_DOCUMENT_COUNT}"
_RATE = "$__rate_interval"
_OPERATION = label(semconv.GEN_AI_OPERATION_NAME)


def rows(config: Config) -> list[Row]:
    """Return the rows in the order of the runbook's questions."""
    return [
        Row(10, "1. What happened, since when, and is it real?", _what(config)),
        Row(50, "2. Which answers? Read five", _answers()),
        Row(70, "3. At which stage, and in which part of the traffic?", _where(config)),
        Row(30, "4. Did the measuring change?", _measuring()),
        Row(80, "5. Retrieval and reranking", _retrieval(), is_collapsed=True),
        Row(60, "6. The application", _application(), is_collapsed=True),
    ]


def _what(config: Config) -> list[Panel]:
    return [_trend(config), _command(config), _change_time(config), _drops(config), _n_eff(config)]


def _worst(config: Config) -> str:
    return f"topk(1, {nearness(config, CHOSEN_K, '@ end()')})"


def _trend(config: Config) -> Panel:
    sample = Sample(window="$window", where=CHOSEN_K)
    missing = Missing(window="$window", where=CHOSEN)  # a run is due once, whatever the K
    whole = Sample(window=WHOLE[0], where=CHOSEN_K, at=WHOLE[1])
    ends = {LOWER: bound(sample, "-"), UPPER: bound(sample, "+")}
    bounds = {
        LEAST: whatever_is_missing(sample, missing, "-"),
        MOST_OF_ALL: whatever_is_missing(sample, missing, "+"),
    }
    several_lines = f"(count({sample.mean}) > 1)"
    return Panel(
        number=PANELS["investigate"][1],
        title="$metric: mean, 95 % band, and in grey whatever is missing",
        description="The two most scored series. The alert asks whether the mean left normal (dashed, green). "
        "Where one line is left, it has its 95 % band, and in grey the bounds of the mean of all runs whatever "
        "the missing ones would score. A blue mark is a release: a drop that begins at one has its cause there. "
        "If the band is wider than the drop, lengthen the window.",
        decimals=2,
        queries=[
            Query(first(sample.mean, whole.sum(semconv.SCORE_N), most=2), legend=f"mean {WHICH}", name="mean"),
            *(Query(alone(expr, sample.mean), legend=shown, name=shown[:5]) for shown, expr in ends.items()),
            *(
                Query(f"topk(1, {expr}) unless on () {several_lines}", legend=shown, name=shown[3:8].strip(" ,"))
                for shown, expr in bounds.items()
            ),
            Query(f"{recorded('normal_mean', CHOSEN_K)} and {_worst(config)}", legend="normal", name="normal"),
        ],
        overrides=[
            *band(LOWER, UPPER),
            *band(LEAST, MOST_OF_ALL, color="text", opacity=6),
            by_query("mean", color={"fixedColor": "blue", "mode": "shades"}),
            by_query("normal", color=fixed("green"), custom_lineStyle=DASHED, custom_lineWidth=2),
        ],
        width=15,
        height=10,
    )


def _command(config: Config) -> Panel:
    since = duration(config.day_window_s)
    return Panel(
        number=13,
        title="The command that says more",
        description="Run it where the scorer's store is: it names what fell, since when, the stage, the part of "
        "the traffic, and the traces to read. The labels are those chosen above.",
        kind="text",
        queries=[],
        options={
            "content": "```\nragtrace investigate --since "
            f"{since} \\\n  --metric '${{metric:text}}' --workflow '${{workflow:text}}'\n"
            "ragtrace worst --metric '${metric:text}'\n```\n\nRun it on the host that has the scorer's "
            "store. Leave out `--workflow` for all."
        },
        width=9,
        height=5,
    )


def _change_time(config: Config) -> Panel:
    since = f"{left_normal(config, CHOSEN)} and {on(HELD)} {nearness(config, CHOSEN)} > 1"
    return Panel(
        number=12,
        title="Change began about",
        description="When the series that fire left their normal, the seven earliest: the last time the drop of "
        f"{duration(config.fast_window_s)} was below half of the drop that fires. Look for a release, an index "
        "build or a judge change shortly before.",
        kind="stat",
        unit="time:ddd D MMM HH:mm",
        steps=[(0.0, "text")],
        options={"textMode": "value_and_name", "wideLayout": False},
        queries=[Query(f"bottomk({MOST}, 1000 * ({since}))", legend=WHICH, shape="now")],
        nothing="no drift alert fires",
        width=9,
        height=5,
    )


def _drops(config: Config) -> Panel:
    queries, colors = [], []
    for arm in arms(config):
        window = duration(arm.window_s)
        for name, shown in (("drift_drop", "drop"), ("drift_limit", "fires at")):
            expr = f"{recorded(name, CHOSEN_K, arm.name)} and {_worst(config)}"
            queries.append(Query(expr, legend=f"{window} {shown}"))
        colors.append(by_pattern(f"^{window} ", color=fixed(_ARM_COLORS[arm.name])))
    return Panel(
        number=PANELS["drop"][1],
        title="Drop below normal, and the drop that fires",
        description="For each window of the series nearest to its alarm, how far its mean lies on the bad side "
        "of normal, and where it fires (dashed). Act when a line passes its dashed one. A short peak of the "
        "shortest window alone is noise.",
        decimals=2,
        queries=queries,
        overrides=[*colors, by_pattern(" fires at$", custom_lineStyle=DASHED, custom_lineWidth=1)],
        nothing=_NOT_WATCHED,
        width=15,
    )


def _n_eff(config: Config) -> Panel:
    sample = Sample(window="$window", where=CHOSEN_K)
    whole = Sample(window=WHOLE[0], where=CHOSEN_K, at=WHOLE[1])
    return Panel(
        number=PANELS["n_eff"][1],
        title=f"Effective scores in the window (alerts need {config.min_n_eff})",
        description="Scores after the price of unequal weights, of the seven most scored. Below "
        f"{config.min_n_eff}, the dashed red line, no drift alert fires: raise the sampling rate or the judge's "
        "budget, or look at a longer window.",
        unit="short",
        low=0,
        steps=[(0.0, "red"), (config.min_n_eff, "transparent")],
        custom={"thresholdsStyle": {"mode": "dashed"}},
        queries=[Query(first(sample.n_eff, whole.sum(semconv.SCORE_N)), legend=WHICH)],
        width=9,
    )


def _answers() -> list[Panel]:
    bucket = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket"
    return [
        found_traces(
            f'{{ event.{semconv.GEN_AI_EVALUATION_SCORE_LABEL} = "fail" && '
            f'event.{semconv.GEN_AI_EVALUATION_NAME} =~ "($metric).*" && '
            f'span.{semconv.GEN_AI_WORKFLOW_NAME} =~ "$workflow" }}',
            number=53,
            title="Recent answers with a bad $metric",
            description="Click a trace. Read five: what was retrieved, what reached the prompt, what the answer "
            "claims. The same gap in three of five is your cause; five different ones are noise or a change of "
            "the judge.",
        ),
        Panel(
            number=51,
            title="Distribution of $metric",
            description="Unweighted scores as they came, forced ones and those of every judge too. A cloud that "
            "moves is a change of everything, a new line at the bad end one kind of question. A point is a "
            "trace: click it.",
            kind="heatmap",
            queries=[
                Query(
                    f"sum by (le) (increase({bucket}{{{CHOSEN}}}[$__rate_interval]))",
                    legend="{{le}}",
                    shape="buckets",
                    has_exemplars=True,
                )
            ],
            height=9,
        ),
    ]


def _where(config: Config) -> list[Panel]:
    return [
        _verdicts(),
        verdict_changes(
            SERVED,
            number=PANELS["verdicts"][1],
            title="Verdicts before and now (7 that grew most)",
            width=12,
            height=10,
        ),
        _slice_trend(),
        _slice_table(config),
    ]


def _verdicts() -> Panel:
    total = summed(SERIES[semconv.DIAGNOSIS_W], "$window", (), SERVED)
    whole = summed(SERIES[semconv.DIAGNOSIS_W], WHOLE[0], (VERDICT,), f'{SERVED},{VERDICT}!="ok"', WHOLE[1])

    def share(matcher: str) -> str:
        part = summed(SERIES[semconv.DIAGNOSIS_W], "$window", (VERDICT,), f"{SERVED},{VERDICT}{matcher}")
        return f"({part} > 0) / on () group_left () ({total} > 0)"

    return Panel(
        number=71,
        title="Where answers fail: verdicts on runs (7 most frequent)",
        description="Weighted share of the chosen workflows' runs by verdict, without ok. A colour that grows "
        "names the stage: blue is retrieval, purple the reranker, yellow the prompt, orange and red the model. "
        "Grey is undetermined: read the share without a score before you trust the rest.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(first(share('!="ok"'), whole), legend=legend_of(VERDICT))],
        custom={"fillOpacity": 70, "lineWidth": 0, "axisSoftMax": 0.5, "stacking": STACKED["stacking"]},
        overrides=[by_name(verdict, color=fixed(color)) for verdict, color in VERDICT_COLORS.items()],
        height=10,
    )


def _slice_trend() -> Panel:
    by = (*IDENTITY, "$slice")
    sample = Sample(window="$window", where=CHOSEN_K, by=by)
    whole = Sample(window=WHOLE[0], where=CHOSEN_K, by=by, at=WHOLE[1])
    return Panel(
        number=41,
        title="$metric by $slice (7 most scored)",
        description="The weighted mean of each slice on one axis; choose the label above, and all workflows to "
        "compare them. A drop in one slice alone points at what that slice has of its own: its model, its "
        "prompt, its corpus.",
        decimals=2,
        queries=[Query(first(sample.mean, whole.sum(semconv.SCORE_N)), legend=f"{{{{$slice}}}} {WHICH}")],
    )


def _slice_table(config: Config) -> Panel:
    sample = Sample(window=duration(config.day_window_s), where=CHOSEN_K, by=(*IDENTITY, "$slice"))
    base = baseline_of(sample, config)
    columns = {
        "mean": sample.mean,
        "lower": bound(sample, "-"),
        "upper": bound(sample, "+"),
        "before": base.mean,
        "change": f"{sample.mean} - {base.mean}",
        "n": sample.n_eff,
    }
    # Grafana fills variables in values of a transformation and not in keys, so every label is a column.
    return Panel(
        number=42,
        title="$metric by $slice: last day and its own baseline (7 most scored)",
        description="Mean with its 95 % interval, the mean of the baseline, and the change, whose sign is that "
        "of the score. Act on a slice whose interval leaves its baseline; one of few scores moves without a "
        "cause.",
        kind="table",
        decimals=3,
        queries=[
            Query(first(expr, sample.sum(semconv.SCORE_N)), name=ref, shape="table")
            for ref, expr in columns.items()
        ],
        transformations=one_table(
            {it: shown for shown, it in SLICES.items()} | {f"Value #{it}": it for it in columns}, sort="n"
        ),
        overrides=[
            by_pattern(".", noValue="-"),
            *(by_name(it, unit="string") for it in SLICES),
            by_name("n", decimals=0),
        ],
    )


def _measuring() -> list[Panel]:
    missing = still_missing("$window", (METRIC, OUTCOME, REASON), CHOSEN)
    whole = still_missing(WHOLE[0], (METRIC, OUTCOME, REASON), CHOSEN, WHOLE[1])
    due = summed(SERIES[semconv.SCORE_DUE_W], "$window", (METRIC,), CHOSEN)
    judged = (JUDGE_MODEL, JUDGE_VERSION)
    scored, ever = (
        summed(SERIES[semconv.SCORE_N], window, judged, CHOSEN, at) for window, at in (("1h", ""), WHOLE)
    )
    return [
        Panel(
            number=PANELS["judge_version"][1],
            title="Scores by judge and version",
            description="Which judge and which prompt version scored, an hour, the seven largest. If the colour "
            "changes where the mean drops, the ruler changed: freeze a new baseline before you look for a cause "
            "in the application.",
            unit="short",
            low=0,
            queries=[Query(first(scored, ever), legend=legend_of(*judged))],
            custom=STACKED,
            width=8,
        ),
        Panel(
            number=37,
            title="System or judge? The drop, and the judge's part (the worst 3 series)",
            description="The drop of a day, and what the judge's own change on the same runs (anchors) explains "
            "of it. Where both lines lie together, the judge caused the drop: freeze a new baseline or mend the "
            "judge.",
            decimals=2,
            queries=[
                Query(f"{recorded('drift_drop', CHOSEN_K)} and {_three()}", legend=f"drop {WHICH}"),
                Query(
                    f"ragtrace:drift_judge_part{{{CHOSEN_K}}} and {_three()}",
                    legend=f"judge's part {WHICH}",
                ),
            ],
            overrides=[by_pattern("^judge's part", custom_lineStyle=DASHED)],
            nothing=_NOT_WATCHED,
            width=8,
        ),
        Panel(
            number=PANELS["missing"][1],
            title="Share without a score, by reason",
            description="Weighted share of the runs that should have a score and have none, the seven most "
            "frequent reasons. The mean says nothing of them: when it rises while abstained rises, bad answers "
            "have become refusals. Read such answers.",
            unit="percentunit",
            low=0,
            high=1,
            queries=[
                Query(
                    f"{first(f'({missing} > 0) / {on((METRIC,))} group_left () ({due} > 0)', whole)}",
                    legend=legend_of(OUTCOME, REASON),
                )
            ],
            custom={"fillOpacity": 40, "lineWidth": 0, "axisSoftMax": 0.3, "stacking": STACKED["stacking"]},
            width=8,
        ),
    ]


def _three() -> str:
    return f"topk(3, {recorded('drift_drop', CHOSEN_K, at='@ end()')})"


def _retrieval() -> list[Panel]:
    by, mean = (WORKFLOW,), "the 7 lowest means in the picture"
    empty, every = (
        summed(name, "$window", by, SERVED)
        for name in (SERIES[semconv.RETRIEVAL_EMPTY], f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count")
    )
    most = summed(SERIES[semconv.RETRIEVAL_EMPTY], WHOLE[0], by, SERVED, WHOLE[1])
    return [
        several(
            ("context_recall", "pool_recall4_at_k", "n_recall4_at_k", "n_recall5_at_k", "proc_at_k"),
            number=81,
            title="Was it found? Recall and ceiling (bottom 7)",
            description="What retrieval brought of the needed passages, and PROC, the best that any selection "
            f"could make of it: {mean}. Down: mend the index, the embedding, the filters or the number of "
            "candidates; a reranker cannot.",
            width=8,
            height=9,
        ),
        several(
            (
                "selection_efficiency_at_k",
                "pct_proc_at_k",
                "ra_nwg_at_k",
                "context_utility_at_k",
                "ndcg_at_k",
                "mrr",
            ),
            number=82,
            title="Was the best chosen? Selection and order (bottom 7)",
            description=f"What selection made of the pool, and how early the useful passages come: {mean}. Down "
            "beside a steady pool is the reranker or the cut: its model, its input length, or top n.",
            width=8,
            height=9,
        ),
        Panel(
            number=PANELS["empty_retrieval"][1],
            title="Empty retrievals",
            description="Share of runs that searched and found no passage, of the seven workflows with most. A "
            "jump is an index that is gone, a filter that matches nothing or another embedding model; no prompt "
            "mends it. Open the traces beside it.",
            unit="percentunit",
            low=0,
            high=1,
            queries=[Query(first(f"{empty} / ({every} > 0)", most), legend=legend_of(*by))],
            width=8,
            height=9,
        ),
        found_traces(
            f"{{ {_PASSAGES} = 0 }}",
            number=85,
            title="Recent searches that found nothing",
            description="Open some and read the question: a wrong filter, another language, or a subject that "
            "the corpus lacks. Add the documents or teach the application to say so.",
        ),
        Panel(
            number=83,
            title="Passages retrieved a search",
            description="Median and tenth percentile of passages a search brought, from Tempo's spans (TraceQL "
            "metrics must be on in Tempo). A fall means a filter or a score threshold that cuts too much.",
            unit="short",
            low=0,
            queries=[Search(f"{{ {_PASSAGES} >= 0 }} | quantile_over_time({_PASSAGES}, .1, .5)")],
            height=9,
        ),
        Panel(
            number=86,
            title="Time of search, embedding and rerank, p95",
            description="Where a step begins with the drop, another index, filter or model answers: compare "
            "with the releases. Search holds the embedding of the question.",
            unit="s",
            low=0,
            queries=[
                Query(
                    f"histogram_quantile(0.95, sum by (le) (rate({SERIES[name]}_bucket{{{where}}}[{_RATE}])))",
                    legend=shown,
                )
                for shown, name, where in (
                    (
                        "search",
                        semconv.CLIENT_OPERATION_DURATION,
                        f'{JOB},{_OPERATION}="{semconv.OPERATION_RETRIEVAL}"',
                    ),
                    ("embedding", semconv.CLIENT_EMBEDDINGS_DURATION, JOB),
                    ("rerank", semconv.RERANK_DURATION, JOB),
                )
            ],
            width=24,
            height=7,
        ),
    ]


def _application() -> list[Panel]:
    kind = label(semconv.ERROR_TYPE)
    runs = f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count"
    now, ever = (summed(runs, window, (WORKFLOW, kind), SERVED, at) for window, at in (("1h", ""), WHOLE))
    adjusted, low, high = (
        f"{SERIES[it]}{{{CHOSEN}}}" for it in (semconv.ADJUSTED_MEAN, semconv.ADJUSTED_LOW, semconv.ADJUSTED_HIGH)
    )
    asked = Sample(window="1d")
    ever_scored = Sample(window=WHOLE[0], at=WHOLE[1]).sum(semconv.SCORE_N)
    return [
        latency(
            semconv.INVOKE_WORKFLOW_DURATION,
            number=61,
            title="Time of a run, p95 (7 slowest workflows)",
            description="What users wait. A step at the time of the drop means another path through the "
            "application: another model, a smaller K, a cache, a timeout that cuts the reranker. Diamonds are "
            "traces.",
            where=SERVED,
            width=8,
        ),
        Panel(
            number=62,
            title="Runs an hour by error (top 7)",
            description="Runs of the application, failed ones by type of error. Fewer runs or another mix of "
            "workflows moves a mean without any fault: compare the slices above.",
            unit="short",
            low=0,
            queries=[Query(first(now, ever), legend=legend_of(WORKFLOW, kind))],
            custom=STACKED,
            width=8,
        ),
        Panel(
            number=26,
            title="Questions or answers? (2 most scored)",
            description="The mean of a day, and what the same answers give at the mix of questions of before, "
            "with its 95 % band where one line is left. If the first falls and the second does not, people ask "
            "other questions: look at the topics, not at the release.",
            decimals=2,
            queries=[
                Query(f"{asked.mean} and topk(2, {ever_scored})", legend=f"as asked {WHICH}"),
                Query(f"{adjusted} and topk(2, {adjusted} @ end())", legend=f"same questions as before {WHICH}"),
                Query(alone(low, adjusted), legend=LOWER, name="lower"),
                Query(alone(high, adjusted), legend=UPPER, name="upper"),
            ],
            overrides=band(LOWER, UPPER),
            nothing="no scores, or fewer than 500 runs yet",
            width=8,
        ),
    ]
