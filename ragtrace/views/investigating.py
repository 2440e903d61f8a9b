"""The investigation of a fall over a snapshot of runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.model.diagnosis import MEANINGS, VERDICTS
from ragtrace.scoring.investigation.comparison import Period, TooFewScores
from ragtrace.scoring.investigation.lines import moment_text, report, rest_text, slice_name
from ragtrace.scoring.investigation.runs import MOST_RUNS, RunScore, slices_of
from ragtrace.scoring.investigation.search import investigate, investigate_change
from ragtrace.stats.intervals import Interval
from ragtrace.views.scored_answer import usual_order
from ragtrace.views.types import Culprit, InvestigationView, ShareChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.scoring.investigation.runs import Source
    from ragtrace.scoring.investigation.search import Investigation
    from ragtrace.scoring.investigation.verdicts import VerdictShare
    from ragtrace.stats.change.mean import Change, Mean
    from ragtrace.stats.change.slices import Slice, SliceChange
    from ragtrace.views.columns import Mask, Series, Snapshot

_YOUNG = "the window begins at the likeliest change (--since change): too few scores are older than 24 h"
_SLICED = ("workflow", "environment", "corpus", "model", "language", "kind", "tags", "sources", "k")


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
        newest = own[np.argsort(self.snapshot.at[series.rows[own]], kind="stable")][-2 * MOST_RUNS :]
        rows, it = series.rows[newest], self.snapshot
        facts = np.stack([it.codes[name][rows] for name in _SLICED], axis=1).tolist()
        columns = (rows, series.value[newest], series.weight[newest], it.at[rows], it.unit[rows], it.verdict[rows])
        lengths = [it.codes[name][rows].tolist() for name in ("query_chars", "answer_chars")]
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
                answer_chars=None if answer_chars < 0 else answer_chars,
                verdict=VERDICTS[verdict] if verdict >= 0 else None,
            )
            for row, value, weight, at, unit, verdict, codes, query_chars, answer_chars in zip(
                *(column.tolist() for column in columns), facts, *lengths, strict=True
            )
        ]

    def _slices_of(self, codes: tuple[int, ...], row: int) -> tuple[Slice, ...]:
        found = self._slices.get(codes)
        if found is None:
            it = self.snapshot
            named = {name: it.text(name, row) for name in _SLICED if name != "k"}
            k = int(it.codes["k"][row])
            found = self._slices[codes] = slices_of({**named, "k": None if k < 0 else k})
        return found


def investigated(
    source: Source,
    *,
    metric: str | None,
    before: float,
    until: float,
    since: float | None = None,
    last_day: float | None = None,
) -> Investigation:
    """Investigate since a time; without one, since the last day or the likeliest change.

    Pages, commands and the MCP server choose the window here.

    Args:
        source: where the scores stand.
        metric: the exported name; None = the one that changed for the worse most surely.
        before: Unix seconds of the earliest run.
        until: Unix seconds behind the last one.
        since: begin of the window that a person named; None without one.
        last_day: begin of the window without `since`. Where too few scores are older, it begins at the likeliest
            change, which the result's note says. None = always at the likeliest change.

    Raises:
        TooFewScores: a period has fewer than 20 independent scores.
        NoMetric: there are no scores to compare.
    """
    if since is not None:
        return investigate(source, Period(before=before, since=since, until=until), metric=metric)
    if last_day is not None and before < last_day:
        try:
            return investigate(source, Period(before=before, since=last_day, until=until), metric=metric)
        except TooFewScores as error:
            if not error.is_before:
                raise
    names = [metric] if metric is not None else usual_order(source.metrics())
    found = investigate_change(source, names, before=before, until=until)
    return found if last_day is None else replace(found, note=_YOUNG)


def investigation_view(
    snapshot: Snapshot,
    chosen: Mask,
    *,
    metric: str | None,
    since: float | None,
    texts_of: Callable[[str], list[str]],
    show: str,
) -> InvestigationView:
    """Return the investigation of all runs since a time, or since the most likely change.

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
    first, last = float(times.min()), float(times.max()) + 1e-3
    try:
        found = investigated(source, metric=metric, before=first, since=since, until=last)
    except ConfigError as error:
        if metric is None and since is None:
            metric = usual_order(source.metrics())[0]
        return _nothing(str(error), metric)
    return _view(found, tuple(report(found, texts_of, show)))


def _nothing(reason: str, metric: str | None) -> InvestigationView:
    return InvestigationView(is_fallen=False, headline=reason, metric=metric, lines=(reason,))


def _view(found: Investigation, lines: tuple[str, ...]) -> InvestigationView:
    change, verdict = found.change, found.verdict
    verb = "fell" if found.direction == "up" else "rose, and lower is better,"
    when = f" about {moment_text(found.changed_at)}" if found.changed_at is not None else ""
    headline = (
        f"{found.key.metric} {verb} by {abs(change.value):.3f}{when}"
        if found.is_fallen
        else f"{found.key.metric}: nothing is shown to have {'fallen' if found.direction == 'up' else 'risen'}"
    )
    return InvestigationView(
        is_fallen=found.is_fallen,
        headline=headline,
        metric=found.key.metric,
        since=found.changed_at if found.is_fallen else None,
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
