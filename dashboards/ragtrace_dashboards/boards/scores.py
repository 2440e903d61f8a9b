"""Panels about scores that more than one board has: the trend with its band, the table of means, drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import Panel, Query, Search, band, by_name, by_pattern, by_query
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
    label,
    of,
    summed,
    where_alone,
    wilson,
    z_score,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

LOWER, UPPER = "lower 95 %", "upper 95 %"
WHICH = " ".join(f"{{{{{it}}}}}" for it in (WORKFLOW, CUTOFF, LABEL_SCALE, UNIVERSE, JUDGE_VERSION))
"""Legend that tells the series of one metric apart; a label that a series lacks leaves nothing."""

EACH = f"{{{{{METRIC}}}}} {WHICH}"
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
_DASHED = {"dash": [8, 6], "fill": "dash"}


def trend(
    config: Config,
    *,
    number: int,
    title: str,
    description: str,
    where: str = CHOSEN_K,
    has_frozen: bool = False,
    **look: Any,
) -> Panel:
    """Return mean and baseline over time, the frozen one as well, and the 95 % band where there is one series."""
    sample = Sample(window="$window", where=where)
    base = baseline_of(sample, config, is_fixed=True)
    frozen = Query(name="frozen", expr=_frozen(config, where), legend=f"frozen baseline {WHICH}")
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit="none",
        decimals=3,  # no ends: between 0 and 1 a band of a few hundredths is flat
        queries=[
            Query(name="mean", expr=sample.mean, legend=WHICH),  # the title names the metric
            Query(name="lower", expr=where_alone(bound(sample, base, "-"), sample), legend=LOWER),
            Query(name="upper", expr=where_alone(bound(sample, base, "+"), sample), legend=UPPER),
            Query(name="baseline", expr=base.mean, legend=f"baseline {WHICH}"),
            *([frozen] if has_frozen else []),
        ],
        overrides=[
            *band(LOWER, UPPER),
            by_pattern("^baseline ", custom_lineStyle=_DASHED, custom_lineWidth=1),
            *([by_pattern("^frozen baseline ", custom_lineWidth=1)] if has_frozen else []),
        ],
        **look,
    )


def _frozen(config: Config, where: str) -> str:
    mean, time, n = (
        f"{SERIES[it]}{{{where}}}"
        for it in (semconv.BASELINE_MEAN, semconv.BASELINE_FROZEN_TIME, semconv.BASELINE_N)
    )
    return f"avg by ({', '.join(HELD)}) ({mean} and {time} and {n} >= {config.min_baseline_n_eff})"


def low_share(*, number: int, **look: Any) -> Panel:
    """Return the share of failing scores with its Wilson band."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        number=number,
        title="Share below the threshold",
        description="Weighted share of answers on the failing side of the metric's threshold, with Wilson's 95 % "
        "band. A share that rises while the mean holds means few but bad answers: read them below.",
        kind="timeseries",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(name="share", expr=sample.low_share, legend=EACH),
            Query(name="lower", expr=where_alone(wilson(sample, "-"), sample), legend=LOWER),
            Query(name="upper", expr=where_alone(wilson(sample, "+"), sample), legend=UPPER),
        ],
        overrides=band(LOWER, UPPER),
        **look,
    )


def means(
    config: Config, *, number: int, where: str = CHOSEN, by: tuple[str, ...] = IDENTITY, **look: Any
) -> Panel:
    """Return a table, a line for all that is not averaged: mean, interval, effective size, baseline, z of a day."""
    sample = Sample(window=duration(config.day_window_s), by=by, where=where)
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
    steps = [{"color": color, "value": value if at else None} for at, (value, color) in enumerate(Z_STEPS)]
    default: dict[str, Any] = {"width": 24, "height": 9, "title": "Mean, interval and distance from the baseline"}
    return Panel(
        number=number,
        description=f"The last {duration(config.day_window_s)}. A mean is as good as its interval: below "
        f"{config.min_n_eff} effective scores do not act on it. z above {config.z:g} is a drop beyond the "
        f"tolerance of {config.tolerance:g}: open Investigate a drop.",
        kind="table",
        unit="none",
        decimals=3,
        queries=[Query(name=ref, expr=expr, shape="table") for ref, (_, expr) in columns.items()],
        transformations=[
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": order,
                    "renameByName": names | labels,
                },
            },
        ],
        overrides=[
            by_name("effective n", decimals=0),
            NOT_A_NUMBER,
            by_name("z", decimals=1, color={"mode": "thresholds"}, custom_cellOptions={"type": "color-text"},
                    thresholds={"mode": "absolute", "steps": steps}),
        ],
        **(default | look),
    )  # fmt: skip


def z_both(sample: Sample, config: Config, tolerance: float, *, is_fixed: bool = False) -> str:
    """Return z on the bad side of the baseline, whichever side that is for a metric."""
    down = "|".join(config.lower_is_better)
    ups = replace(sample, where=f'{sample.where},{METRIC}!~"{down}"')
    downs = replace(sample, where=f'{sample.where},{METRIC}=~"{down}"')
    shown = z_score(ups, baseline_of(ups, config, is_fixed=is_fixed), tolerance)
    other = z_score(downs, baseline_of(downs, config, is_fixed=is_fixed), tolerance, is_down=True)
    return f"{shown} or {other}"


def z_trend(config: Config, *, number: int, **look: Any) -> Panel:
    """Return z over time for each window of rule F."""
    arms = {
        config.day_window_s: config.tolerance,
        config.days_window_s: config.tolerance,
        config.fast_window_s: config.fast_tolerance,
    }
    queries = [
        Query(
            expr=z_both(Sample(window=duration(seconds), where=CHOSEN_K), config, tolerance),
            legend=f"{duration(seconds)} {WHICH}",
        )
        for seconds, tolerance in arms.items()
    ]
    return Panel(
        number=number,
        title="z: how far below the baseline",
        description="Standard errors beyond the tolerance, each point against the "
        f"{duration(config.baseline_s)} before it. The alert fires above {config.z:g} with a tolerance of "
        f"{config.tolerance:g}, in the {duration(config.fast_window_s)} window above {config.fast_z:g} with "
        f"{config.fast_tolerance:g}. A short peak in one window alone is noise; all three rising is a drop. "
        "Where a baseline is frozen, alerts compare with that one instead.",
        kind="timeseries",
        unit="none",
        decimals=1,
        interval="1h" if config.baseline_s >= 86_400 else "",  # 14 days are read for each point
        steps=[(0.0, "green"), (config.z, "orange"), (config.fast_z, "red")],
        custom={"thresholdsStyle": {"mode": "line"}},
        queries=queries,
        **look,
    )


def n_eff(config: Config, *, number: int, **look: Any) -> Panel:
    """Return the effective sample size over time."""
    sample = Sample(window="$window", where=CHOSEN_K)
    return Panel(
        number=number,
        title="Effective scores in the window",
        description=f"Scores after the price of unequal weights. Below {config.min_n_eff} no drift alert can fire: "
        "raise the sampling rate or the judge's budget, or look at a longer window.",
        kind="timeseries",
        unit="short",
        low=0,
        steps=[(0.0, "red"), (config.min_n_eff, "green")],
        custom={"thresholdsStyle": {"mode": "line"}},
        queries=[
            Query(expr=sample.n_eff, legend=f"effective {WHICH}"),
            Query(expr=sample.sum(semconv.SCORE_N), legend=f"scored {WHICH}"),
        ],
        **look,
    )


def distribution(*, number: int, where: str = CHOSEN, **look: Any) -> Panel:
    """Return the heatmap of scores, unweighted, with an exemplar a bucket."""
    bucket = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket"
    return Panel(
        number=number,
        title="Distribution of scores",
        description="Unweighted scores as they came, forced ones too. Most at 1 and a few at 0 is usual; a cloud "
        "that moves down is a change of everything, a new dark line low down is one kind of question. A point is a "
        "trace: click it to read the answer.",
        kind="heatmap",
        unit="none",
        queries=[
            Query(
                expr=f"sum by (le) (increase({bucket}{{{where}}}[$__rate_interval]))",
                legend="{{le}}",
                shape="buckets",
                has_exemplars=True,
            )
        ],
        **look,
    )


def quantiles(*, number: int, where: str = CHOSEN, **look: Any) -> Panel:
    """Return low quantiles of the scores, with exemplars."""
    bucket = f"{SERIES[semconv.EVALUATION_SCORE]}_bucket"
    rate = f"sum by (le, {', '.join(IDENTITY)}) (increase({bucket}{{{where}}}[$window]))"
    return Panel(
        number=number,
        title="Low scores and their traces",
        description="The tenth and the fiftieth of a hundred answers, unweighted, from buckets of .05. Diamonds "
        "are single answers: open the lowest ones in Tempo and read what was retrieved.",
        kind="timeseries",
        unit="none",
        low=0,
        high=1,
        queries=[
            Query(expr=f"histogram_quantile(0.1, {rate})", legend=f"p10 {EACH}", has_exemplars=True),
            Query(expr=f"histogram_quantile(0.5, {rate})", legend=f"p50 {EACH}"),
        ],
        **look,
    )


def by_slice(*, number: int, **look: Any) -> Panel:
    """Return the mean of one slice; the board repeats it for each, on one axis."""
    where = f'{CHOSEN_K},$slice=~"$slice_value"'
    sample = Sample(window="$window", where=where)
    return Panel(
        number=number,
        title="$slice_value",
        description="The weighted mean of one slice; all have the same axis. A drop in one slice alone points at "
        "what that slice has of its own: its model, its prompt, its corpus. To compare workflows choose all above.",
        kind="timeseries",
        unit="none",
        low=0,
        high=1,
        queries=[Query(expr=sample.mean, legend=EACH)],
        repeat="slice_value",
        **({"width": 24, "height": 7} | look),
    )


def drift_state(*, number: int, where: str = CHOSEN, **look: Any) -> Panel:
    """Return the state of each detector in the process, of several series of a workflow the worst."""
    expr = f"max by ({WORKFLOW}, {METRIC}, {DETECTOR}) ({SERIES[semconv.DRIFT_STATE]}{{{where}}})"
    return Panel(
        number=number,
        title="Drift detectors",
        description="What the detectors inside the scorer say. Learning: the baseline is not complete yet. Alarm: "
        "open Investigate a drop; after a wanted change accept the new normal with ragtrace baseline accept.",
        kind="stat",
        unit="none",
        states=DRIFT_STATES,
        options={"textMode": "value_and_name"},
        queries=[Query(expr=expr, legend=f"{{{{{WORKFLOW}}}}} {{{{{METRIC}}}}} {{{{{DETECTOR}}}}}", shape="now")],
        **look,
    )


def empty_share(*, number: int, **look: Any) -> Panel:
    """Return the share of runs whose search found nothing."""
    by = (WORKFLOW,)
    empty = summed(SERIES[semconv.RETRIEVAL_EMPTY], "$window", by, SERVED)
    runs = summed(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", "$window", by, SERVED)
    return Panel(
        number=number,
        title="Empty retrievals",
        description="Share of runs that searched and found nothing. A jump is an index that is gone, a filter that "
        "matches nothing or an embedding model that changed; no prompt mends it.",
        kind="timeseries",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(expr=f"{empty} / ({runs} > 0)", legend=f"{{{{{by[0]}}}}}")],
        **look,
    )


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


def several(
    names: Sequence[str],
    *,
    number: int,
    title: str,
    description: str,
    **look: Any,
) -> Panel:
    """Return the means of some metrics over time, one line for all that is not averaged."""
    sample = Sample(window="$window", where=of(names))
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit="none",
        low=0,
        high=1,
        decimals=3,
        queries=[Query(expr=sample.mean, legend=EACH)],
        **look,
    )


def bad_answers(*, number: int, title: str, traceql: str, description: str, **look: Any) -> Panel:
    """Return a table of traces from Tempo; each line opens its trace."""
    opened = {
        "title": "Open the trace",
        "internal": {
            "datasourceName": "",
            "datasourceUid": "${tempo_datasource}",
            "query": {"query": "${__value.raw}", "queryType": "traceql"},
        },
        "url": "",
    }
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="table",
        unit="none",
        queries=[Search(traceql=traceql)],
        overrides=[by_name("Trace ID", links=[opened]), by_query("A", custom_filterable=True)],
        **({"width": 24, "height": 9} | look),
    )
