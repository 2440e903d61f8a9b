"""RAG quality overview: is it good now, since when, where, can I trust it; on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import (
    NOT_RECORDED,
    Panel,
    Query,
    Row,
    band,
    by_name,
    by_pattern,
    by_query,
    fixed,
)
from ragtrace_dashboards.boards.shared import (
    DASHED,
    LOWER,
    MODEL,
    UPPER,
    WHOLE,
    alone,
    colored,
    failed_share,
    first,
    latency,
    left_normal,
    nearness,
    one_table,
    recorded,
    verdict_changes,
)
from ragtrace_dashboards.config import INVESTIGATE, PANELS, duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.expressions import (
    CUTOFF,
    HELD,
    IDENTITY,
    JOB,
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    SERIES,
    SERVED,
    VERDICT,
    WHOSE,
    WORKFLOW,
    Sample,
    baseline_of,
    bound,
    gauge_by,
    label,
    legend_of,
    on,
    summed,
    watching,
    wilson_bound,
)
from ragtrace_dashboards.missing import Missing, whatever_is_missing

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import Json

EACH = legend_of(METRIC, WORKFLOW, CUTOFF)
_NOTHING_FIRES = "nothing fires"
_NEAR = "% of limit"
_RATED = 10
_OPENED = (
    f"/d/{INVESTIGATE}?var-metric=${{__data.fields.metric}}&var-workflow=${{__data.fields.workflow}}"
    "&${job:queryparam}&${__url_time_range}"
)


def rows(config: Config) -> list[Row]:
    """Return the questions, which fit one screen, and below them what is opened when it is asked for."""
    return [
        Row(10, "", [
            *_answers(config),
            *_trust_in_short(config),
            _metrics(config),
            _worst(config),
            _drops(config),
            verdict_changes(SERVED, number=52, title="3. Where? Verdicts that grew (top 7)", width=8, height=10),
            _slices(config),
            _trust(config),
        ]),
        Row(20, "More about quality: low scores, two judges, people", _more(), is_collapsed=True),
        Row(60, "The application: time and tokens", _application(), is_collapsed=True),
    ]  # fmt: skip


def _worst_firing(config: Config) -> str:
    return f"topk(1, {nearness(config, SERVED)} > 1)"


def _answers(config: Config) -> list[Panel]:
    """Return one value for each of the first three questions."""
    near, fast = nearness(config, SERVED), duration(config.fast_window_s)
    return [
        Panel(
            number=1,
            title="1. Is it good now?",
            description="Watched series whose drop is above the drop that fires, in any window. Green: none. "
            "Red: one or more. Read the first line of the table below and click its metric.",
            kind="stat",
            unit="suffix: worse",
            steps=[(0.0, "green"), (1.0, "red")],
            states=(("all normal", "green"),),
            queries=[Query(f"count({near} > 1) or 0 * count({near})", shape="now")],
            options={"textMode": "value"},
            nothing=NOT_RECORDED,
            width=4,
            height=3,
        ),
        Panel(
            number=2,
            title="2. Since when?",
            description=f"When the worst series left its normal: the last time its drop of {fast} was below half "
            "of the drop that fires. Look for a release, an index build or a new model shortly before.",
            kind="stat",
            unit="time:ddd D MMM HH:mm",
            steps=[(0.0, "text")],
            queries=[
                Query(
                    f"1000 * {left_normal(config, SERVED)} and {on(HELD)} {_worst_firing(config)}",
                    legend=legend_of(METRIC, WORKFLOW),
                    shape="now",
                )
            ],
            options={"textMode": "value"},
            nothing=_NOTHING_FIRES,
            width=4,
            height=3,
        ),
        Panel(
            number=3,
            title="3. Where? Grew by",
            description="The verdict whose share of the runs surely grew, and by how much, in the workflow "
            "where it grew most. It names the stage to look at. Red from 5 % more. The table below has the "
            "others.",
            kind="stat",
            unit="percentunit",
            low=0,
            high=1,
            decimals=0,
            steps=[(0.0, "orange"), (0.05, "red")],
            queries=[
                Query(
                    f"topk(1, {recorded('verdict_grown', SERVED)})",
                    legend=legend_of(WORKFLOW, VERDICT),
                    shape="now",
                )
            ],
            options={"textMode": "value_and_name"},
            nothing="no verdict surely grew",
            width=4,
            height=3,
        ),
    ]


def _trust_in_short(config: Config) -> list[Panel]:
    return [
        Panel(
            number=4,
            title="4. System or judge?",
            description="Who caused the worst drop: the system, the judge, both, or unknown. If it is the "
            "judge, do not look for a cause in the application: open its canaries and anchors on the scorer's "
            "board.",
            kind="stat",
            queries=[
                Query(
                    f"ragtrace:drift_culprit{{{SERVED}}} and {on(IDENTITY)} {_worst_firing(config)}",
                    legend="{{culprit}}",
                    shape="now",
                )
            ],
            steps=[(0.0, "text")],
            options={"textMode": "name"},
            nothing=_NOTHING_FIRES,
            width=4,
            height=3,
        ),
        Panel(
            number=5,
            title="4. Judge errors",
            description="Share of evaluations that failed in the last hour, of the metric with the most. The "
            f"answers that fail are no random sample: orange from {config.error_share / 2:.1%}, red from "
            f"{config.error_share:.0%}, where the means are biased. The scorer's board has the reasons.",
            kind="stat",
            unit="percentunit",
            low=0,
            high=1,
            decimals=1,
            steps=[(0.0, "green"), (config.error_share / 2, "orange"), (config.error_share, "red")],
            queries=[
                Query(
                    f"topk(1, {failed_share('1h', (METRIC,))})",
                    legend=legend_of(METRIC),
                    shape="now",
                )
            ],
            options={"textMode": "value_and_name"},
            width=4,
            height=3,
        ),
        Panel(
            number=6,
            title="4. Canary gap",
            description="Of the judge with the largest: what it gives answers that hold instructions to it "
            f"beyond the same answers without. Red from {config.canary_gap:g}: it obeys what it reads, so "
            "distrust judged metrics.",
            kind="stat",
            decimals=2,
            steps=[(0.0, "green"), (config.canary_gap, "red")],
            queries=[
                Query(
                    f"topk(1, {gauge_by('max', semconv.CANARY_GAP, (JUDGE_MODEL,))})",
                    legend=legend_of(JUDGE_MODEL),
                    shape="now",
                )
            ],
            options={"textMode": "value_and_name"},
            nothing="no canaries",
            width=4,
            height=3,
        ),
    ]


def _metrics(config: Config) -> Panel:
    """Return a table with a row for each watched metric: its series that is nearest to firing, or the largest."""
    near = nearness(config, SERVED)
    mean = recorded("score_mean", SERVED)
    chosen = f"topk by ({METRIC}) (1, {near} or 0 * {mean} - 1)"
    sample = Sample(window=duration(config.day_window_s), where=SERVED)
    # Times 1 below: a result without a name, so that the columns of a row have the same labels.
    columns = {
        "mean": mean,
        "lower": bound(sample, "-"),
        "upper": bound(sample, "+"),
        "normal": recorded("normal_mean", SERVED),
        "drop": recorded("drift_drop", SERVED),
        "limit": recorded("drift_limit", SERVED),
        "near": near,
        "n": recorded("score_n_eff", SERVED),
    }
    headings = {"lower": "from", "upper": "to", "near": _NEAR}
    shown = {METRIC: "metric", WORKFLOW: "workflow"} | {f"Value #{it}": headings.get(it, it) for it in columns}
    opened: list[Json] = [{"title": "Investigate ${__data.fields.metric}", "url": _OPENED, "targetBlank": False}]
    windows = ", ".join(duration(it.window_s) for it in arms(config))
    return Panel(
        number=PANELS["quality"][1],
        title="1. Each metric in its worst workflow, last day",
        description="Mean, its 95 % interval, normal (the baseline), drop and the drop at which an alert fires "
        f"(limit), over {sample.window}, from n effective scores. % of limit: drop / limit, the largest of the "
        f"windows {windows}; orange from 50 %, red from 100 %, where the alert fires. Click a metric to open it. "
        f"Below {config.min_n_eff} effective scores nothing fires.",
        kind="table",
        decimals=3,
        queries=[Query(f"({expr}) * 1 and {chosen}", name=ref, shape="table") for ref, expr in columns.items()],
        transformations=one_table(shown, sort=_NEAR),
        overrides=[
            by_pattern(".", noValue="-"),
            by_name("metric", unit="string", links=opened, custom_minWidth=150),
            by_name("workflow", unit="string", custom_width=74),
            *(by_name(it, custom_width=58) for it in ("mean", "from", "to", "normal", "drop", "limit")),
            by_name(_NEAR, unit="percentunit", decimals=0, custom_width=112,
                    **colored(((0.0, "green"), (0.5, "orange"), (1.0, "red")))),
            by_name("n", decimals=0, custom_width=52),
        ],
        nothing=NOT_RECORDED,
        width=14,
        height=11,
    )  # fmt: skip


def _worst(config: Config) -> Panel:
    """Return the mean over time of the series that is nearest to firing, its normal, and where it fires."""
    worst = f"topk(1, {nearness(config, SERVED, '@ end()')})"
    fast, day = (duration(it) for it in (config.fast_window_s, config.day_window_s))
    normal, limit = recorded("normal_mean", "%s"), recorded("drift_limit", "%s")
    down = "|".join(config.lower_is_better)
    up, low = f'{SERVED},{METRIC}!~"{down}"', f'{SERVED},{METRIC}=~"{down}"'
    fires = f"({normal % up} - {limit % up} or {normal % low} + {limit % low})"
    return Panel(
        number=28,
        title="2. Since when? The metric nearest to its alarm",
        description=f"Means of the last {fast} and {day} of the series in the first line of the table, its "
        f"normal, and the mean at which the alert of {day} fires. The change began where the line of {fast} "
        "leaves normal. Compare that hour with your releases (blue marks).",
        decimals=2,
        queries=[
            Query(
                f"{recorded('score_mean', SERVED, 'fast')} and {worst}",
                legend=f"{EACH} mean of {fast}",
                name="fast",
            ),
            Query(f"{recorded('score_mean', SERVED)} and {worst}", legend=f"mean of {day}", name="day"),
            Query(f"{recorded('normal_mean', SERVED)} and {worst}", legend="normal", name="normal"),
            Query(f"{fires} and {worst}", legend="fires from here on", name="fires"),
        ],
        overrides=[
            by_query("fast", color=fixed("text"), custom_lineWidth=1),
            by_query("day", color=fixed("blue")),
            by_query("normal", color=fixed("green"), custom_lineStyle=DASHED),
            by_query("fires", color=fixed("red"), custom_lineStyle=DASHED),
        ],
        nothing=NOT_RECORDED,
        width=10,
        height=6,
    )


def _drops(config: Config) -> Panel:
    return Panel(
        number=29,
        title="2. Drop below normal (the 5 nearest to their alarm)",
        description=f"How far the mean of {duration(config.fast_window_s)} lies on the bad side of normal, in "
        "units of the score. Lines that rise together have one cause; one alone is that metric's. Above 0 for a "
        "short time is noise.",
        decimals=2,
        queries=[
            Query(
                first(recorded("drift_drop", SERVED, "fast"), nearness(config, SERVED, "@ end()"), most=5),
                legend=EACH,
            )
        ],
        nothing=NOT_RECORDED,
        width=10,
        height=5,
    )


def _slices(config: Config) -> Panel:
    """Return a table of the slices, by workflow and model, whose mean fell most."""
    by, window, near = (*IDENTITY, MODEL), duration(config.day_window_s), nearness(config, SERVED)
    down = "|".join(config.lower_is_better)

    def of_side(operator: str) -> tuple[Sample, Sample]:
        now = Sample(window=window, by=by, where=f'{SERVED},{METRIC}{operator}"{down}"')
        return now, baseline_of(now, config)

    (up, up_before), (low, low_before) = of_side("!~"), of_side("=~")
    worse = f"({up_before.mean} - {up.mean} or {low.mean} - {low_before.mean}) and {on(IDENTITY)} {near} > 0.5"
    now = Sample(window=window, by=by, where=SERVED)
    columns = {"now": now.mean, "n": now.n_eff, "drop": worse}
    return Panel(
        number=53,
        title="3. Where? Slices by model that fell (top 7)",
        description="Mean of the last day and drop from the slice's own baseline, by workflow and model, of the "
        "series at half of the drop that fires or more: the seven largest drops, red from 0.1. All slices of a "
        "workflow: look at what its runs share. One model alone: look at the model. A slice of few scores moves "
        "without a cause.",
        kind="table",
        decimals=3,
        queries=[Query(first(expr, worse), name=ref, shape="table") for ref, expr in columns.items()],
        transformations=one_table(
            {WORKFLOW: "workflow", MODEL: "model", METRIC: "metric"} | {f"Value #{it}": it for it in columns},
            sort="drop",
        ),
        overrides=[
            by_pattern(".", noValue="-"),
            *(by_name(it, unit="string", custom_width=72) for it in ("workflow", "model")),
            by_name("metric", unit="string", custom_minWidth=110),
            by_name("n", decimals=0, custom_width=46),
            by_name("now", custom_width=58),
            by_name("drop", custom_width=58, **colored(((0.0, "transparent"), (0.02, "orange"), (0.1, "red")))),
        ],
        nothing="no watched series is near its alarm",
        width=8,
        height=10,
    )


def _trust(config: Config) -> Panel:
    """Return a table of what the means do not see: the share scored, the bounds, and the failed evaluations."""
    window = duration(config.day_window_s)
    sample, missing = Sample(window=window, where=SERVED), Missing(window=window)
    watched = Missing(window=window, where=f"{SERVED},{watching(it.name for it in config.metrics)}")
    whose = ", ".join(WHOSE)
    columns = {
        "scored": f"1 - {missing.share}",
        "least": f"min by ({whose}) ({whatever_is_missing(sample, missing, '-')})",
        "most": f"max by ({whose}) ({whatever_is_missing(sample, missing, '+')})",
        "failed": failed_share(window, WHOSE, where=SERVED),
    }
    headings = {"least": "at least", "most": "at most"}
    return Panel(
        number=76,
        title="4. Can I trust it? Fewest scored (top 7)",
        description=f"The seven with the smallest share of due runs that have a score, last {window}; orange "
        "below 90 %, red below 80 %. At least, at most: where the mean of all runs lies whatever the missing "
        "ones would score. Failed: evaluations with an error. If a normal mean stands beside a wide span, find "
        "the reasons on Investigate.",
        kind="table",
        decimals=2,
        queries=[
            Query(first(expr, watched.share), name=ref, shape="table") for ref, expr in columns.items()
        ],
        transformations=one_table(
            {METRIC: "metric", WORKFLOW: "workflow"}
            | {f"Value #{it}": headings.get(it, it) for it in columns},
            sort="scored",
            is_rising=True,
        ),
        overrides=[
            by_pattern(".", noValue="-"),
            by_name("metric", unit="string", custom_minWidth=110),
            by_name("workflow", unit="string", custom_width=72),
            by_name("scored", unit="percentunit", decimals=0, custom_width=60,
                    **colored(((0.0, "red"), (0.8, "orange"), (0.9, "green")))),
            by_name("failed", unit="percentunit", decimals=1, custom_width=56),
            *(by_name(it, custom_width=62) for it in ("at least", "at most")),
        ],
        width=8,
        height=10,
    )  # fmt: skip


def _more() -> list[Panel]:
    return [_low_share(), _windows(), _both_judges(), _ratings(), _agreement()]


def _low_share() -> Panel:
    sample = Sample(window="1d", where=SERVED)
    whole = Sample(window=WHOLE[0], where=SERVED, at=WHOLE[1])
    return Panel(
        number=PANELS["low_share"][1],
        title="Share on the failing side",
        description="Weighted share of answers on the failing side of the metric's threshold in a day: the "
        "seven largest in the picture. A share that rises while the mean holds means few but bad answers: open "
        "Investigate and read them.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(first(sample.low_share, whole.low_share), legend=EACH)],
        width=8,
        height=9,
    )


def _windows() -> Panel:
    mean = f"{SERIES[semconv.WINDOW_MEAN]}{{{SERVED}}}"
    low, high = (f"{SERIES[it]}{{{SERVED}}}" for it in (semconv.WINDOW_LOW, semconv.WINDOW_HIGH))
    return Panel(
        number=22,
        title="The last hour as each process sees it (7 widest intervals)",
        description="Means that the scorer computes itself, also of metrics that can be negative and have no "
        "sums: the seven with the widest interval. Use it for those and for a first look after a release. It is "
        "too short for a verdict.",
        decimals=3,
        queries=[
            Query(first(mean, f"{high} @ end() - {low} @ end()"), legend=f"{EACH} {legend_of(MODEL, 'instance')}")
        ],
        width=8,
        height=9,
    )


def _both_judges() -> Panel:
    combined = f"{SERIES[semconv.COMBINED_MEAN]}{{{SERVED}}}"
    lower, upper = (f"{SERIES[it]}{{{SERVED}}}" for it in (semconv.COMBINED_LOW, semconv.COMBINED_HIGH))
    return Panel(
        number=27,
        title="Two judges: the mean over all runs (5 lowest)",
        description="Only with first_judge: what the second judge would give all runs, from its part and the "
        "first judge's scores, with its 95 % band where one line is left: choose a workflow. Read this one "
        "before the second judge's own mean, which is of its part alone.",
        decimals=3,
        low=0,
        high=1,
        queries=[
            Query(
                first(combined, f"{combined} @ end()", how="bottomk", most=5),
                legend=f"{EACH} {legend_of('instance')}",
            ),
            Query(alone(lower, combined), legend=LOWER, name="lower"),
            Query(alone(upper, combined), legend=UPPER, name="upper"),
        ],
        overrides=band(LOWER, UPPER),
        nothing="one judge scores every run: nothing to combine",
        width=8,
        height=9,
    )


def _ratings() -> Panel:
    by, whole = (WORKFLOW,), f'{SERVED},{METRIC}="feedback"'
    ratings = f"({summed(SERIES[semconv.FEEDBACK], '1d', by, whole)} >= {_RATED})"
    bad = summed(SERIES[semconv.FEEDBACK], "1d", by, f'{whole},{label(semconv.FEEDBACK_LABEL)}="bad"')
    share = f"(({bad} or 0 * {ratings}) / {ratings})"
    asked = summed(SERIES[semconv.FEEDBACK], WHOLE[0], by, whole, WHOLE[1])
    return Panel(
        number=91,
        title="People: share of bad ratings, last day (5 most rated)",
        description=f"Ratings of the answer as a whole below 0.5, from {_RATED} a day on, with the Wilson 95 % "
        "band of a single workflow. People choose what they rate, so compare it with last week and not with the "
        "share of low scores. Act when the band rises.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(first(share, asked, most=5), legend=f"bad {legend_of(*by)}"),
            Query(alone(wilson_bound(share, ratings, "-"), ratings), legend=LOWER, name="lower"),
            Query(alone(wilson_bound(share, ratings, "+"), ratings), legend=UPPER, name="upper"),
        ],
        overrides=band(LOWER, UPPER),
        nothing=f"fewer than {_RATED} ratings a day",
    )


def _agreement() -> Panel:
    by = (METRIC, JUDGE_MODEL, JUDGE_VERSION)
    n = f"({gauge_by('max', semconv.FEEDBACK_AGREEMENT_N, by)} >= {_RATED})"
    share = f"({gauge_by('max', semconv.FEEDBACK_AGREEMENT, by)} and {n})"
    ends = {side: wilson_bound(share, n, side) for side in "-+"}
    headings = {METRIC: "metric", JUDGE_MODEL: "judge", JUDGE_VERSION: "version"}
    columns = {"agree": share, "lower": ends["-"], "upper": ends["+"], "n": n}
    return Panel(
        number=92,
        title="People: does the judge agree with them? (7 that agree least)",
        description="Share of rated answers that judge and person both find good or both find bad, with its "
        f"Wilson 95 % interval, from {_RATED} ratings on. Red below 0.7: read the answers on which they differ "
        "before you rely on the metric; `ragtrace calibrate` shows them.",
        kind="table",
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        queries=[
            Query(first(expr, share, how="bottomk"), name=ref, shape="table") for ref, expr in columns.items()
        ],
        transformations=one_table(headings | {f"Value #{it}": it for it in columns}, sort="agree", is_rising=True),
        overrides=[
            *(by_name(it, unit="string", noValue="-") for it in headings.values()),
            by_name("n", unit="short"),
            by_name("agree", **colored(((0.0, "red"), (0.7, "green")))),
        ],
        nothing=f"fewer than {_RATED} rated answers with a score",
    )


def _application() -> list[Panel]:
    kinds = {
        "input": semconv.CLIENT_INPUT_TOKENS,
        "output": semconv.CLIENT_OUTPUT_TOKENS,
        "read from cache": semconv.CLIENT_CACHE_READ_TOKENS,
        "written to cache": semconv.CLIENT_CACHE_WRITE_TOKENS,
        "reasoning": semconv.CLIENT_REASONING_TOKENS,
    }
    return [
        latency(
            semconv.CLIENT_INFERENCE_DURATION,
            number=62,
            title="Time of a model call, p95 (7 slowest models)",
            description="Time of single calls of the application's models. A rise with unchanged tokens is the "
            "provider; with more tokens it is the prompt or the passages.",
            by=(MODEL,),
        ),
        Panel(
            number=63,
            title="Tokens of the application an hour",
            description="Tokens of all models. Input holds what was read from the cache, output holds "
            "reasoning. A step in input tokens is usually a larger K or longer chunks: check whether the "
            "quality above paid for it.",
            unit="short",
            low=0,
            queries=[Query(summed(SERIES[name], "1h", (), JOB), legend=kind) for kind, name in kinds.items()],
        ),
    ]
