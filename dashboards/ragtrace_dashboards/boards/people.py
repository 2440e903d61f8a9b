"""Panels about people's ratings: how many are bad, and whether the judge agrees."""

from __future__ import annotations

from ragtrace import semconv
from ragtrace_dashboards.boards.panels import NO_LEGEND, Panel, Query, band, by_pattern
from ragtrace_dashboards.expressions import (
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    SERIES,
    SERVED,
    WORKFLOW,
    gauge_by,
    label,
    legend_of,
    summed,
    wilson_bound,
)

_LABEL = label(semconv.FEEDBACK_LABEL)
_WINDOW = "1d"
_WHOLE = f'{SERVED},{METRIC}="feedback"'
_FEWEST = 10


def panels() -> list[Panel]:
    """Return the panels of the row about people."""
    return [_bad(), _agreement()]


def _bad() -> Panel:
    by = (WORKFLOW,)
    ratings = f"({summed(SERIES[semconv.FEEDBACK], _WINDOW, by, _WHOLE)} >= {_FEWEST})"
    bad_only = f'{_WHOLE},{_LABEL}="bad"'
    bad = f"({summed(SERIES[semconv.FEEDBACK], _WINDOW, by, bad_only)} or 0 * {ratings})"
    share = f"({bad} / {ratings})"
    alone = f"and on () (count({ratings}) == 1)"
    return Panel(
        number=91,
        title="Share of bad ratings, last day",
        description=f"Ratings of the answer as a whole below .5, from {_FEWEST} a day on. Choose a workflow for "
        "the Wilson 95 % band. People choose what they rate, so compare it with last week and not with the share "
        "of low scores. Act when the band rises.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(share, legend=f"bad {legend_of(*by)}"),
            Query(f"{wilson_bound(share, ratings, '-')} {alone}", legend="low"),
            Query(f"{wilson_bound(share, ratings, '+')} {alone}", legend="high"),
        ],
        overrides=band("low", "high"),
        nothing=f"fewer than {_FEWEST} ratings a day",
    )


def _agreement() -> Panel:
    by = (METRIC, JUDGE_MODEL, JUDGE_VERSION)
    n = f"({gauge_by('max', semconv.FEEDBACK_AGREEMENT_N, by)} >= {_FEWEST})"
    share = f"({gauge_by('max', semconv.FEEDBACK_AGREEMENT, by)} and {n})"
    shown = f"{{{{{METRIC}}}}} by {legend_of(JUDGE_MODEL, JUDGE_VERSION)}"
    return Panel(
        number=92,
        title="Does the judge agree with people?",
        description="Share of rated answers that judge and person both find good or both find bad, with its Wilson "
        f"95 % interval, from {_FEWEST} ratings on. Below .7, read the answers on which they differ before you "
        "rely on the metric: `ragtrace calibrate` shows them.",
        unit="percentunit",
        low=0,
        high=1,
        queries=[
            Query(share, legend=shown),
            Query(wilson_bound(share, n, "-"), legend=f"low {shown}"),
            Query(wilson_bound(share, n, "+"), legend=f"high {shown}"),
        ],
        overrides=[by_pattern("^(low|high) ", custom_lineWidth=0.5, custom_hideFrom=NO_LEGEND)],
        nothing=f"fewer than {_FEWEST} rated answers with a score",
    )
