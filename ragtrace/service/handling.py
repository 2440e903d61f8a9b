"""The scorer's side of a service: a job is scored, gets its end, and its scores go out."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, lost
from ragtrace.queues import Unit
from ragtrace.scoring import Outcome
from ragtrace.scoring.limits.sparing import spared
from ragtrace.scoring.retry import verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Score
    from ragtrace.queues import Job
    from ragtrace.scoring import Scorer
    from ragtrace.service.drift import DriftMonitor
    from ragtrace.service.limits import ServiceGate
    from ragtrace.service.publish import Publisher
    from ragtrace.service.storing import Storing
    from ragtrace.sinks.base import Sink

_log = logging.getLogger("ragtrace")
REPUBLISH_AFTER_S = 60.0


class Handling:
    """Handles jobs, and publishes scores. Called in the scorer's thread.

    Args:
        scorer: computes scores.
        publisher: sends them out as telemetry.
        drift: watches them.
        sinks: take them, one after the other.
        storing: keeps them, where there is a store; also one of the sinks, to note that they were published.
        gate: before the judge, where it has limits.
    """

    def __init__(
        self,
        *,
        scorer: Scorer,
        publisher: Publisher,
        drift: DriftMonitor,
        sinks: Sequence[Sink] = (),
        storing: Storing | None = None,
        gate: ServiceGate | None = None,
    ) -> None:
        self._scorer = scorer
        self._publisher = publisher
        self._drift = drift
        self._sinks = tuple(sinks)
        self._storing = storing
        self._gate = gate
        self._republish_at = 0.0
        self._has_said_no_metric = False

    async def handle(self, job: Job) -> Outcome:
        """Score a unit and return what becomes of it, with what publishes its scores once that is written."""
        started_ns = time.time_ns()
        if not self._scorer.chosen(job.unit):
            self._say_no_metric(job.unit)
            return Outcome(state="skipped", reason="no_metric")
        self._announce(job.unit)
        if (waits := self._spared()) is not None:
            return waits
        scores = await self._scorer.score(job.unit)
        deciding = self._scorer.deciding(scores)
        return self._spared(deciding) or verdict_of(
            deciding,
            job.attempt,
            write=self._storing.write(scores, job.unit.record) if self._storing is not None else None,
            also=self._storing.also(scores, job.unit.record) if self._storing is not None else None,
            then=lambda: self.publish(job.unit, scores, started_ns),
        )

    def publish(self, unit: Unit, scores: Sequence[Score], started_ns: int) -> None:
        """Send scores everywhere, each way guarded on its own."""
        self._observe(scores, unit)
        self._to_telemetry(unit, scores, started_ns)
        for sink in self._sinks:
            try:
                sink.emit(unit.record, scores)
            except Exception as error:
                lost(f"sink:{type(sink).__name__}", error)

    def republish(self) -> None:
        """Publish what a killed scorer had written in the spool's transaction and not published: at least once.

        Call it as often as you like; it looks once a minute.
        """
        now = time.time()
        if self._storing is None or not self._storing.is_joined or now < self._republish_at:
            return
        self._republish_at = now + REPUBLISH_AFTER_S
        # What is younger, another scorer has just written and is about to publish.
        for pending in self._storing.unpublished(before=now - REPUBLISH_AFTER_S):
            if pending.scores:  # of a newer ragtrace none may be readable
                first = pending.scores[0]
                probability = 1.0 / first.weight if first.weight else 1.0
                unit = Unit(record=pending.record, decision=first.stratum, probability=probability)
                self.publish(unit, pending.scores, time.time_ns())
            self._storing.store.exported(pending.marks)

    def _spared(self, scores: Sequence[Score] = ()) -> Outcome | None:
        return spared(self._gate.now.closed(), scores) if self._gate is not None else None

    @guarded
    def _announce(self, unit: Unit) -> None:
        """Let the series of a unit from another process exist at 0 before its scores: there it was captured."""
        self._publisher.instruments.eligible(unit.record)

    def _say_no_metric(self, unit: Unit) -> None:
        if not self._has_said_no_metric:
            self._has_said_no_metric = True
            _log.warning(
                "units were drawn for %s and skipped (no_metric): this scorer has %s; give application and worker "
                "the same metrics",
                ", ".join(sorted(unit.rates)),
                ", ".join(metric.declaration.name for metric in self._scorer.metrics),
            )

    @guarded
    def _observe(self, scores: Sequence[Score], unit: Unit) -> None:
        self._drift.observe(scores, self._publisher.instruments.workflow(unit.record))

    @guarded
    def _to_telemetry(self, unit: Unit, scores: Sequence[Score], started_ns: int) -> None:
        self._publisher.scored(unit, scores, started_ns, time.time_ns())
