"""Consistency over several runs of one query in a scored file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace.metrics.consistency.rouge_consistency import rouge_consistency
from ragtrace.metrics.consistency.score_consistency import score_consistency
from ragtrace.model import SeriesKey
from ragtrace.scoring.offline.scored_row import Scored, ScoredRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ragtrace.metrics.consistency.runs import QueryKey
    from ragtrace.model import MetricResult


def repeated_queries(rows: Iterable[ScoredRow]) -> dict[QueryKey, list[ScoredRow]]:
    """Return the runs of each query that was asked at least twice."""
    found: dict[QueryKey, list[ScoredRow]] = {}
    for row in rows:
        if row.key is not None:
            found.setdefault(row.key, []).append(row)
    return {key: runs for key, runs in found.items() if len(runs) > 1}


def over_runs(rows: Iterable[ScoredRow]) -> list[ScoredRow]:
    """Return a row for each repeated query, with its consistency metrics.

    A score's spread is named after it, as in ``score_cv(faithfulness)``. Fewer than 3 answers, or values of one
    judge, version, K and labels: ``na insufficient_runs``.

    Example:
        >>> from ragtrace.scoring.offline.scored_row import scored_row
        >>> score = {"faithfulness": {"state": "ok", "value": 1.0}}
        >>> rows = [scored_row({"query": "Where?", "answer": "Oslo.", "scores": score}, n) for n in (1, 2, 3)]
        >>> found = over_runs(rows)[0].scores
        >>> found["rouge_l_consistency"].value, found["score_std(faithfulness)"].value
        (1.0, 0.0)
    """
    return [_row(runs) for runs in repeated_queries(rows).values()]


def _row(runs: Sequence[ScoredRow]) -> ScoredRow:
    first = runs[0]
    units = {run.unit for run in runs}
    found = rouge_consistency([run.answer for run in runs])
    scores = {result.name: _scored(result, SeriesKey(result.name)) for result in found}
    for name in dict.fromkeys(name for run in runs for name in run.scores):
        scores |= dict(_spread(name, [run.scores[name] for run in runs if name in run.scores]))
    return ScoredRow(
        id=first.query,
        query=first.query,
        key=first.key,
        answer="",
        unit=units.pop() if len(units) == 1 else None,
        scores=scores,
        umbrela=None,
    )


def _spread(name: str, given: Sequence[Scored]) -> Iterator[tuple[str, Scored]]:
    """Yield the spread over the largest group of one series and label version."""
    alike: dict[tuple[SeriesKey, str | None], list[float]] = {}
    for score in given:
        if score.value is not None:
            alike.setdefault((score.key, score.labels), []).append(score.value)
    most = max(alike, key=lambda one: len(alike[one]), default=(SeriesKey(name), None))
    for result in score_consistency(alike.get(most, [])):
        spread = f"{result.name}({name})"
        yield spread, _scored(result, structs.replace(most[0], metric=spread), most[1])


def _scored(result: MetricResult, key: SeriesKey, labels: str | None = None) -> Scored:
    return Scored(result.state, result.value, result.reason, key, labels)
