"""Panels about scores that more than one board has: the trend with its band, the table of means, drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.expressions import (
    CHOSEN,
    CHOSEN_K,
    CUTOFF,
    JOB,
    METRIC,
    SERIES,
    Sample,
    baseline_of,
    bound,
    label,
    summed,
    wilson,
    z_score,
)
from ragtrace_dashboards.panels import Panel, Query, Search, band, by_name, by_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

LOWER, UPPER = "lower 95 %", "upper 95 %"
DETECTOR = label(semconv.DETECTOR)
DRIFT_STATES = (("learning", "blue"), ("ok", "green"), ("warning", "orange"), ("alarm", "red"))
SLICES = {
    "workflow": label(semconv.GEN_AI_WORKFLOW_NAME),
    "model": label(semconv.GEN_AI_REQUEST_MODEL),
    "judge version": label(semconv.JUDGE_VERSION),
    "judge model": label(semconv.JUDGE_MODEL),
    "universe": label(semconv.UNIVERSE),
    "K": CUTOFF,
}
"""Labels by which a board can be sliced, by the names that its reader chooses from."""
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
    """Return mean, 95 % band and baseline over time, with the frozen one as well; `where` selects one series."""
    sample = Sample(window="$window", by=(METRIC,), where=where)
    base = baseline_of(sample, config, is_fixed=True)
    mean, time = (f"{SERIES[it]}{{{where}}}" for it in (semconv.BASELINE_MEAN, semconv.BASELINE_FROZEN_TIME))
    frozen = Query(name="frozen", expr=f"avg by ({METRIC}) ({mean} and {time})", legend="frozen baseline")
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit="none",
        decimals=3,  # no ends: between 0 and 1 a band of a few hundredths is flat
        queries=[
            Query(name="mean", expr=sample.mean, legend=f"{{{{{METRIC}}}}}"),
            Query(name="lower", expr=bound(sample, base, "-"), legend=LOWER),
            Query(name="upper", expr=bound(sample, base, "+"), legend=UPPER),
            Query(name="baseline", expr=base.mean, legend="baseline"),
            *([frozen] if has_frozen else []),
        ],
        overrides=[
            *band(LOWER, UPPER),
            by_name("baseline", custom_lineStyle=_DASHED, custom_lineWidth=1),
            *([by_name("frozen baseline", custom_lineWidth=1)] if has_frozen else []),
        ],
        **look,
    )


def low_share(*, number: int, **look: Any) -> Panel:
    """Return the share of failing scores with its Wilson band."""
    sample = Sample(window="$window", by=(METRIC,), where=CHOSEN_K)
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
            Query(name="share", expr=sample.low_share, legend=f"{{{{{METRIC}}}}}"),
            Query(name="lower", expr=wilson(sample, "-"), legend=LOWER),
            Query(name="upper", expr=wilson(sample, "+"), legend=UPPER),
        ],
        overrides=band(LOWER, UPPER),
        **look,
    )


def means(
    config: Config, *, number: int, where: str = CHOSEN, by: tuple[str, ...] = (METRIC, CUTOFF), **look: Any
) -> Panel:
    """Return a table with one line a metric and K: mean, interval, effective size, baseline and z of a day."""
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
    order = {key: at for at, key in enumerate((METRIC, *SLICES.values(), *names))}
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
                    "renameByName": names | {METRIC: "metric"} | {key: shown for shown, key in SLICES.items()},
                },
            },
        ],
        overrides=[
            by_name("effective n", decimals=0),
            by_name("K", unit="string", noValue="-"),  # a label, or 5 is shown as 5.000
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
            expr=z_both(Sample(window=duration(seconds), by=(METRIC,), where=CHOSEN_K), config, tolerance),
            legend=f"{duration(seconds)}, tolerance {tolerance:g}",
        )
        for seconds, tolerance in arms.items()
    ]
    return Panel(
        number=number,
        title="z: how far below the baseline",
        description=f"Standard errors beyond the tolerance, each point against the {duration(config.baseline_s)} "
        f"before it. The alert fires above {config.z:g}, in the {duration(config.fast_window_s)} window above "
        f"{config.fast_z:g}. A short peak in one window alone is noise; all three rising is a drop. "
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
    sample = Sample(window="$window", by=(METRIC,), where=CHOSEN_K)
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
            Query(expr=sample.n_eff, legend=f"{{{{{METRIC}}}}} effective"),
            Query(expr=sample.sum(semconv.SCORE_N), legend=f"{{{{{METRIC}}}}} scored"),
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
    rate = f"sum by (le, {METRIC}) (increase({bucket}{{{where}}}[$window]))"
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
            Query(expr=f"histogram_quantile(0.1, {rate})", legend=f"p10 {{{{{METRIC}}}}}", has_exemplars=True),
            Query(expr=f"histogram_quantile(0.5, {rate})", legend=f"p50 {{{{{METRIC}}}}}"),
        ],
        **look,
    )


def by_slice(*, number: int, **look: Any) -> Panel:
    """Return the mean of one slice; the board repeats it for each, on one axis."""
    where = f'{CHOSEN_K},$slice=~"$slice_value"'
    sample = Sample(window="$window", by=(METRIC,), where=where)
    return Panel(
        number=number,
        title="$slice_value",
        description="The weighted mean of one slice; all have the same axis. A drop in one slice alone points at "
        "what that slice has of its own: its model, its prompt, its corpus.",
        kind="timeseries",
        unit="none",
        low=0,
        high=1,
        queries=[Query(expr=sample.mean, legend=f"{{{{{METRIC}}}}}")],
        repeat="slice_value",
        **({"width": 24, "height": 7} | look),
    )


def drift_state(*, number: int, where: str = CHOSEN, **look: Any) -> Panel:
    """Return the state of each detector in the process."""
    expr = f"max by ({METRIC}, {DETECTOR}) ({SERIES[semconv.DRIFT_STATE]}{{{where}}})"
    return Panel(
        number=number,
        title="Drift detectors",
        description="What the detectors inside the scorer say. Learning: the baseline is not complete yet. Alarm: "
        "open Investigate a drop; after a wanted change accept the new normal with ragtrace baseline accept.",
        kind="stat",
        unit="none",
        states=DRIFT_STATES,
        options={"textMode": "value_and_name"},
        queries=[Query(expr=expr, legend=f"{{{{{METRIC}}}}} {{{{{DETECTOR}}}}}", shape="now")],
        **look,
    )


def empty_share(*, number: int, **look: Any) -> Panel:
    """Return the share of runs whose search found nothing."""
    by = (label(semconv.GEN_AI_WORKFLOW_NAME),)
    empty = summed(SERIES[semconv.RETRIEVAL_EMPTY], "$window", by)
    runs = summed(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", "$window", by)
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


def several(
    names: Sequence[str],
    *,
    number: int,
    title: str,
    description: str,
    **look: Any,
) -> Panel:
    """Return the means of some metrics over time, one line for each metric and K."""
    sample = Sample(window="$window", where=f'{JOB},{METRIC}=~"{"|".join(names)}"')
    return Panel(
        number=number,
        title=title,
        description=description,
        kind="timeseries",
        unit="none",
        low=0,
        high=1,
        decimals=3,
        queries=[Query(expr=sample.mean, legend=f"{{{{{METRIC}}}}} {{{{{CUTOFF}}}}}")],
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
