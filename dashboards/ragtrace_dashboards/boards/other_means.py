"""Panels of means that the scorer computes beside the plain ones: at the mix of before, and from two judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from ragtrace import semconv
from ragtrace_dashboards.boards import scores
from ragtrace_dashboards.boards.panels import Panel, Query, band, by_pattern
from ragtrace_dashboards.expressions import CHOSEN, JUDGE_MODEL, SERIES, WHOSE, Sample, label, legend_of, on

if TYPE_CHECKING:
    from ragtrace_dashboards.boards.panels import Place

_FIRST_JUDGE: Final = label(semconv.FIRST_JUDGE_MODEL)


def same_questions(*, number: int, width: int) -> Panel:
    """Return the mean of a day beside the mean at the mix of questions that the workflow began with."""
    adjusted = _of(semconv.ADJUSTED_MEAN)
    return Panel(
        number=number,
        title="Questions or answers?",
        description="The mean of a day, and the mean that the same answers give at the mix of questions of before, "
        "with its 95 % band where one line is left. If the first falls and the second does not, people ask other "
        "questions: look at the topics, not at the release. Absent before 500 runs and where hardly any question "
        "is of a known kind.",
        decimals=3,
        width=width,
        queries=[
            Query(Sample(window="1d").mean, legend=f"as asked {scores.WHICH}", name="asked"),
            Query(adjusted, legend=f"same questions as before {scores.WHICH}", name="adjusted"),
            Query(_alone(semconv.ADJUSTED_LOW, adjusted), legend=scores.LOWER, name="lower"),
            Query(_alone(semconv.ADJUSTED_HIGH, adjusted), legend=scores.UPPER, name="upper"),
        ],
        overrides=band(scores.LOWER, scores.UPPER),
        nothing="no scores, or fewer than 500 runs yet",
    )


def both_judges(**place: Unpack[Place]) -> Panel:
    """Return the mean over all runs from two judges beside each judge's own; empty with one judge."""
    combined = _of(semconv.COMBINED_MEAN)
    own = f"{_of(semconv.WINDOW_MEAN)} and {on(WHOSE)} {combined}"
    return Panel(
        title="Two judges: the mean over all runs",
        description="Only with first_judge: what the second judge would give all runs of the window, from its part "
        "and the first judge's scores, with the 95 % band where one line is left. Read this one. Its own mean "
        "(dotted) is of its part alone and moves more; the first judge's is another ruler.",
        decimals=3,
        low=0,
        high=1,
        queries=[
            Query(combined, legend=f"both: {scores.EACH} {legend_of(_FIRST_JUDGE, 'instance')}", name="both"),
            Query(_alone(semconv.COMBINED_LOW, combined), legend=scores.LOWER, name="lower"),
            Query(_alone(semconv.COMBINED_HIGH, combined), legend=scores.UPPER, name="upper"),
            Query(own, legend=f"{legend_of(JUDGE_MODEL)} alone: {scores.EACH} {legend_of('instance')}", name="own"),
        ],
        overrides=[
            *band(scores.LOWER, scores.UPPER),
            by_pattern(" alone: ", custom_lineWidth=1, custom_lineStyle={"dash": [2, 6], "fill": "dot"}),
        ],
        nothing="one judge scores every run: nothing to combine",
        **place,
    )


def _of(name: str) -> str:
    return f"{SERIES[name]}{{{CHOSEN}}}"


def _alone(name: str, mean: str) -> str:
    return f"{_of(name)} and on () (count({mean}) == 1)"
