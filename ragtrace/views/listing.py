"""Chooses and orders runs by a which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragtrace.model.diagnosis import FAILURES, STAGES, VERDICTS
from ragtrace.model.reading import ANY_SIGN
from ragtrace.views.columns import STATES
from ragtrace.views.figures import output_of
from ragtrace.views.filters import FAILED, MISSED
from ragtrace.views.scored_answer import first_metric
from ragtrace.views.types import RunLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragtrace.model.score import Direction
    from ragtrace.views.columns import Mask, Snapshot
    from ragtrace.views.types import RunFilter


def metric_of(snapshot: Snapshot, which: RunFilter) -> str | None:
    """Return the metric that orders a list; None where nothing is scored."""
    return which.metric or (first_metric(snapshot.metrics) if snapshot.metrics else None)


def direction_of(metric: str | None) -> Direction | None:
    """Return which way a metric is better; None where it is not installed."""
    known = None if metric is None else output_of(metric)
    return None if known is None else known.direction


def chosen(snapshot: Snapshot, which: RunFilter) -> Mask:
    """Return the runs that a filter chooses."""
    found = snapshot.is_alive.copy()
    _by_metric(snapshot, which, found)
    _by_verdict(snapshot, which, found)
    for name in ("workflow", "model", "session"):
        wanted = getattr(which, name)
        if wanted is not None:
            code = snapshot.names[name].find(wanted)
            found &= snapshot.codes[name] == (-1 if code is None else code)
    if which.tag is not None:
        found &= snapshot.lists("tags", which.tag)
    if which.sign is not None:
        found &= snapshot.is_signed if which.sign == ANY_SIGN else snapshot.lists("signs", which.sign)
    if which.since is not None:
        found &= snapshot.at >= which.since
    if which.until is not None:
        found &= snapshot.at < which.until
    if which.labelled is not None:
        rated = np.zeros(len(snapshot), dtype=np.bool_)
        rated[list(snapshot.ratings())] = True
        found &= rated == which.labelled
    if which.text:
        needle = which.text.casefold()
        found &= np.fromiter((needle in text for text in snapshot.searched), np.bool_, len(snapshot))
    return found


def _by_metric(snapshot: Snapshot, which: RunFilter, found: Mask) -> None:
    metric = metric_of(snapshot, which)
    if metric is None or (which.low, which.high, which.state) == (None, None, None):
        return
    latest = snapshot.latest(metric)
    if which.low is not None:
        found &= latest.value >= which.low
    if which.high is not None:
        found &= latest.value <= which.high
    if which.state == MISSED:
        found &= latest.passed == 0
    elif which.state is not None:
        found &= latest.state == (STATES.index(which.state) if which.state in STATES else len(STATES))


def _by_verdict(snapshot: Snapshot, which: RunFilter, found: Mask) -> None:
    if which.verdict is not None:
        wanted = set(FAILURES) if which.verdict == FAILED else {which.verdict}
        found &= np.isin(snapshot.verdict, [i for i, it in enumerate(VERDICTS) if it in wanted])
    if which.stage is not None:
        found &= np.isin(snapshot.verdict, [i for i, it in enumerate(VERDICTS) if STAGES[it] == which.stage])


def ordered(snapshot: Snapshot, which: RunFilter, found: Mask) -> NDArray[np.intp]:
    """Return the chosen runs in the filter's order; runs without a value or time stand last."""
    rows = np.flatnonzero(found)
    metric = metric_of(snapshot, which)
    if which.order in {"newest", "oldest"} or metric is None:
        at = snapshot.at[rows]
        newest_first = which.order != "oldest"
        key = np.where(np.isfinite(at), -at if newest_first else at, np.inf)
        return rows[np.lexsort((-rows if newest_first else rows, key))]
    values = snapshot.latest(metric).value[rows]
    known = output_of(metric)
    is_ascending = (known is not None and known.direction == "down") == (which.order == "best")
    key = np.where(np.isnan(values), np.inf, values if is_ascending else -values)
    return rows[np.lexsort((-rows, key))]


def run_line(snapshot: Snapshot, row: int, metric: str | None, ratings: dict[int, list[float]]) -> RunLine:
    """Return one line of a list, without the standing of its run."""
    at = float(snapshot.at[row])
    rated = ratings.get(row)
    return RunLine(
        id=snapshot.ids[row],
        at=at if np.isfinite(at) else 0.0,
        workflow=snapshot.text("workflow", row) or "",
        query=snapshot.queries[row],
        model=snapshot.text("model", row),
        session=snapshot.text("session", row),
        rating=sum(rated) / len(rated) if rated else None,
        **_score_of(snapshot, row, metric),  # type: ignore[arg-type]
    )


def _score_of(snapshot: Snapshot, row: int, metric: str | None) -> dict[str, object]:
    latest = None if metric is None else snapshot.latest(metric)
    if latest is None or latest.state[row] < 0:
        return {}
    value, passed = float(latest.value[row]), int(latest.passed[row])
    return {
        "value": None if np.isnan(value) else value,
        "passed": None if passed < 0 else bool(passed),
        "state": STATES[int(latest.state[row])],
        "reason": snapshot.reasons[int(latest.reason[row])],
    }
