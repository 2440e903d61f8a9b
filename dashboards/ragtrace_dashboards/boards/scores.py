"""Panels about scores that more than one board has: the trend with its band, the table of means, drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from ragtrace import semconv
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
    WORKFLOW,
    Sample,
    baseline_of,
    bound,
    gauge_by,
    label,
    legend_of,
    of,
    summed,
    where_alone,
    wilson,
    z_score,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace_dashboards.boards.panels import Heading, Place, Words
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import JsonObject

LOWER, UPPER = "lower 95 %", "upper 95 %"
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

Z_STEPS = ((0.0, "green"), (2.0, "yellow"), (3.0, "red"))
_DASHED: JsonObject = {"dash": [8, 6], "fill": "dash"}


def trend(config: Config, *, where: str = CHOSEN_K, has_frozen: bool = False, **heading: Unpack[Heading]) -> Panel:
    """Return mean and baseline over time, the frozen one as well, and the 95 % band where there is one series."""
    sample = Sample(window="$window", where=where)
    base = baseline_of(sample, config, is_fixed=True)
    frozen = Query(_frozen(config, where), legend=f"frozen baseline {WHICH}", name="frozen")
    return Panel(
        decimals=3,  # no ends: between 0 and 1 a band of a few hundredths is flat
        queries=[
            Query(sample.mean, legend=WHICH, name="mean"),  # the title names the metric
            Query(where_alone(bound(sample, base, "-"), sample), legend=LOWER, name="lower"),
            Query(where_alone(bound(sample, base, "+"), sample), legend=UPPER, name="upper"),
            Query(base.mean, legend=f"baseline {WHICH}", name="baseline"),
            *([frozen] if has_frozen else []),
        ],
        overrides=[
            *band(LOWER, UPPER),
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
    """Return the share of failing scores with its Wilson band."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        title="Share below the threshold",
        description="Weighted share of answers on the failing side of the metric's threshold, with Wilson's 95 % "
        "band. A share that rises while the mean holds means few but bad answers: read them below.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(sample.low_share, legend=EACH, name="share"),
            Query(where_alone(wilson(sample, "-"), sample), legend=LOWER, name="lower"),
            Query(where_alone(wilson(sample, "+"), sample), legend=UPPER, name="upper"),
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
    base = baseline_of(sample, config)
    columns = {
        "mean": ("mean", sample.mean),
        "low": (LOWER, bound(sample, base, "-")),
        "high": (UPPER, bound(sample, base, "+")),
        "n": ("effective n", sample.n_eff),
        "base": ("baseline", base.mean),
        "z": ("z", z_both(sample, config, config.tolerance)),
    }
    names = {f"Value #{ref}": shown for ref, (shown, _) in columns.items()}
    # Grafana fills variables in values of a transformation and not in keys: "$slice" would order nothing.
    labels = {METRIC: "metric", LABEL_SCALE: "label scale"} | {key: shown for shown, key in SLICES.items()}
    order = {key: at for at, key in enumerate(("job", METRIC, *SLICES.values(), LABEL_SCALE, *names))}
    return Panel(
        number=number,
        title=title,
        description=f"The last {duration(config.day_window_s)}. A mean is as good as its interval: below "
        f"{config.min_n_eff} effective scores do not act on it. z above {config.z:g} is a drop beyond the "
        f"tolerance of {config.tolerance:g}: open Investigate a drop.",
        kind="table",
        decimals=3,
        queries=[Query(expr, name=ref, shape="table") for ref, (_, expr) in columns.items()],
        transformations=one_table("Time", order=order, names=names | labels),
        overrides=[
            by_name("effective n", decimals=0),
            NOT_A_NUMBER,
            by_name("z", decimals=1, color={"mode": "thresholds"}, custom_cellOptions={"type": "color-text"},
                    thresholds=thresholds(Z_STEPS)),
        ],
        width=24,
        height=height,
    )  # fmt: skip


def one_table(*hidden: str, names: Mapping[str, str], order: Mapping[str, int] | None = None) -> list[JsonObject]:
    """Return the transformations that merge the queries of a table, hide columns, and name and order the rest."""
    options: JsonObject = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": order or {},
        "renameByName": names,
    }
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": options}]


def z_both(sample: Sample, config: Config, tolerance: float, *, is_fixed: bool = False) -> str:
    """Return z on the bad side of the baseline, whichever side that is for a metric."""
    down = "|".join(config.lower_is_better)
    ups = replace(sample, where=f'{sample.where},{METRIC}!~"{down}"')
    downs = replace(sample, where=f'{sample.where},{METRIC}=~"{down}"')
    shown = z_score(ups, baseline_of(ups, config, is_fixed=is_fixed), tolerance)
    other = z_score(downs, baseline_of(downs, config, is_fixed=is_fixed), tolerance, is_down=True)
    return f"{shown} or {other}"


def z_trend(config: Config, **place: Unpack[Place]) -> Panel:
    """Return z over time for each window of rule F."""
    arms = {
        config.day_window_s: config.tolerance,
        config.days_window_s: config.tolerance,
        config.fast_window_s: config.fast_tolerance,
    }
    queries = [
        Query(
            z_both(Sample(window=duration(seconds), where=CHOSEN_K), config, tolerance),
            legend=f"{duration(seconds)} {WHICH}",
        )
        for seconds, tolerance in arms.items()
    ]
    return Panel(
        title="z: how far below the baseline",
        description="Standard errors beyond the tolerance, each point against the "
        f"{duration(config.baseline_s)} before it. The alert fires above {config.z:g} with a tolerance of "
        f"{config.tolerance:g}, in the {duration(config.fast_window_s)} window above {config.fast_z:g} with "
        f"{config.fast_tolerance:g}. A short peak in one window alone is noise; all three rising is a drop. "
        "Where a baseline is frozen, alerts compare with that one instead.",
        decimals=1,
        interval="1h" if config.baseline_s >= 86_400 else "",  # 14 days are read for each point
        steps=[(0.0, "green"), (config.z, "orange"), (config.fast_z, "red")],
        custom={"thresholdsStyle": {"mode": "line"}},
        queries=queries,
        **place,
    )


def n_eff(config: Config, **place: Unpack[Place]) -> Panel:
    """Return the effective sample size over time."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        title="Effective scores in the window",
        description=f"Scores after the price of unequal weights. Below {config.min_n_eff} no drift alert can fire: "
        "raise the sampling rate or the judge's budget, or look at a longer window.",
        unit="short",
        low=0,
        steps=[(0.0, "red"), (config.min_n_eff, "green")],
        custom={"thresholdsStyle": {"mode": "line"}},
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
        title="Distribution of scores",
        description="Unweighted scores as they came, forced ones too. Most at 1 and a few at 0 is usual; a cloud "
        "that moves down is a change of everything, a new dark line low down is one kind of question. A point is a "
        "trace: click it to read the answer.",
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


def quantiles(*, where: str = CHOSEN, **place: Unpack[Place]) -> Panel:
    """Return low quantiles of the scores, with exemplars."""
    bucket = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket"
    rate = f"sum by (le, {', '.join(IDENTITY)}) (increase({bucket}{{{where}}}[$window]))"
    return Panel(
        title="Low scores and their traces",
        description="The tenth and the fiftieth of a hundred answers, unweighted, from buckets of .05. Diamonds "
        "are single answers: open the lowest ones in Tempo and read what was retrieved.",
        low=0,
        high=1,
        queries=[
            Query(f"histogram_quantile(0.1, {rate})", legend=f"p10 {EACH}", has_exemplars=True),
            Query(f"histogram_quantile(0.5, {rate})", legend=f"p50 {EACH}"),
        ],
        **place,
    )


def by_slice(*, number: int) -> Panel:
    """Return the mean of one slice; the board repeats it for each, on one axis."""
    where = f'{CHOSEN_K},$slice=~"$slice_value"'
    sample = Sample(window="$window", where=where)
    return Panel(
        title="$slice_value",
        description="The weighted mean of one slice; all have the same axis. A drop in one slice alone points at "
        "what that slice has of its own: its model, its prompt, its corpus. To compare workflows choose all above.",
        low=0,
        high=1,
        queries=[Query(sample.mean, legend=EACH)],
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
