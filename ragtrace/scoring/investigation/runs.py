"""Scores with the facts of their runs, from a store or a scored file."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ragtrace.model import SeriesKey
from ragtrace.model.diagnosis import DIAGNOSIS, VERDICTS
from ragtrace.scoring.offline.scored_row import key_of
from ragtrace.stats.change.slices import Slice
from ragtrace.stores.run_facts import facts_of
from ragtrace.text import MAX_LABEL_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.stores.sqlite import SqliteStore
    from ragtrace.stores.tables import Row

MOST_RUNS = 100_000
"""Scores of a metric that are read; the newest of more."""
_NAMED = ("workflow", "environment", "corpus", "model", "prompt", "language", "kind")
_LISTS = {"tags": "tag", "sources": "source"}
_KNOWN = 4_096
_AT_ONCE = 64
_PAUSE_S = 2e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """One score with the facts of its run.

    Attributes:
        trace_id: the trace, or the id of a record that never was one.
        at: Unix seconds.
        value: in the unit of the metric.
        weight: above 0.
        cluster: equal for scores that are not independent: those of a session, else of a question.
        key: only scores of one key are averaged.
        slices: the slices of the run that have a name.
        query_chars: length of the question; None where the facts of the run were not kept.
        verdict: of the metric `diagnosis`; None without one.
    """

    trace_id: str
    at: float
    value: float
    weight: float
    cluster: str
    key: SeriesKey
    slices: tuple[Slice, ...] = ()
    query_chars: int | None = None
    verdict: str | None = None


class Source(Protocol):
    """A place that scores are read from."""

    def metrics(self) -> list[str]:
        """Return the exported names of the metrics that have scores."""
        ...

    def scores(self, metric: str, since: float, until: float) -> list[RunScore]:
        """Return the scores of a metric of the runs since a time and before another, in any order."""
        ...


class StoreSource:
    """Scores of a store: those of the random stratum, of judges and not of people.

    Args:
        store: the file.
        workflow: of this workflow alone; None = all.
        most: scores of a metric that are read; the newest of more.
    """

    def __init__(
        self,
        store: SqliteStore,
        *,
        workflow: str | None = None,
        most: int = MOST_RUNS,
    ) -> None:
        self._store = store
        self._workflow = workflow
        self._most = most
        self._runs: dict[int, RunScore] = {}  # the facts of a run stand in the scores of all metrics

    def metrics(self) -> list[str]:
        """Return the exported names of the metrics that have scores."""
        return self._store.metric_names()

    def scores(self, metric: str, since: float, until: float) -> list[RunScore]:
        """Return the newest scores of a metric of the runs since a time and before another."""
        rows = self._store.scores_with_facts(metric, since=since, until=until, workflow=self._workflow)
        found: list[RunScore] = []
        keys: dict[tuple[int, int | None], SeriesKey] = {}
        for row in islice(rows, self._most):
            if len(found) % _AT_ONCE == 0:
                time.sleep(_PAUSE_S)  # else a thread that writes waits for the interpreter, for each of its steps
            key = keys.get((row["series"], row["cutoff"]))
            if key is None:
                key = keys[row["series"], row["cutoff"]] = _key_of(metric, row)
            known = self._runs.get(row["id"])
            if known is None:
                verdict = json.loads(row["diagnosis"] or "{}").get("verdict")
                known = self._runs[row["id"]] = run_score(row, key, at=row["at"], verdict=verdict)
            found.append(replace(known, key=key, value=float(row["value"]), weight=float(row["weight"])))
        return found


def _key_of(metric: str, row: Row) -> SeriesKey:
    return SeriesKey(
        metric=metric,
        judge=row["judge"] or None,
        version=row["version"],
        k=row["cutoff"],
        label_scale=row["label_scale"] or None,
        universe=row["universe"] or None,
    )


class ScoredSource:
    """Scores of the lines of a scored file; of the records it keeps no text.

    Args:
        scored: each record with its scores by their keys, in the form of a scored line.
        workflow: of this workflow alone; None = all.
    """

    def __init__(
        self, scored: Iterable[tuple[RagRecord, Mapping[str, ScoreJson]]], *, workflow: str | None = None
    ) -> None:
        self._lines = [_line(*it) for it in scored if workflow is None or it[0].workflow == workflow]

    def metrics(self) -> list[str]:
        """Return the keys of the scores that have a value."""
        return sorted({name for line in self._lines for name in line.values})

    def scores(self, metric: str, since: float, until: float) -> list[RunScore]:
        """Return the scores of a metric of the records that ended since a time and before another."""
        return [
            run_score({**line.facts, "value": found[0], "weight": 1.0}, found[1], at=line.at, verdict=line.verdict)
            for line in self._lines
            if since <= line.at < until and (found := line.values.get(metric)) is not None
        ]

    def times(self) -> list[float]:
        """Return the Unix seconds at which the records ended; 0 for a record that does not say."""
        return [line.at for line in self._lines]


class _ScoredRecord(NamedTuple):
    """One line of a scored file without texts."""

    facts: Row
    at: float
    values: dict[str, tuple[float, SeriesKey]]
    verdict: object


def _line(record: RagRecord, scores: Mapping[str, ScoreJson]) -> _ScoredRecord:
    named = {name: getattr(record, name) for name in ("workflow", "environment", "corpus", "model", "session")}
    return _ScoredRecord(
        facts={**facts_of(record), **named, "trace_id": record.trace_id or record.id},
        at=record.ended or record.started,
        values={
            name: (float(value), key_of(name, score))
            for name, score in scores.items()
            if isinstance(value := score.get("value"), int | float)
        },
        verdict=((scores.get(DIAGNOSIS) or {}).get("details") or {}).get("verdict"),
    )


def run_score(row: Row, key: SeriesKey, *, at: float, verdict: object) -> RunScore:
    """Return a score from the columns of `ragtrace.stores.run_facts`, with its value and weight."""
    return RunScore(
        trace_id=row["trace_id"],
        at=at,
        value=float(row["value"]),
        weight=float(row["weight"]),
        cluster=row.get("cluster") or row.get("session") or row["trace_id"],
        key=key,
        slices=slices_of(row),
        query_chars=row.get("query_chars"),
        verdict=next((it for it in VERDICTS if it == verdict), None),
    )


def slices_of(row: Row) -> tuple[Slice, ...]:
    """Return the slices of a run from the columns of `ragtrace.stores.run_facts`.

    Example:
        >>> [tuple(it) for it in slices_of({"workflow": "rag", "tags": '["beta"]'})]
        [('workflow', 'rag'), ('tag', 'beta')]
    """
    named = [_slice(name, row[name]) for name in _NAMED if row.get(name)]
    if row.get("k") is not None:
        named.append(_slice("k", str(row["k"])))
    for column, dimension in _LISTS.items():
        if row.get(column):
            named += _listed(dimension, row[column])
    return tuple(named)


@lru_cache(_KNOWN)
def _slice(dimension: str, value: str) -> Slice:
    """Return the one object of a slice: thousands of runs share it."""
    return Slice(dimension, value[:MAX_LABEL_CHARS])


@lru_cache(_KNOWN)
def _listed(dimension: str, names: str) -> tuple[Slice, ...]:
    return tuple(_slice(dimension, name) for name in dict.fromkeys(json.loads(names)))
