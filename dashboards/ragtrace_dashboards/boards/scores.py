"""Panels about scores that more than one board has: the trend with its band, the table of means, drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ragtrace import semconv
from ragtrace_dashboards.boards.drift_panels import table_columns
from ragtrace_dashboards.boards.panels import Panel, Query, Search, band, by_name, by_pattern, by_query, thresholds
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.expressions import (
    CHOSEN,
    CHOSEN_K,
    CUTOFF,
    HELD,
    IDENTITY,
    JUDGE_MODEL,
    JUDGE_VERSION,
    LABEL_SCALE,
    METRIC,
    SERIES,
    SERVED,
    UNIVERSE,
    WHOSE,
    WORKFLOW,
    Sample,
    baseline_of,
    bound,
    gauge_by,
    label,
    legend_of,
    low_share_bound,
    of,
    on,
    summed,
    unless_several,
    where_alone,
)
from ragtrace_dashboards.missing import Missing, whatever_is_missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace_dashboards.boards.panels import Heading, Place, Words
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import JsonObject

LOWER, UPPER = "lower 95 %", "upper 95 %"
LEAST, MOST = "at least, whatever is missing", "at most, whatever is missing"
WHICH = legend_of(WORKFLOW, CUTOFF, LABEL_SCALE, UNIVERSE, JUDGE_VERSION)
"""Legend that tells the series of one metric apart."""

EACH = f"{legend_of(METRIC)} {WHICH}"
DETECTOR = label(semconv.DETECTOR)
DRIFT_STATES = (("learning", "blue"), ("ok", "green"), ("warning", "orange"), ("alarm", "red"))
SLICES = {
    "workflow": WORKFLOW,
    "model": label(semconv.GEN_AI_REQUEST_MODEL),
    "judge version": JUDGE_VERSION,
    "judge model": JUDGE_MODEL,
    "universe": UNIVERSE,
    "K": CUTOFF,
}
"""Labels by which a board can be sliced, by the names that its reader chooses from."""
NOT_A_NUMBER = by_pattern("^(K|label scale|universe|workflow|model|judge .*)$", unit="string", noValue="-")
"""Override of a table's labels: K 5 would be shown as 5.000, and one that a series lacks as lost data."""

_WIDTHS = {
    "workflow": 90, "mean": 65, LOWER: 90, UPPER: 92, "baseline": 75, "drop": 60, "fires above": 92, "z": 45,
    "effective n": 90, "missing": 74, "at least": 70, "at most": 70, "K": 36, "label scale": 88, "universe": 74,
    "judge model": 98, "judge version": 106, "job": 74,
}  # fmt: skip
"""Widths of columns in pixels, so that every heading can be read; the metric has the rest."""

_OF_K = CHOSEN_K.removeprefix(CHOSEN)
Z_STEPS = ((0.0, "green"), (2.5, "yellow"), (3.5, "red"))
_DASHED: JsonObject = {"dash": [8, 6], "fill": "dash"}


def trend(config: Config, *, where: str = CHOSEN_K, has_frozen: bool = False, **heading: Unpack[Heading]) -> Panel:
    """Return mean and baseline over time, the frozen one as well, and the 95 % band where there is one series."""
    sample = Sample(window="$window", where=where)
    missing = Missing(window="$window", where=where.removesuffix(_OF_K))  # a run is due once, whatever the K
    base = baseline_of(sample, config, is_fixed=True)
    frozen = Query(_frozen(config, where), legend=f"frozen baseline {WHICH}", name="frozen")
    return Panel(
        decimals=3,  # no ends: between 0 and 1 a band of a few hundredths is flat
        queries=[
            Query(sample.mean, legend=WHICH, name="mean"),  # the title names the metric
            Query(where_alone(bound(sample, "-"), sample), legend=LOWER, name="lower"),
            Query(where_alone(bound(sample, "+"), sample), legend=UPPER, name="upper"),
            Query(unless_several(whatever_is_missing(sample, missing, "-"), sample), legend=LEAST, name="least"),
            Query(unless_several(whatever_is_missing(sample, missing, "+"), sample), legend=MOST, name="most"),
            Query(base.mean, legend=f"baseline {WHICH}", name="baseline"),
            *([frozen] if has_frozen else []),
        ],
        overrides=[
            *band(LOWER, UPPER),
            *band(LEAST, MOST, color="text", opacity=6),
            by_pattern("^baseline ", custom_lineStyle=_DASHED, custom_lineWidth=1),
            *([by_pattern("^frozen baseline ", custom_lineWidth=1)] if has_frozen else []),
        ],
        **heading,
    )


def _frozen(config: Config, where: str) -> str:
    mean, time, n = (
        f"{SERIES[it]}{{{where}}}"
        for it in (semconv.BASELINE_MEAN, semconv.BASELINE_FROZEN_TIME, semconv.BASELINE_N)
    )
    return f"avg by ({', '.join(HELD)}) ({mean} and {time} and {n} >= {config.min_baseline_n_eff})"


def low_share(**place: Unpack[Place]) -> Panel:
    """Return the share of failing scores with its 95 % band."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        title="Share on the failing side",
        description="Weighted share of answers on the failing side of the metric's threshold, with its 95 % "
        "band. A share that rises while the mean holds means few but bad answers: read them below.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(sample.low_share, legend=EACH, name="share"),
            Query(where_alone(low_share_bound(sample, "-"), sample), legend=LOWER, name="lower"),
            Query(where_alone(low_share_bound(sample, "+"), sample), legend=UPPER, name="upper"),
        ],
        overrides=band(LOWER, UPPER),
        **place,
    )


def means(
    config: Config,
    *,
    number: int,
    by: tuple[str, ...] = IDENTITY,
    title: str = "Mean, interval and distance from the baseline",
    height: int = 9,
) -> Panel:
    """Return a table, a line for all that is not averaged: mean, interval, effective size, baseline, z of a day."""
    sample = Sample(window=duration(config.day_window_s), by=by)
    base, missing = baseline_of(sample, config), Missing(window=sample.window, where=CHOSEN)
    columns = {
        "mean": ("mean", sample.mean),
        "low": (LOWER, bound(sample, "-")),
        "high": (UPPER, bound(sample, "+")),
        "base": ("baseline", base.mean),
        **table_columns(config, by=by, where=sample.where),
        "n": ("effective n", sample.n_eff),
        "missing": ("missing", _missing_share(sample, missing)),
        "least": ("at least", whatever_is_missing(sample, missing, "-")),
        "most": ("at most", whatever_is_missing(sample, missing, "+")),
    }
    names = {f"Value #{ref}": shown for ref, (shown, _) in columns.items()}
    # Grafana fills variables in values of a transformation and not in keys: "$slice" would order nothing.
    labels = {METRIC: "metric", LABEL_SCALE: "label scale"} | {key: shown for shown, key in SLICES.items()}
    behind = (CUTOFF, LABEL_SCALE, UNIVERSE, JUDGE_MODEL, JUDGE_VERSION, "job")
    before = (METRIC, *(it for it in SLICES.values() if it not in behind))
    order = {key: at for at, key in enumerate((*before, *names, *behind))}
    return Panel(
        number=number,
        title=title,
        description=f"The last {duration(config.day_window_s)}. A mean is as good as its interval: below "
        f"{config.min_n_eff} effective scores do not act on it. The drop is how far it lies on the bad side of "
        "the baseline, and z the drop in standard errors. They come from the number of scores, the spread "
        "between hours and the service's own wander. If a drop is above the one that fires, open Investigate a "
        "drop. Missing is the share without a score. At least, at most: bounds of the mean of all runs, whatever "
        "those scored.",
        kind="table",
        decimals=3,
        queries=[Query(expr, name=ref, shape="table") for ref, (_, expr) in columns.items()],
        transformations=one_table("Time", order=order, names=names | labels),
        overrides=[
            by_name("metric", custom_minWidth=132),
            *(by_name(name, custom_width=width) for name, width in _WIDTHS.items()),
            by_name("effective n", decimals=0),
            by_name("missing", unit="percentunit", decimals=1),
            NOT_A_NUMBER,
            by_name("z", decimals=1, color={"mode": "thresholds"}, custom_cellOptions={"type": "color-text"},
                    thresholds=thresholds(Z_STEPS)),
        ],
        width=24,
        height=height,
    )  # fmt: skip


def _missing_share(sample: Sample, missing: Missing) -> str:
    """Return the share without a score with the labels of the mean, so that both stand in one line."""
    weight = f"({sample.sum(semconv.SCORE_W)} > 0)"
    beside = f"0 * {weight} + {on(WHOSE)} group_left () {missing.share}"
    return f"{beside} or ({missing.share} unless {on(WHOSE)} {weight})"


def one_table(*hidden: str, names: Mapping[str, str], order: Mapping[str, int] | None = None) -> list[JsonObject]:
    """Return the transformations that merge the queries of a table, hide columns, and name and order the rest."""
    options: JsonObject = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": order or {},
        "renameByName": names,
    }
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": options}]


def n_eff(config: Config, **place: Unpack[Place]) -> Panel:
    """Return the effective sample size over time."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        title="Effective scores in the window",
        description=f"Scores after the price of unequal weights. Below {config.min_n_eff}, the dashed line, no "
        "drift alert can fire: raise the sampling rate or the judge's budget, or look at a longer window.",
        unit="short",
        low=0,
        steps=[(0.0, "green"), (config.min_n_eff, "red")],  # the colour of the line at the limit
        custom={"thresholdsStyle": {"mode": "dashed"}},
        queries=[
            Query(sample.n_eff, legend=f"effective {WHICH}"),
            Query(sample.sum(semconv.SCORE_N), legend=f"scored {WHICH}"),
        ],
        **place,
    )


def distribution(*, where: str = CHOSEN, **place: Unpack[Place]) -> Panel:
    """Return the heatmap of scores, unweighted, with an exemplar a bucket."""
    bucket = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket"
    return Panel(
        title="Distribution of $metric",
        description="Unweighted scores as they came, forced ones and those of every judge too. Most at 1 and a "
        "few at 0 is usual; a cloud that moves down is a change of everything, a new dark line low down is one "
        "kind of question. A point is a trace: click it to read the answer.",
        kind="heatmap",
        queries=[
            Query(
                f"sum by (le) (increase({bucket}{{{where}}}[$__rate_interval]))",
                legend="{{le}}",
                shape="buckets",
                has_exemplars=True,
            )
        ],
        **place,
    )


def quantiles(config: Config, *, where: str = CHOSEN, **place: Unpack[Place]) -> Panel:
    """Return the middle and the bad tenth of the scores, with exemplars."""
    bucket, down = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket", "|".join(config.lower_is_better)

    def quantile(q: float, matcher: str = "") -> str:
        rate = f"sum by (le, {', '.join(IDENTITY)}) (increase({bucket}{{{where}{matcher}}}[$window]))"
        return f"histogram_quantile({q}, {rate})"

    return Panel(
        title="$metric: the bad tenth, and its traces",
        description="The worst tenth of the answers begins at this score: the tenth of a hundred, or the ninetieth "
        "where less is better. Beside it the middle one. Unweighted, from buckets of .05. Diamonds are single "
        "answers: open bad ones in Tempo and read what was retrieved.",
        low=0,
        high=1,
        queries=[
            Query(quantile(0.1, f',{METRIC}!~"{down}"'), legend=f"p10 {WHICH}", has_exemplars=True),
            Query(quantile(0.9, f',{METRIC}=~"{down}"'), legend=f"p90 {WHICH}", has_exemplars=True),
            Query(quantile(0.5), legend=f"p50 {WHICH}"),
        ],
        **place,
    )


def by_slice(*, number: int) -> Panel:
    """Return the mean of one slice; the board repeats it for each, on one axis."""
    where = f'{CHOSEN_K},$slice=~"$slice_value"'
    sample = Sample(window="$window", where=where)
    return Panel(
        title="$slice_value",
        description="The weighted mean of one slice, on the same axis as the others. Where one line is left, it "
        "has its 95 % band: a slice of few runs moves without a cause. A drop in one slice alone points at what "
        "that slice has of its own: its model, its prompt, its corpus. To compare workflows choose all above.",
        low=0,
        high=1,
        queries=[
            Query(sample.mean, legend=EACH, name="mean"),
            *(
                Query(f"({bound(sample, side)}) and on () (count({sample.mean}) == 1)", legend=shown, name=name)
                for shown, name, side in ((LOWER, "lower", "-"), (UPPER, "upper", "+"))
            ),
        ],
        overrides=band(LOWER, UPPER),
        repeat="slice_value",
        width=24,
        height=7,
        number=number,
    )


def drift_state(**place: Unpack[Place]) -> Panel:
    """Return the state of each detector in the process, of several series of a workflow the worst."""
    by = (WORKFLOW, METRIC, DETECTOR)
    expr = gauge_by("max", semconv.DRIFT_STATE, by, CHOSEN)
    return Panel(
        title="Drift detectors",
        description="What the detectors inside the scorer say. Learning: the baseline is not complete yet. Alarm: "
        "open Investigate a drop; after a wanted change accept the new normal with ragtrace baseline accept.",
        kind="stat",
        states=DRIFT_STATES,
        options={"textMode": "value_and_name"},
        queries=[Query(expr, legend=legend_of(*by), shape="now")],
        **place,
    )


def empty_share(**place: Unpack[Place]) -> Panel:
    """Return the share of runs whose search found nothing."""
    by = (WORKFLOW,)
    empty = summed(SERIES[semconv.RETRIEVAL_EMPTY], "$window", by, SERVED)
    runs = summed(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", "$window", by, SERVED)
    return Panel(
        title="Empty retrievals",
        description="Share of runs that searched and found nothing. A jump is an index that is gone, a filter that "
        "matches nothing or an embedding model that changed; no prompt mends it.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(f"{empty} / ({runs} > 0)", legend=legend_of(WORKFLOW))],
        **place,
    )


def pool_size(**place: Unpack[Place]) -> Panel:
    """Return the number of retrieved passages by TraceQL: no metric counts them."""
    count = f"span.{semconv.RETRIEVAL_DOCUMENT_COUNT}"
    return Panel(
        title="Passages retrieved a search",
        description="Median and tenth percentile of passages a search brought, from Tempo's spans (TraceQL metrics "
        "must be on in Tempo). A fall means a filter or a score threshold that cuts too much.",
        unit="short",
        low=0,
        queries=[Search(f"{{ {count} >= 0 }} | quantile_over_time({count}, .1, .5)")],
        **place,
    )


def several(names: Sequence[str], **heading: Unpack[Heading]) -> Panel:
    """Return the means of some metrics over time, one line for all that is not averaged."""
    sample = Sample(window="$window", where=of(names))
    return Panel(
        low=0,
        high=1,
        decimals=3,
        queries=[Query(sample.mean, legend=EACH)],
        **heading,
    )


def bad_answers(traceql: str, **words: Unpack[Words]) -> Panel:
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
        kind="table",
        queries=[Search(traceql)],
        overrides=[by_name("Trace ID", links=[opened]), by_query("A", custom_filterable=True)],
        width=24,
        height=9,
        **words,
    )
