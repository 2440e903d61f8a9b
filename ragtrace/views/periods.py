"""Comparison of two periods, or of two sources whose scores have weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragtrace.model.diagnosis import VERDICTS
from ragtrace.scoring.offline.scored_row import label_of
from ragtrace.stats.change.mean import sums_of
from ragtrace.stats.differences import difference_of_sums
from ragtrace.stats.intervals import Interval
from ragtrace.views.figures import ends_of_values, mean_of, output_of, verdict_shares
from ragtrace.views.listing import chosen
from ragtrace.views.scored_answer import first_metric
from ragtrace.views.types import ComparedMetric, ComparedRun, ComparisonView, RunFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.model import SeriesKey
    from ragtrace.stats.differences import Difference
    from ragtrace.views.columns import Mask, Series, Snapshot

    Side = tuple[Snapshot, Mask]

MOST_RUNS = 200
"""Regressions that are listed."""
_NONE = Interval(None, None, None)


def compared_sides(
    before: Side, after: Side, names: tuple[str, str], *, metric: str | None, notes: tuple[str, ...] = ()
) -> ComparisonView:
    """Return the comparison of two sets of runs by their weighted means; nothing is paired but the listed runs."""
    tables = [{it.key: it.only(mask) for it in snapshot.series} for snapshot, mask in (before, after)]
    keys = list(dict.fromkeys(key for table in tables for key, it in table.items() if len(it.rows)))
    by_metric: dict[str, list[SeriesKey]] = {}
    for key in keys:
        by_metric.setdefault(key.metric, []).append(key)
    lines = [
        _line(key, [table.get(key) for table in tables], (before[0], after[0]), by_metric[key.metric])
        for key in keys
    ]
    wanted = metric or (first_metric(by_metric) if by_metric else None)
    return ComparisonView(
        names=names,
        counts=(int(before[1].sum()), int(after[1].sum())),
        metric=wanted,
        metrics=tuple(sorted(lines, key=lambda it: it.metric != wanted)),
        runs=tuple(_runs(before, after, wanted)) if wanted is not None else (),
        verdicts=tuple(verdict_pairs(before, after)),
        notes=notes,
    )


def _line(
    key: SeriesKey,
    found: Sequence[Series | None],
    snapshots: tuple[Snapshot, Snapshot],
    keys: Sequence[SeriesKey],
) -> ComparedMetric:
    sides = [None if it is None else it.counted() for it in found]
    means = [
        _NONE if it is None else mean_of(it, snapshot.unit) for it, snapshot in zip(sides, snapshots, strict=True)
    ]
    n = tuple(0 if it is None else len(it.value) for it in sides)
    known = output_of(key.metric)
    direction = None if known is None else known.direction
    difference = _difference(sides, snapshots)
    return ComparedMetric(
        metric=key.metric,
        label=label_of(key, keys),
        direction=direction,
        before=means[0],
        after=means[1],
        n=(n[0], n[1]),
        difference=None if difference is None else difference.value,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        pairs=0,
        verdict=verdict_of(difference, direction, has_sides=(bool(n[0]), bool(n[1]))),
    )


def _difference(sides: Sequence[Series | None], snapshots: Sequence[Snapshot]) -> Difference | None:
    first, second = sides
    if first is None or second is None or not len(first.value) or not len(second.value):
        return None
    ends = ends_of_values(first.key.metric, np.concatenate([first.value, second.value]))
    units = [snapshot.unit[side.rows] for side, snapshot in zip((first, second), snapshots, strict=True)]
    sums = [sums_of(side.value, side.weight, its) for side, its in zip((first, second), units, strict=True)]
    n_units = min(int(np.count_nonzero(np.bincount(its))) for its in units)
    return difference_of_sums(sums[0], sums[1], n=(len(first.value), len(second.value)), n_units=n_units, ends=ends)


def verdict_of(difference: Difference | None, direction: str | None, *, has_sides: tuple[bool, bool]) -> str:
    """Return what a difference shows, in words."""
    if difference is None:
        return "no value after" if has_sides[0] else "no value before" if has_sides[1] else "no value"
    if difference.is_significant is None:
        return "too few to tell"
    if not difference.is_significant:
        return "no difference shown"
    if direction is None:
        return "changed"
    return "better" if (difference.value > 0) == (direction == "up") else "worse"


def verdict_pairs(before: Side, after: Side) -> Iterator[tuple[str, Interval, Interval]]:
    """Yield each verdict with its share on both sides."""
    shares = [
        {it.verdict: it.share for it in verdict_shares(snapshot, mask, run_weights(snapshot), None)}
        for snapshot, mask in (before, after)
    ]
    for verdict in VERDICTS:
        if any(verdict in side for side in shares):
            yield verdict, shares[0].get(verdict, _NONE), shares[1].get(verdict, _NONE)


def run_weights(snapshot: Snapshot) -> np.typing.NDArray[np.float64]:
    """Return the weight of each run's verdict, 0 outside the random stratum."""
    weights = np.zeros(len(snapshot))
    for it in snapshot.series:
        if it.key.metric == "diagnosis":
            own = ~it.forced & (it.weight > 0.0)
            weights[it.rows[own]] = it.weight[own]
    return weights


def _runs(before: Side, after: Side, metric: str) -> list[ComparedRun]:
    """Return the worst run of each question that stands on both sides, the worst regression first."""
    known = output_of(metric)
    sign = -1.0 if known is not None and known.direction == "down" else 1.0
    old, new = (_by_question(side, metric, sign) for side in (before, after))
    found = [
        _compared_run(before[0], after[0], old[query], new[query], metric, sign) for query in old if query in new
    ]
    return sorted(found, key=lambda it: it.change)[:MOST_RUNS]


def _by_question(side: Side, metric: str, sign: float) -> dict[str, int]:
    """Return the worst valued run of each question, the newest of equal ones."""
    snapshot, mask = side
    values = snapshot.latest(metric).value
    valued = np.flatnonzero(mask & np.isfinite(values))
    at = snapshot.at[valued]
    order = valued[np.lexsort((valued, np.where(np.isfinite(at), at, -np.inf), -sign * values[valued]))]
    return {key: row for row in order.tolist() if (key := snapshot.questions[row])}


def _compared_run(before: Snapshot, after: Snapshot, old: int, new: int, metric: str, sign: float) -> ComparedRun:
    was, now = float(before.latest(metric).value[old]), float(after.latest(metric).value[new])
    return ComparedRun(
        before_id=before.ids[old],
        after_id=after.ids[new],
        query=after.queries[new],
        before=was,
        after=now,
        change=sign * (now - was),
        before_verdict=before.verdict_of(old),
        after_verdict=after.verdict_of(new),
    )


def side_of(snapshot: Snapshot, since: float, until: float, workflow: str | None) -> Side:
    """Return the runs of a period, end exclusive."""
    return snapshot, chosen(snapshot, RunFilter(since=since, until=until, workflow=workflow))
