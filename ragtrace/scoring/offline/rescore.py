"""Rescoring of a store's records under another judge or prompt."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.metrics.evaluate import expected
from ragtrace.model import Score, ScoreKey
from ragtrace.scoring.scorer import MAX_WEIGHT, PASSING, postponed
from ragtrace.stores.upsert import RESCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ragtrace.model import MetricResult, RagRecord, Stratum
    from ragtrace.scoring.limits import Blocked
    from ragtrace.scoring.scorer import Scorer
    from ragtrace.stores.sqlite import SqliteStore


@dataclass(slots=True)
class Rescored:
    """Counts of a run: records scored, scored before, errors and judge calls.

    Attributes:
        is_budget_spent: whether a budget ended it: of calls, or the limits'.
        stopped_by: what the judge or its limits said that ended it; "" where nothing did.
        wait_s: when to go on then; 0.0 where that cannot be told.
    """

    scored: int = 0
    done_before: int = 0
    errors: int = 0
    calls: int = 0
    is_budget_spent: bool = False
    stopped_by: str = ""
    wait_s: float = 0.0


class Rescoring:
    """Scores kept records, several at once, and writes each at once.

    A record whose scores of these versions stand already is passed over, unless they are errors that may pass, such
    as a judge that was down: so a run that was stopped goes on where it was. Kept records are no even sample, since
    low scores are kept for sure and others at 1 %: each new weight is the run's weight over that probability, so
    that weighted means stay unbiased.

    Args:
        store: whose records.
        scorer: metrics and judge.
        budget_calls: most judge calls; a record is begun only if the dearest so far would fit. None = no end.
        jobs: records under way at once; one until the first says what a record costs.
        closed: of the limiter before the judge; None without one. The first record that has to wait for it ends the
            run, and is not written: what is done stays, and the next run begins there.
    """

    def __init__(
        self,
        store: SqliteStore,
        scorer: Scorer,
        *,
        budget_calls: int | None = None,
        jobs: int = 4,
        closed: Callable[[], Blocked | None] | None = None,
    ) -> None:
        self.total = Rescored()
        self._store = store
        self._scorer = scorer
        self._budget = budget_calls
        self._jobs = jobs
        self._closed = closed
        self._dearest = 0
        results = expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs)
        self._versions = {(result.name, result.version) for result in results}
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(
        self, records: Iterable[tuple[RagRecord, float]], *, step: Callable[[], None] = lambda: None
    ) -> Rescored:
        """Score records, each with its probability of being kept; can be cancelled.

        Raises:
            sqlite3.Error: a score cannot be written.
        """
        try:
            for record, probability in self._wanted(records):
                await self._room()
                if self._is_over():
                    break
                self._under_way.add(asyncio.create_task(self._one(record, probability, step)))
            while self._under_way:
                await self._one_done()
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
        return self.total

    def _wanted(self, records: Iterable[tuple[RagRecord, float]]) -> Iterator[tuple[RagRecord, float]]:
        for record, probability in records:
            found = (score.result for score in self._store.scores_of(record))
            stands = {(result.name, result.version) for result in found if result.reason not in PASSING}
            if self._versions and self._versions <= stands:
                self.total.done_before += 1
            else:
                yield record, probability

    async def _room(self) -> None:
        while self._under_way:
            is_unknown = self._budget is not None and not self._dearest
            planned = self.total.calls + (len(self._under_way) + 1) * self._dearest
            is_dear = self._budget is not None and planned > self._budget
            if not (is_unknown or is_dear or len(self._under_way) >= self._jobs):
                return
            await self._one_done()

    def _is_over(self) -> bool:
        if self._budget is not None and self.total.calls + max(self._dearest, 1) > self._budget:
            self.total.is_budget_spent = True
        return self.total.is_budget_spent or bool(self.total.stopped_by)

    async def _one_done(self) -> None:
        done, self._under_way = await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _one(self, record: RagRecord, probability: float, step: Callable[[], None]) -> None:
        results = await self._scorer.results(record)
        calls = sum(result.llm_calls for result in results)
        self.total.calls += calls
        self._dearest = max(self._dearest, calls)
        stratum, weight = _drawn(self._store.scores_of(record), probability)
        scores = [_signed(record, result, stratum, weight) for result in results]
        if self._closed is not None and self._has_to_wait(self._closed(), scores):
            return
        self.total.scored += 1
        self.total.errors += sum(result.state == "error" for result in results)
        self._store.emit(record, scores, source=RESCORE)
        step()

    def _has_to_wait(self, closed: Blocked | None, scores: Sequence[Score]) -> bool:
        """Return whether the limits postpone a record; the first one gives the reason."""
        waits = postponed(closed, self._scorer.deciding(scores))
        if waits is not None and not self.total.stopped_by:
            errors = [score.result for score in scores if score.result.state == "error"]
            said = (str(result.details.get("message", "")) for result in errors)
            self.total.stopped_by = next(filter(None, said), waits.reason)
            self.total.wait_s = closed.wait_s if closed is not None else 0.0
            self.total.is_budget_spent = any(result.reason == "budget_exceeded" for result in errors)
        return waits is not None


def _drawn(scores: Sequence[Score], probability: float) -> tuple[Stratum, float | None]:
    # The metric with the highest rate brought the record here, and it has the lowest weight.
    first = [score for score in scores if score.stratum == "random"]
    weights = [score.weight for score in first if score.weight is not None]
    if not first:
        return ("forced" if scores else "random"), None
    return "random", min(min(weights) / probability, MAX_WEIGHT) if weights else None


def _signed(record: RagRecord, result: MetricResult, stratum: Stratum, weight: float | None) -> Score:
    key = ScoreKey(trace_id=record.trace_id, span_id=record.span_id, metric=result.key, version=result.version)
    return Score(key=key, result=result, stratum=stratum, weight=weight, scored_at=time.time())
