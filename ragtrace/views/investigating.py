"""The investigation of a fall over a snapshot of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.model.diagnosis import MEANINGS, VERDICTS
from ragtrace.scoring.investigation.comparison import HISTORY_S
from ragtrace.scoring.investigation.lines import moment_text, moved, report, rest_text, slice_name
from ragtrace.scoring.investigation.runs import MOST_RUNS, RunScore
from ragtrace.scoring.investigation.search import investigated
from ragtrace.stats.intervals import Interval
from ragtrace.views.columns import SLICED
from ragtrace.views.scored_answer import usual_order
from ragtrace.views.types import Culprit, InvestigationView, ShareChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.scoring.investigation.search import Investigation
    from ragtrace.scoring.investigation.verdicts import VerdictShare
    from ragtrace.stats.change.mean import Change, Mean
    from ragtrace.stats.change.slices import Slice, SliceChange
    from ragtrace.views.columns import Mask, Series, Snapshot


@dataclass(slots=True)
class SnapshotSource:
    """Scores of a snapshot, as `ragtrace.scoring.investigation.runs.Source`."""

    snapshot: Snapshot
    chosen: Mask
    _found: dict[str, list[RunScore]] = field(default_factory=dict)
    _slices: dict[tuple[int, ...], tuple[Slice, ...]] = field(default_factory=dict)

    def metrics(self) -> list[str]:
        """Return the keys of the metrics that have values."""
        return sorted({it.key.metric for it in self.snapshot.series if (it.state == 0).any()})

    def scores(self, metric: str, since: float, until: float) -> list[RunScore]:
        """Return the scores of a metric of the runs since a time and before another."""
        if metric not in self._found:
            self._found[metric] = [
                score for it in self.snapshot.series if it.key.metric == metric for score in self._of(it.counted())
            ]
        return [it for it in self._found[metric] if since <= it.at < until]

    def _of(self, series: Series) -> list[RunScore]:
        """Return the newest scores; runs with the same facts share their slices."""
        own = np.flatnonzero(np.isfinite(self.snapshot.at[series.rows]) & self.chosen[series.rows])
        newest = own[np.argsort(self.snapshot.at[series.rows[own]], kind="stable")][-MOST_RUNS:]
        rows, it = series.rows[newest], self.snapshot
        facts = np.stack([it.codes[name][rows] for name in SLICED], axis=1).tolist()
        columns = (
            rows,
            series.value[newest],
            series.weight[newest],
            it.at[rows],
            it.unit[rows],
            it.verdict[rows],
            it.codes["query_chars"][rows],
        )
        return [
            RunScore(
                trace_id=it.ids[row],
                at=at,
                value=value,
                weight=weight,
                cluster=str(unit),
                key=series.key,
                slices=self._slices_of(tuple(codes), row),
                query_chars=None if query_chars < 0 else query_chars,
                verdict=VERDICTS[verdict] if verdict >= 0 else None,
            )
            for row, value, weight, at, unit, verdict, query_chars, codes in zip(
                *(column.tolist() for column in columns), facts, strict=True
            )
        ]

    def _slices_of(self, codes: tuple[int, ...], row: int) -> tuple[Slice, ...]:
        found = self._slices.get(codes)
        if found is None:
            found = self._slices[codes] = self.snapshot.slices(row)
        return found


def investigation_view(
    snapshot: Snapshot,
    chosen: Mask,
    *,
    metric: str | None,
    since: float | None,
    texts_of: Callable[[str], list[str]],
    show: str,
) -> InvestigationView:
    """Return the investigation of all runs since a time, or since the surest step.

    Args:
        snapshot: all runs.
        chosen: those to look at.
        metric: its key; None = the one that changed for the worse most surely.
        since: begin of the window, Unix seconds.
        texts_of: gives the question and the worst claim of a run.
        show: the command that shows a run.
    """
    source = SnapshotSource(snapshot, chosen)
    times = snapshot.at[np.isfinite(snapshot.at) & chosen]
    if not len(times):
        return _nothing("the runs have no times, so nothing is before or after", metric)
    last = float(times.max()) + 1e-3
    before = last - HISTORY_S if since is None else min(last - HISTORY_S, float(times.min()))
    try:
        found = investigated(source, metric=metric, before=before, since=since, until=last)
    except ConfigError as error:
        if metric is None and since is None:
            metric = usual_order(source.metrics())[0]
        return _nothing(str(error), metric)
    return _view(found, tuple(report(found, texts_of, show)))


def _nothing(reason: str, metric: str | None) -> InvestigationView:
    return InvestigationView(is_fallen=False, headline=reason, metric=metric, lines=(reason,))


def _view(found: Investigation, lines: tuple[str, ...]) -> InvestigationView:
    change, verdict = found.change, found.verdict
    verb, done = ("fell", "fallen") if found.direction == "up" else ("rose, and lower is better,", "risen")
    when = f"about {moment_text(found.since)}"
    headline = (
        f"{found.key.metric} {verb} by {abs(change.value):.3f} {when}"
        if found.is_fallen
        else f"Nothing is shown to have {done}. {moved(found)}"
    )
    return InvestigationView(
        is_fallen=found.is_fallen,
        headline=headline,
        metric=found.key.metric,
        since=found.changed_at,
        before=_interval(change.before),
        after=_interval(change.window),
        by=_size(change),
        stage=verdict.stage if verdict is not None else None,
        verdict=verdict.verdict if verdict is not None else None,
        meaning=MEANINGS[verdict.verdict] if verdict is not None else None,
        culprits=tuple(_culprit(it, change.value) for it in found.explained.slices),
        shares=tuple(_share(it) for it in found.shares),
        rest=rest_text(found) if found.explained.slices else None,
        also=found.also,
        lines=lines,
        example_ids=tuple(it.trace_id for it in found.examples) if found.is_fallen else (),
    )


def _size(change: Change) -> Interval:
    """Return the size of a change, with the bounds of a fall turned."""
    if change.value >= 0.0 or change.low is None or change.high is None:
        return Interval(abs(change.value), change.low, change.high)
    return Interval(-change.value, -change.high, -change.low)


def _share(it: VerdictShare) -> ShareChange:
    return ShareChange(
        verdict=it.verdict,
        before=it.before,
        after=it.window,
        change=Interval(it.difference, it.low, it.high),
        n=(it.n_before, it.n_window),
    )


def _interval(mean: Mean) -> Interval:
    return Interval(mean.mean, mean.low, mean.high)


def _culprit(it: SliceChange, whole: float) -> Culprit:
    share = it.explained / whole if whole else None
    before, window = it.inside.before.mean, it.inside.window.mean
    part = "" if share is None else f": {min(share, 1.0):.0%} of the change"
    return Culprit(
        dimension=it.slice.dimension,
        value=it.slice.value,
        share=share,
        before=before,
        after=window,
        sentence=f"{slice_name(it.slice)}{part}",
        runs_before=it.share_before,
        runs_after=it.share_window,
    )
