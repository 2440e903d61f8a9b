"""The scorer's side of a service: a job is scored, gets its end, and its scores go out."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, record_internal_error
from ragtrace.queues import Unit
from ragtrace.scoring import Outcome
from ragtrace.scoring.limits.postpone import postponed
from ragtrace.scoring.scorer import verdict_of
from ragtrace.stores.base import OutboxEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Score
    from ragtrace.queues import Job
    from ragtrace.scoring import Scorer
    from ragtrace.service.drift import DriftMonitor
    from ragtrace.service.limits import ServiceLimiter
    from ragtrace.service.publish import Publisher
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.sinks.base import Sink
    from ragtrace.stores import Pending

_log = logging.getLogger("ragtrace")
_ABANDONED_S = 60.0


class Handling:
    """Handles jobs, and publishes scores. Called in the scorer's thread.

    Args:
        scorer: computes scores.
        publisher: sends them out as telemetry.
        drift: watches them.
        sinks: take them, one after the other.
        outbox: keeps them until they were delivered, where there is a store.
        limiter: before the judge, where it has limits.
    """

    def __init__(
        self,
        *,
        scorer: Scorer,
        publisher: Publisher,
        drift: DriftMonitor,
        sinks: Sequence[Sink] = (),
        outbox: ScoreOutbox | None = None,
        limiter: ServiceLimiter | None = None,
    ) -> None:
        self._scorer = scorer
        self._publisher = publisher
        self._drift = drift
        self._sinks = tuple(sinks)
        self._outbox = outbox
        self._limiter = limiter
        self._republishing = threading.RLock()
        self._has_said_no_metric = False

    async def handle(self, job: Job) -> Outcome:
        """Score a unit and return what becomes of it, with what publishes its scores once that is written."""
        started_ns = time.time_ns()
        if not self._scorer.chosen(job.unit):
            self._say_no_metric(job.unit)
            return Outcome(state="skipped", reason="no_metric")
        self._announce(job.unit)
        if (waits := self._postponed()) is not None:
            return waits
        scores = await self._scorer.score(job.unit)
        deciding, entry = self._scorer.deciding(scores), OutboxEntry()
        return self._postponed(deciding) or verdict_of(
            deciding,
            job.attempt,
            write=self._outbox.write(scores, job.unit.record, entry) if self._outbox is not None else None,
            also=self._outbox.also(scores, job.unit.record, entry) if self._outbox is not None else None,
            then=lambda: self.publish(job.unit, scores, started_ns, entry),
        )

    def publish(
        self, unit: Unit, scores: Sequence[Score], started_ns: int, entry: OutboxEntry | None = None
    ) -> None:
        """Send scores everywhere, each way guarded on its own; not those that another process has sent."""
        owed = [score for score in scores if entry is None or entry.is_owed(score)]
        if owed:
            self._observe(owed, unit)
            self._to_telemetry(unit, owed, started_ns, entry)
        for sink in self._sinks if owed else ():
            try:
                sink.emit(unit.record, owed)
            except Exception as error:
                record_internal_error(f"sink:{type(sink).__name__}", error)
        if self._outbox is not None and entry is not None:
            self._outbox.published(entry)

    def republish(self, *, is_ending: bool = False) -> int:
        """Publish scores that a process wrote and did not live to deliver; return of how many traces.

        Call it as often as you like. Detectors and sinks get them too, as those of another process are gone.

        Args:
            is_ending: nothing is being published beside it any more.
        """
        if self._outbox is None:
            return 0
        with self._republishing:
            try:
                found = self._outbox.leftovers(abandoned_s=0.0 if is_ending else _ABANDONED_S)
            except Exception as error:  # the file: it is looked at again
                record_internal_error("ragtrace.service.republish", error)
                return 0
            for pending in found:
                if pending.scores:  # of a newer ragtrace none may be readable
                    self.publish(_unit_of(pending), pending.scores, 0, pending.entry)
                else:
                    self._outbox.published(pending.entry)
            return len(found)

    def resend(self, *, older_s: float | None = None) -> int:
        """Send events again that did not arrive, and nothing else of their scores; return of how many traces."""
        if self._outbox is None:
            return 0
        with self._republishing:
            try:
                found = self._outbox.unsent(older_s=older_s)
            except Exception as error:
                record_internal_error("ragtrace.service.resend", error)
                return 0
            for pending in found:
                self._publisher.resend(_unit_of(pending), pending.scores, pending.entry)
            return len(found)

    def _postponed(self, scores: Sequence[Score] = ()) -> Outcome | None:
        return postponed(self._limiter.current.blocked(), scores) if self._limiter is not None else None

    @guarded
    def _announce(self, unit: Unit) -> None:
        """Let the series of a unit from another process exist at 0 before its scores: there it was captured."""
        self._publisher.instruments.precreate(unit.record.workflow, unit.record.model or None)

    def _say_no_metric(self, unit: Unit) -> None:
        if not self._has_said_no_metric:
            self._has_said_no_metric = True
            _log.warning(
                "units were drawn for %s and skipped (no_metric): this scorer has %s; give application and worker "
                "the same metrics",
                ", ".join(sorted(unit.rates)),
                ", ".join(metric.spec.name for metric in self._scorer.metrics),
            )

    @guarded
    def _observe(self, scores: Sequence[Score], unit: Unit) -> None:
        self._drift.observe(scores, self._publisher.instruments.workflow(unit.record))

    @guarded
    def _to_telemetry(
        self, unit: Unit, scores: Sequence[Score], started_ns: int, entry: OutboxEntry | None
    ) -> None:
        self._publisher.scored(unit, scores, started_ns, time.time_ns(), entry)


def _unit_of(pending: Pending) -> Unit:
    first = pending.scores[0]
    return Unit(
        record=pending.record,
        decision=first.stratum,
        probability=1.0 / first.weight if first.weight else 1.0,
    )
