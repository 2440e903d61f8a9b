"""Finds labels whose ids name no passage of nearly any run."""

from __future__ import annotations

import json
import math
from array import array
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.metrics.graded import are_of
from ragtrace.model.diagnosis import DIAGNOSIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ragtrace.model import RagRecord
    from ragtrace.scoring.investigation.comparison import Period
    from ragtrace.stores.sqlite import SqliteStore

_LEAST_RUNS = 5
_NEARLY_NONE = 0.05  # share of runs with an id in common; a bad retriever finds more
_USUAL = 0.5
_MOST_CHARS = 60
_MOST_VERDICTS = 50_000  # of one period
_MOST_RECORDS = 20  # of one period; one of them with an id in common is 5 %
_MOST_TRIES = 500


class _Count(NamedTuple):
    """Labelled runs, and those of them without an id in common."""

    runs: int
    missed: int

    @property
    def is_enough(self) -> bool:
        return self.runs >= _LEAST_RUNS

    @property
    def matched(self) -> float:
        return (self.runs - self.missed) / self.runs

    def __str__(self) -> str:
        return f"{self.missed} of {self.runs}"


class LabelIds:
    """Compares the ids of labels with those of the passages, over many runs.

    Memory is eight bytes a labelled run.

    Example:
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="12#0", text="In Oslo.", rank=1),))
        >>> found = LabelIds()
        >>> for n in range(5):
        ...     found.add(RagRecord(id=str(n), query="Where?", pools=(pool,), labels=Labels(grades={"doc-12": 5})))
        >>> (found.warning() or "").partition(" (")[0]
        '5 of 5 labelled runs have no passage with an id of their labels'
    """

    def __init__(self) -> None:
        self._matched_at = array("d")
        self._missed_at = array("d")
        self._example: tuple[str, str] | None = None
        self._example_at = -math.inf
        self._is_stored = False

    def add(self, record: RagRecord) -> None:
        """Take one run; ignored without passages or without labels of its query."""
        is_matched = self._compare(record)
        if is_matched is not None:
            (self._matched_at if is_matched else self._missed_at).append(record.ended or record.started)

    def add_stored(self, store: SqliteStore, period: Period, workflow: str | None = None) -> None:
        """Take the stored verdicts of two periods; the records that were kept give the ids.

        A verdict counts the needed passages that labels name, and those of them in pool and prompt. Runs without
        one may hold passages of a lower grade. So some of their records are read.
        """
        self._is_stored = True
        for since, until in ((period.before, period.since), (period.since, period.until)):
            matched: dict[str, float] = {}
            missed: dict[str, float] = {}
            rows = store.scores_with_facts(DIAGNOSIS, since=since, until=until, workflow=workflow)
            for row in islice(rows, _MOST_VERDICTS):
                details = json.loads(row["diagnosis"] or "{}")
                if details.get("by") != "labels" or not details.get("n_needed"):
                    continue
                is_there = details.get("n_needed_in_pool") or details.get("n_needed_in_prompt")
                (matched if is_there else missed)[row["trace_id"]] = row["at"]
            is_lower = any(self._compare(record) for record in _kept(store, missed))
            self._matched_at.extend(matched.values())
            (self._matched_at if is_lower else self._missed_at).extend(missed.values())

    def warning(self, period: Period | None = None) -> str | None:
        """Return one line where labels and passages seem to have ids of different kinds, else None.

        That is where fewer than 5 % of the labelled runs have an id in common. With two periods it is also where
        half of them had one before, and fewer than 5 % in the window. Fewer than five runs say nothing.
        """
        if period is None:
            return self._of_all(self._count(-math.inf, math.inf))
        before, window = self._count(period.before, period.since), self._count(period.since, period.until)
        of_all = self._of_all(_Count(*(sum(both) for both in zip(before, window, strict=True))))
        if of_all is not None or not (before.is_enough and window.is_enough):
            return of_all
        if before.matched < _USUAL or window.matched >= _NEARLY_NONE:
            return None
        return self._line(
            f"{window} labelled runs of the window, and {before} before it,",
            "the passages' ids may have changed, for example by a re-index, and not_retrieved may only mean that",
        )

    def _of_all(self, count: _Count) -> str | None:
        if not count.is_enough or count.matched >= _NEARLY_NONE:
            return None
        return self._line(f"{count} labelled runs", "not_retrieved may only mean that the ids differ")

    def _line(self, runs: str, meaning: str) -> str:
        lacking = "that their labels call needed" if self._is_stored else "with an id of their labels"
        said = f"{runs} have no passage {lacking}"
        if self._example is None:
            return f"{said}, so {meaning}; compare them (a store keeps ids with content=full alone)"
        label, passage = (one[:_MOST_CHARS] for one in self._example)
        return (
            f"{said} (a label: {label!r}, a passage: {passage!r}), so {meaning}; give passages the ids of the "
            f'labels: {{"id": {json.dumps(label)}, "text": ...}}, or give the labels the passages\' ids'
        )

    def _count(self, since: float, until: float) -> _Count:
        matched, missed = (sum(since <= at < until for at in of) for of in (self._matched_at, self._missed_at))
        return _Count(runs=matched + missed, missed=missed)

    def _compare(self, record: RagRecord) -> bool | None:
        """Return whether a run has an id in common with its labels; None where there is nothing to compare."""
        labels = record.labels
        passages = [passage.id for pool in record.pools for passage in pool.passages]
        if labels is None or not labels.grades or not passages or not are_of(record, labels):
            return None
        if any(passage in labels.grades for passage in passages):
            return True
        at = record.ended or record.started
        if at > self._example_at:  # the latest, so that it is one of the window
            self._example, self._example_at = (next(iter(labels.grades)), passages[0]), at
        return False


def _kept(store: SqliteStore, traces: Iterable[str]) -> Iterator[RagRecord]:
    records = (store.record(trace) for trace in islice(traces, _MOST_TRIES))
    return islice((record for record in records if record is not None), _MOST_RECORDS)
