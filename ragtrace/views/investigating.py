"""The investigation of a fall over a snapshot of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.judges.offline.words import is_english
from ragtrace.scoring.investigation.comparison import Period
from ragtrace.scoring.investigation.lines import moment_text, report, slice_name
from ragtrace.scoring.investigation.runs import RunScore, run_score
from ragtrace.scoring.investigation.search import investigate, period_of
from ragtrace.stats.intervals import Interval
from ragtrace.views.scored_answer import first_metric
from ragtrace.views.types import Culprit, InvestigationView

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.scoring.investigation.search import Investigation
    from ragtrace.stats.change.mean import Mean
    from ragtrace.stats.change.slices import SliceChange
    from ragtrace.views.columns import Mask, Series, Snapshot

_NAMED = ("workflow", "session", "environment", "corpus", "model", "tags", "sources", "kind")
_LANGUAGES = {True: "en", False: "other", None: None}


@dataclass(slots=True)
class SnapshotSource:
    """Scores of a snapshot, as `ragtrace.scoring.investigation.runs.Source`."""

    snapshot: Snapshot
    chosen: Mask
    _found: dict[str, list[RunScore]] = field(default_factory=dict)

    def metrics(self) -> list[str]:
        """Return the keys of the metrics that have values."""
        return sorted({it.metric for it in self.snapshot.series if (it.state == 0).any()})

    def scores(self, metric: str, since: float, until: float) -> list[RunScore]:
        """Return the scores of a metric of the runs since a time and before another."""
        if metric not in self._found:
            self._found[metric] = [
                score for it in self.snapshot.series if it.metric == metric for score in self._of(it.counted())
            ]
        return [it for it in self._found[metric] if since <= it.at < until]

    def _of(self, series: Series) -> list[RunScore]:
        own = np.isfinite(self.snapshot.at[series.rows]) & self.chosen[series.rows]
        return [
            run_score(
                {**self._facts(row), "value": value, "weight": weight},
                series.maker,
                at=float(self.snapshot.at[row]),
                verdict=self.snapshot.verdict_of(row),
            )
            for row, value, weight in zip(
                series.rows[own].tolist(), series.value[own].tolist(), series.weight[own].tolist(), strict=True
            )
        ]

    def _facts(self, row: int) -> dict[str, object]:
        it = self.snapshot
        query, language = it.queries[row], it.text("language", row)
        numbers = {name: int(it.codes[name][row]) for name in ("k", "query_chars", "answer_chars")}
        return {
            **{name: it.text(name, row) for name in _NAMED},
            **{name: None if number < 0 else number for name, number in numbers.items()},
            "trace_id": it.ids[row],
            "cluster": str(it.unit[row]),
            "language": language or (_LANGUAGES[is_english(query)] if query else None),
        }


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
        metric: its key; None = the one that fell most surely, or the first where the time is estimated.
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
        if since is None:
            metric = metric or first_metric(source.metrics())
            period = period_of(source, metric, before=first, until=last)
        else:
            period = Period(before=first, since=since, until=last)
        found = investigate(source, period, metric=metric)
    except ConfigError as error:
        return _nothing(str(error), metric)
    return _view(found, tuple(report(found, texts_of, show)))


def _nothing(reason: str, metric: str | None) -> InvestigationView:
    return InvestigationView(is_fallen=False, headline=reason, metric=metric, lines=(reason,))


def _view(found: Investigation, lines: tuple[str, ...]) -> InvestigationView:
    change, verdict = found.change, found.verdict
    verb = "fell" if found.direction == "up" else "rose, and lower is better,"
    when = f" about {moment_text(found.changed_at)}" if found.changed_at is not None else ""
    headline = (
        f"{found.metric} {verb} by {abs(change.value):.3f}{when}"
        if found.is_fallen
        else f"{found.metric}: nothing is shown to have {'fallen' if found.direction == 'up' else 'risen'}"
    )
    return InvestigationView(
        is_fallen=found.is_fallen,
        headline=headline,
        metric=found.metric,
        since=found.changed_at if found.is_fallen else None,
        before=_interval(change.before),
        after=_interval(change.window),
        stage=verdict.stage if verdict is not None else None,
        verdict=verdict.verdict if verdict is not None else None,
        culprits=tuple(_culprit(it, change.value) for it in found.explained.slices),
        lines=lines,
        example_ids=tuple(it.trace_id for it in found.examples) if found.is_fallen else (),
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
    )
