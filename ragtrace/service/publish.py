"""Sends scores out as telemetry: the evaluation span, events and metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ragtrace.capture import guarded
from ragtrace.scoring.scorer import MAX_WEIGHT
from ragtrace.stores.outbox import COUNT, EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.capture import FinishedRun
    from ragtrace.metrics.base import Output
    from ragtrace.model import MetricResult, Score
    from ragtrace.queues import Unit
    from ragtrace.sampling import Draw
    from ragtrace.stores.base import OutboxEntry
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.spans.evaluation import EvaluationWriter


def unpriced(model: str, input_tokens: int, output_tokens: int) -> float | None:  # noqa: ARG001 - of any
    """Know no price."""
    return None


class Publisher:
    """Knows every place in OpenTelemetry where a score goes.

    Args:
        instruments: the metrics.
        evaluation: writes evaluation spans and events.
        outputs: every output of the chosen metrics by name.
        price_of: dollars of (model, prompt tokens, completion tokens); None where the price is unknown.
    """

    def __init__(
        self,
        *,
        instruments: Instruments,
        evaluation: EvaluationWriter,
        outputs: Mapping[str, Output],
        price_of: Callable[[str, int, int], float | None] = unpriced,
    ) -> None:
        self.instruments = instruments
        self._evaluation = evaluation
        self.outputs = outputs
        self._price_of = price_of

    def precreate(self, result: MetricResult) -> None:
        """Let a metric's label sets exist at 0 before its first score."""
        output = self.outputs.get(result.name)
        if output is not None:
            self.instruments.precreate_metric(result, output)

    def close(self) -> None:
        """Show nothing any more in the gauges."""
        self.instruments.close()

    def reset_after_fork(self) -> None:
        """Leave the windows to the parent, in a forked child."""
        self.instruments.reset_after_fork()

    def dropped(self, reason: str) -> None:
        """Count a run that was dropped before it was drawn."""
        self.instruments.traces("dropped", reason)

    def captured(self, captured: FinishedRun, draw: Draw) -> None:
        """Count a finished run, and pre-create the label sets of its scores."""
        counted = {"none": "skipped", "dropped": "dropped"}.get(draw.decision, "sampled")
        self.instruments.traces(counted, draw.reason)
        self.instruments.operations(captured)  # also pre-creates the label sets of its scores

    def scored(
        self,
        unit: Unit,
        scores: Sequence[Score],
        started_ns: int,
        ended_ns: int,
        entry: OutboxEntry | None = None,
    ) -> None:
        """Send all scores of one unit out, each way guarded on its own.

        Args:
            unit: what was scored.
            scores: its scores.
            started_ns: Unix ns at which scoring began; 0 of scores that an ended process left, which tell no times.
            ended_ns: Unix ns at which it ended.
            entry: says what of each score is owed; None = all.
        """
        if not started_ns:
            started_ns = ended_ns = _scored_ns(scores, ended_ns)
            is_left = True
        else:
            is_left = False
        sent = [score for score in scores if entry is None or entry.is_owed(score, EVENT)]
        if sent:
            self._to_span(unit, sent, started_ns, ended_ns, entry)
        counted = [score for score in scores if entry is None or entry.is_owed(score, COUNT)]
        if counted:
            self._to_metrics(unit, counted)
            self._to_self_metrics(unit, counted, started_ns, ended_ns, is_left=is_left)

    @guarded
    def resend(self, unit: Unit, scores: Sequence[Score], entry: OutboxEntry) -> None:
        """Write the log events again that did not arrive."""
        sent = [score for score in scores if entry.is_owed(score, EVENT)]
        self._evaluation.resend(unit.record, sent, ended_ns=_scored_ns(sent, time.time_ns()), marks=entry.marks)

    @guarded
    def _to_span(
        self,
        unit: Unit,
        scores: Sequence[Score],
        started_ns: int,
        ended_ns: int,
        entry: OutboxEntry | None,
    ) -> None:
        self._evaluation.write(
            unit.record,
            scores,
            is_root_sampled=unit.is_recorded,
            decision=unit.decision,
            reason=unit.reason,
            probability=unit.probability,
            started_ns=started_ns,
            ended_ns=ended_ns,
            root=unit.root,
            cost_usd=self._cost_usd(scores),
            marks=entry.marks if entry is not None else {},
        )

    @guarded
    def _to_metrics(self, unit: Unit, scores: Sequence[Score]) -> None:
        self.instruments.scored(unit.record, scores, self.outputs, is_recorded=unit.is_recorded)

    @guarded
    def _to_self_metrics(
        self, unit: Unit, scores: Sequence[Score], started_ns: int, ended_ns: int, *, is_left: bool
    ) -> None:
        self.instruments.evaluated(
            unit.record,
            scores,
            duration_s=None if is_left else (ended_ns - started_ns) / 1e9,
            lag_s=None if is_left else ended_ns / 1e9 - unit.record.ended,
            cost_usd=self._cost_usd(scores),
        )
        for score in scores:
            if score.weight is not None and score.weight >= MAX_WEIGHT:
                self.instruments.weight_capped(unit.record)

    def _cost_usd(self, scores: Sequence[Score]) -> float | None:
        """Return what the judge's calls for some scores cost; None when they cost nothing or a price is unknown."""
        costs = []
        for score in scores:
            result = score.result
            if result.llm_calls and result.judge is not None:
                model = result.judge.model.partition(":")[2] or result.judge.model
                costs.append(self._price_of(model, result.input_tokens, result.output_tokens))
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None


def _scored_ns(scores: Sequence[Score], default_ns: int) -> int:
    """Return when scores from a store were made, in Unix ns."""
    return next((int(score.scored_at * 1e9) for score in scores if score.scored_at > 0.0), default_ns)
