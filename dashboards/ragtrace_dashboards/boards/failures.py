"""Panels about verdicts on runs, and about runs without a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import Panel, Query, by_name
from ragtrace_dashboards.boards.scores import one_table
from ragtrace_dashboards.expressions import (
    CHOSEN,
    METRIC,
    OUTCOME,
    REASON,
    SERIES,
    SERVED,
    VERDICT,
    WORKFLOW,
    Sample,
    baseline_of,
    legend_of,
    on,
    summed,
)
from ragtrace_dashboards.missing import still_missing
from ragtrace_dashboards.shares import difference_bound

if TYPE_CHECKING:
    from ragtrace_dashboards.boards.panels import Place
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import JsonObject

COLORS: Final = {
    "not_retrieved": "dark-blue",
    "unknown_retrieval": "light-blue",
    "lost_in_rerank": "purple",
    "cut_from_prompt": "yellow",
    "insufficient_but_answered": "light-orange",
    "sufficient_but_ignored": "orange",
    "contradicted": "dark-red",
    "unsupported": "red",
    "wrongly_refused": "dark-orange",
    "rightly_refused": "super-light-green",
    "undetermined": "#8e8e8e",
    "ok": "green",
}
"""A colour for each verdict, by the stage that it names."""


def verdicts_over_time(**place: Unpack[Place]) -> Panel:
    """Return the share of each verdict over time, stacked, with ``ok`` on top."""
    total = summed(SERIES[semconv.DIAGNOSIS_W], "$window", (), SERVED)

    def share(matcher: str) -> str:
        part = summed(SERIES[semconv.DIAGNOSIS_W], "$window", (VERDICT,), f"{SERVED},{VERDICT}{matcher}")
        return f"({part} > 0) / on () group_left () ({total} > 0)"

    return Panel(
        title="Where answers fail: verdicts on runs",
        description="Weighted share of the chosen workflows' runs by verdict. A colour that grows names the "
        "stage to look at: blue is retrieval, purple the reranker, yellow the prompt, orange and red the model. "
        "Grey is undetermined: read the share without a score before you trust the rest.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(share('!="ok"'), legend=legend_of(VERDICT), name="failed"),
            Query(share('="ok"'), legend=legend_of(VERDICT), name="ok"),
        ],
        custom={"fillOpacity": 70, "lineWidth": 0} | _STACKED,
        overrides=[
            by_name(verdict, color={"fixedColor": color, "mode": "fixed"}) for verdict, color in COLORS.items()
        ],
        **place,
    )


def verdicts_before_and_now(config: Config, **place: Unpack[Place]) -> Panel:
    """Return a table of verdicts: share in the baseline and in the window, and the difference with its interval."""
    at = baseline_of(Sample(window="$window"), config)
    before, before_size = _share(at.window, at.at)
    now, now_size = _share("$window", "")
    columns = {
        "before": before,
        "now": now,
        "difference": f"{now} - {before}",
        "low": difference_bound(before, before_size, now, now_size, "-"),
        "high": difference_bound(before, before_size, now, now_size, "+"),
    }
    names = {f"Value #{ref}": shown for ref, shown in zip(columns, _COLUMNS, strict=True)}
    order = {key: place_ for place_, key in enumerate((VERDICT, *names))}
    return Panel(
        title="Where answers fail: before and now",
        description="Share of each verdict in the baseline and in the window before the picture's right edge, the "
        "largest growth first. Act on the first line whose lower bound is above 0; set the picture's end to "
        "the time of an alert to see its window.",
        kind="table",
        unit="percentunit",
        low=0,
        high=1,
        decimals=1,
        queries=[Query(expr, name=ref, shape="table") for ref, expr in columns.items()],
        transformations=[*one_table("Time", names=names | {VERDICT: "verdict"}, order=order), _LARGEST_FIRST],
        overrides=[by_name("verdict", unit="string", custom_width=210)],
        **place,
    )


_STACKED: Final[JsonObject] = {"stacking": {"group": "A", "mode": "normal"}}
_COLUMNS: Final = ("before", "now", "difference", "lower 95 %", "upper 95 %")
_LARGEST_FIRST: Final[JsonObject] = {
    "id": "sortBy",
    "options": {"fields": {}, "sort": [{"field": "difference", "desc": True}]},
}


def share_without_a_score(**place: Unpack[Place]) -> Panel:
    """Return the share of due runs that have no score, by metric and workflow."""
    by = (WORKFLOW, METRIC)
    missing = still_missing("$window", by, CHOSEN)
    due = summed(SERIES[semconv.SCORE_DUE_W], "$window", by, CHOSEN)
    return Panel(
        title="Share without a score",
        description="Weighted share of the runs that should have a score and have none. The mean says nothing of "
        "them: a mean that rises while this rises hides bad answers. Runs that wait for the judge count until "
        "their score comes. Investigate a drop has the reasons.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(f"clamp({missing} / ({due} > 0), 0, 1)", legend=legend_of(METRIC, WORKFLOW))],
        **place,
    )


def without_a_score(**place: Unpack[Place]) -> Panel:
    """Return the share of due runs that have no score, by reason; for a board of one metric."""
    by = (METRIC,)
    missing = still_missing("$window", (*by, OUTCOME, REASON), CHOSEN)
    due = summed(SERIES[semconv.SCORE_DUE_W], "$window", by, CHOSEN)
    return Panel(
        title="Share without a score, by reason",
        description="Weighted share of the runs that should have a score and have none. The mean says nothing of "
        "them: when it rises while abstained rises, bad answers have become refusals. Read such answers, and the "
        "bounds of the mean that hold whatever the missing scores were.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[Query(f"({missing} > 0) / {on(by)} group_left () ({due} > 0)", legend=legend_of(OUTCOME, REASON))],
        custom={"fillOpacity": 25, "lineWidth": 1} | _STACKED,
        **place,
    )


def _share(window: str, at: str) -> tuple[str, str]:
    """Return the share of each verdict, and the effective number of runs as a number."""
    name = SERIES[semconv.DIAGNOSIS_W]
    part = summed(name, window, (VERDICT,), SERVED, at)
    whole = summed(name, window, (), SERVED, at)
    square = summed(SERIES[semconv.DIAGNOSIS_W2], window, (), SERVED, at)
    return f"({part} / on () group_left () ({whole} > 0))", f"scalar({whole} ^ 2 / ({square} > 0))"
