"""Handle a job in the scorer's thread: score it, return its outcome, and publish its scores."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, record_internal_error
from ragtrace.judges.base import JudgePanel
from ragtrace.model import ERROR_REASONS, SKIP_REASONS
from ragtrace.queues import Unit
from ragtrace.scoring import Outcome
from ragtrace.scoring.limits.trouble import Trouble
from ragtrace.scoring.scorer import MAX_WEIGHT, PASSING, postponed, verdict_of
from ragtrace.stores.base import OutboxEntry
from ragtrace.stores.outbox import COUNT, EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.judges.base import Judge
    from ragtrace.metrics.base import Output
    from ragtrace.model import Score, State
    from ragtrace.queues import Job
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.baseline_monitor import BaselineMonitor
    from ragtrace.service.means.combined import CombinedMeans
    from ragtrace.service.means.mix import MixMonitor
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.sinks.base import Sink
    from ragtrace.stores import Pending
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.spans.evaluation import EvaluationWriter

_log = logging.getLogger("ragtrace")
_ABANDONED_S = 60.0
_NS = 1e9
_UNUSABLE = 3  # runs in a row; at the start one is enough
_LATE_S = 900.0  # an outage of minutes is waited for; then the first judge's scores leave without the second's


class ScoreHandler:
    """Handles jobs and publishes scores. Called in the scorer's thread, and by a shutdown once that has ended.

    `outputs` are those of the chosen metrics by name. `outbox` is None without a store, `limiter` where the judge
    costs nothing, and `combined` without a first judge.
    """

    def __init__(
        self,
        *,
        scorer: Scorer,
        instruments: Instruments,
        evaluation: EvaluationWriter,
        outputs: Mapping[str, Output],
        baselines: BaselineMonitor,
        mix: MixMonitor,
        sinks: Sequence[Sink] = (),
        outbox: ScoreOutbox | None = None,
        limiter: JudgeLimiter | None = None,
        combined: CombinedMeans | None = None,
    ) -> None:
        self._scorer = scorer
        self._instruments = instruments
        self._evaluation = evaluation
        self._outputs = outputs
        self._baselines = baselines
        self._mix = mix
        self._sinks = tuple(sinks)
        self._outbox = outbox
        self._limiter = limiter
        self._models = _models_of(scorer.judge)
        self._combined = combined
        self._has_said_no_metric = False
        self._replies, self._unusable = Trouble(), _UNUSABLE - 1
        self._is_republishing = False

    async def handle(self, job: Job) -> Outcome:
        """Score a unit and return its outcome, with a callback that publishes its scores once they are written."""
        started_ns = time.time_ns()
        if not self._scorer.chosen(job.unit):
            self._say_no_metric(job.unit)
            return Outcome(state="skipped", reason="no_metric")
        # A unit from another process was captured there: its series exist at 0 before its scores.
        record = job.unit.record
        self._instruments.precreate(
            record.workflow, record.model or None, record.prompt_name, record.prompt_version
        )
        if self._scorer.first is None and (waits := self._postponed()) is not None:
            return waits
        scores = await self._scorer.score(job.unit)
        deciding, entry = self._scorer.deciding(scores, is_late=_is_late(job.unit)), OutboxEntry()
        outcome = self._postponed(deciding) or verdict_of(
            deciding,
            job.attempt,
            write=self._outbox.write(scores, job.unit.record, entry) if self._outbox is not None else None,
            also=self._outbox.also(scores, job.unit.record, entry) if self._outbox is not None else None,
            then=lambda: self.publish(job.unit, scores, started_ns, entry),
        )
        self._note_replies(outcome)
        return outcome if outcome.retry_in_s is None else replace(outcome, scores=scores)

    def _note_replies(self, outcome: Outcome) -> None:
        """Have the log say that a judge answers, and nothing can be made of it."""
        if outcome.state == "scored" and outcome.retry_in_s is None:
            self._unusable = 0
            self._replies.is_over()
        elif outcome.state == "invalid" and outcome.reason not in PASSING and self._scorer.judge is not None:
            self._unusable += 1
            if self._unusable >= _UNUSABLE:
                why = f"{self._scorer.judge.name} answers, and no score can be made of it ({outcome.reason})"
                self._replies.tell(outcome.reason, why, "such runs get no score")

    def missed(self, unit: Unit, outcome: Outcome) -> Unit:
        """Count a unit's scores as missing at its first failed try, and return the unit with what was counted.

        Args:
            unit: waits for another try, or will have none.
            outcome: with the scores that were found.
        """
        if unit.missed or unit.record.revision:
            return unit
        reason = _reason_of(outcome)
        scores = outcome.scores or self._scorer.unscored(unit, "error", reason)
        if self._combined is not None:
            self._combined.observe(unit.record, scores)
        return replace(unit, missed=self._instruments.waits(unit.record, scores, reason, self._has_other))

    @guarded
    def lost(self, unit: Unit, reason: str, runs: int = 1) -> None:
        """Count a unit that gets no score as missing, unless it was counted before; from any thread.

        Args:
            unit: with the probabilities that give its weights.
            reason: for which it was lost.
            runs: that were lost alike.
        """
        if unit.missed or unit.record.revision:
            return
        state: State = "error" if reason == "internal_error" else "skipped"
        known = reason if state == "error" or reason in SKIP_REASONS else "evicted"
        self._instruments.lost(unit.record, self._scorer.unscored(unit, state, known), runs=runs)

    @property
    def _has_other(self) -> Callable[[Score], bool] | None:
        first = self._scorer.first
        return first.gave if first is not None else None

    def publish(
        self, unit: Unit, scores: Sequence[Score], started_ns: int, entry: OutboxEntry | None = None
    ) -> None:
        """Send scores everywhere, each way guarded on its own; not those that another process has sent.

        Args:
            unit: the scored unit.
            scores: of the unit.
            started_ns: Unix ns at which scoring began; 0 of scores that an ended process left, which tell no times.
            entry: the deliveries owed for each score; None = all.
        """
        entry = entry or OutboxEntry()
        owed = [score for score in scores if entry.is_owed(score)]
        if owed:
            is_first = not unit.record.revision  # a later one replaces scores that the sums already have
            if is_first:
                self._mix.observe(owed, self._instruments.workflow(unit.record), unit.record)
                self._baselines.observe(owed, self._instruments.workflow(unit.record), unit.record)
            if self._combined is not None and is_first:
                self._combined.observe(unit.record, owed)
            ended_ns = time.time_ns() if started_ns else _scored_ns(owed)
            self._write(unit, owed, started_ns or ended_ns, ended_ns, entry)
            if is_first:
                self._count(unit, owed, (started_ns, ended_ns) if started_ns else None, entry)
        for sink in self._sinks if owed else ():
            try:
                sink.emit(unit.record, owed)
            except Exception as error:
                record_internal_error(f"sink:{type(sink).__name__}", error)
        if self._outbox is not None:
            self._outbox.published(entry)

    @guarded
    def _write(
        self, unit: Unit, scores: Sequence[Score], started_ns: int, ended_ns: int, entry: OutboxEntry
    ) -> None:
        """Write the evaluation span and its events."""
        sent = [score for score in scores if entry.is_owed(score, EVENT)]
        if not sent:
            return
        self._evaluation.write(
            unit.record,
            sent,
            is_root_sampled=unit.is_recorded,
            decision=unit.decision,
            reason=unit.reason,
            probability=unit.probability * unit.kept,
            started_ns=started_ns,
            ended_ns=ended_ns,
            root=unit.root,
            cost_usd=self._cost_usd(sent),
            marks=entry.marks,
        )

    @guarded
    def _count(
        self, unit: Unit, scores: Sequence[Score], times_ns: tuple[int, int] | None, entry: OutboxEntry
    ) -> None:
        """Count scores, and what scoring took."""
        counted = [score for score in scores if entry.is_owed(score, COUNT)]
        if not counted:
            return
        self._instruments.scored(
            unit.record,
            counted,
            self._outputs,
            is_recorded=unit.is_recorded,
            has_other=self._has_other,
            missed=unit.missed,
        )
        self._instruments.evaluated(
            unit.record,
            counted,
            duration_s=(times_ns[1] - times_ns[0]) / _NS if times_ns else None,
            lag_s=times_ns[1] / _NS - unit.record.ended if times_ns else None,
            cost_usd=self._cost_usd(counted),
        )
        for score in counted:
            if score.weight is not None and score.weight >= MAX_WEIGHT:
                self._instruments.weight_capped(unit.record)

    def _cost_usd(self, scores: Sequence[Score]) -> float | None:
        """Return what the judge's calls for some scores cost; None when they cost nothing or a price is unknown."""
        if self._limiter is None:
            return None
        costs = []
        for result in [score.result for score in scores]:
            if result.llm_calls and result.judge is not None:
                model = result.judge.model.partition(":")[2] or result.judge.model
                costs.append(self._limiter.prices.price_of(model, result.input_tokens, result.output_tokens))
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    @property
    def is_republishing(self) -> bool:
        """True while scores that a process left are claimed and published; any thread may ask."""
        return self._is_republishing

    def republish(self, *, is_ending: bool = False) -> int:
        """Publish scores that a process wrote and did not live to deliver; return of how many traces.

        Call it as often as you like. Baselines and sinks get them too, as those of another process are gone.

        Args:
            is_ending: nothing is being published beside it any more.
        """
        if self._outbox is None:
            return 0
        self._is_republishing = True
        try:
            return self._republish(self._outbox, abandoned_s=0.0 if is_ending else _ABANDONED_S)
        finally:
            self._is_republishing = False

    def _republish(self, outbox: ScoreOutbox, *, abandoned_s: float) -> int:
        try:
            found = outbox.leftovers(abandoned_s=abandoned_s)
        except Exception as error:  # the file: it is looked at again
            record_internal_error("ragtrace.service.republish", error)
            return 0
        for pending in found:
            if pending.scores:  # of a newer ragtrace none may be readable
                self.publish(_unit_of(pending), pending.scores, 0, pending.entry)
            else:
                outbox.published(pending.entry)
        return len(found)

    def resend(self, *, older_s: float | None = None) -> int:
        """Send events again that did not arrive, and nothing else of their scores; return of how many traces."""
        if self._outbox is None:
            return 0
        try:
            found = self._outbox.unsent(older_s=older_s)
        except Exception as error:
            record_internal_error("ragtrace.service.resend", error)
            return 0
        for pending in found:
            self._resend(pending)
        return len(found)

    @guarded
    def _resend(self, pending: Pending) -> None:
        sent = [score for score in pending.scores if pending.entry.is_owed(score, EVENT)]
        self._evaluation.resend(pending.record, sent, ended_ns=_scored_ns(sent), marks=pending.entry.marks)

    def _postponed(self, scores: Sequence[Score] = ()) -> Outcome | None:
        return postponed(self._limiter.blocked(self._models), scores) if self._limiter is not None else None

    def _say_no_metric(self, unit: Unit) -> None:
        if not self._has_said_no_metric:
            self._has_said_no_metric = True
            _log.warning(
                "units were drawn for %s and skipped (no_metric): this scorer has %s; give application and worker "
                "the same metrics",
                ", ".join(sorted(unit.rates)),
                ", ".join(metric.spec.name for metric in self._scorer.metrics),
            )


def _models_of(judge: Judge | None) -> frozenset[str]:
    """Return the names under which a judge asks its server."""
    members = judge.members if isinstance(judge, JudgePanel) else [judge] if judge is not None else []
    return frozenset(member.name.partition(":")[2] or member.name for member in members)


def _reason_of(outcome: Outcome) -> str:
    """Return why a unit has no scores yet, as a reason of state ``error``; a stop of calls is an absent judge."""
    if outcome.state == "failed":
        return "internal_error"
    return outcome.reason if outcome.reason in ERROR_REASONS else "judge_unavailable"


def _is_late(unit: Unit) -> bool:
    return 0.0 < unit.record.ended < time.time() - _LATE_S


def _unit_of(pending: Pending) -> Unit:
    first = pending.scores[0]
    return Unit(
        record=pending.record,
        decision=first.stratum,
        probability=1.0 / first.weight if first.weight else 1.0,
    )


def _scored_ns(scores: Sequence[Score]) -> int:
    """Return when scores from a store were made, in Unix ns."""
    return next((int(score.scored_at * _NS) for score in scores if score.scored_at > 0.0), time.time_ns())
