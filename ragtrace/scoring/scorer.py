"""Scores a unit with the chosen metrics and judge, and decides its end: scored, invalid, or tried again."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.capture.suppression import own_work, uninstrumented
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate, is_computable, is_due, threshold_of
from ragtrace.model import MetricResult, Score, ScoreKey
from ragtrace.queues.base import MAX_ATTEMPTS
from ragtrace.sampling.second import is_drawn_again
from ragtrace.scoring.first_judge import asks_judge, is_answer
from ragtrace.scoring.worker import Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.judges.base import Embedder, Judge, PairScorer
    from ragtrace.metrics.base import Metric, Output
    from ragtrace.metrics.deep_retrieval import DeepRetriever
    from ragtrace.model import RagRecord, State
    from ragtrace.queues import Unit
    from ragtrace.scoring.first_judge import FirstJudge
    from ragtrace.scoring.limits import Blocked

MAX_WEIGHT = 1e6  # of a probability so small that one score would outweigh a day
# Failures that pass by themselves. A refusal or a reply of a wrong form would be the same again.
TRANSIENT = frozenset({"judge_timeout", "judge_unavailable", "judge_error"})
PASSING = TRANSIENT | {"budget_exceeded"}
_WAITS_S = (2.0, 60.0, 300.0, 1_200.0)  # attempts of one call repeat within seconds; these outlast an outage
_OVER_BUDGET_S = 300.0  # for calls larger than the budget of a day
_OURS = "budget_exceeded"  # never the reason of a judge's failure
_AWAY = frozenset({_OURS, "judge_unavailable", "judge_timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Scores one unit at a time; coroutine-safe, so that many may be under way on one loop.

    Attributes:
        metrics: computed in this order.
        judge: answers the tasks of metrics.
        embedder: turns texts into vectors.
        pairs: scores (premise, hypothesis) pairs.
        deep_retriever: retrieves deeper, for some of the traces.
        options: settings of metrics.
        left_out: names of default metrics that judge, embedder and pair scorer can never compute.
        first: scores every unit, and tells which of them `judge` scores too; None = `judge` scores all.
    """

    metrics: tuple[Metric, ...]
    judge: Judge | None
    embedder: Embedder | None
    options: MetricOptions
    pairs: PairScorer | None = None
    deep_retriever: DeepRetriever | None = None
    left_out: tuple[str, ...] = ()
    first: FirstJudge | None = None

    def threshold_of(self, output: Output, judge: str | None = None) -> float | None:
        """Return the pass threshold of an output where the judge gives the verdict; of two, the named one."""
        first = self.first.judge if self.first is not None else None
        return threshold_of(
            output, self.options, first if first is not None and first.name == judge else self.judge
        )

    def chosen(self, unit: Unit) -> list[Metric]:
        """Return the metrics that a unit was drawn for; none where another process drew it for others."""
        return [metric for metric in self.metrics if not unit.rates or metric.spec.name in unit.rates]

    async def score(self, unit: Unit) -> list[Score]:
        """Return every score of a unit; a judge's failure is a score of state ``error``."""
        chosen = self.chosen(unit)
        if self.first is not None:
            return await self._by_two(self.first, unit, chosen)
        return self._scores(unit, chosen, await self._evaluated(unit.record, chosen, self.judge))

    async def _by_two(self, first: FirstJudge, unit: Unit, chosen: Sequence[Metric]) -> list[Score]:
        """Score a unit with the first judge, and with the other where the second draw takes it."""
        results = await self._evaluated(unit.record, first.able(chosen), first.judge)
        scores = self._scores(unit, chosen, [result for result in results if is_answer(result)])
        rate = first.rate_of(results)
        if not is_drawn_again(unit.record.trace_id, rate):
            return scores
        asked = [metric for metric in chosen if asks_judge(metric.spec)]
        again = self._scores(unit, asked, await self._evaluated(unit.record, asked, self.judge), rate)
        known = {score.key for score in scores}
        return scores + [score for score in again if score.key not in known]

    def unscored(self, unit: Unit, state: State, reason: str) -> list[Score]:
        """Return a score without a value for each output that a unit should have a score of, and was not asked for.

        Args:
            unit: with its weights.
            state: ``error`` or ``skipped``.
            reason: of that state.
        """
        case = EvalContext(
            unit.record, judge=self.judge, embedder=self.embedder, pairs=self.pairs, options=self.options
        )
        chosen = [metric for metric in self.chosen(unit) if self._can_score(metric) and is_due(metric.spec, case)]
        outputs = [output.name for metric in chosen for output in metric.spec.outputs]
        results = [MetricResult(name=name, state=state, reason=reason) for name in outputs]
        return self._scores(unit, chosen, results)

    def _can_score(self, metric: Metric) -> bool:
        """Return whether one of the judges can ever give the metric a value: else no run lacks it."""
        judges = (self.judge, *((self.first.judge,) if self.first is not None else ()))
        return any(is_computable(metric, judge, self.embedder, self.pairs) for judge in judges)

    def _scores(
        self, unit: Unit, chosen: Sequence[Metric], results: Sequence[MetricResult], second_rate: float = 1.0
    ) -> list[Score]:
        """Return results as scores, weighted by the probabilities of both draws."""
        rates: dict[str, float] = {}
        for metric in chosen:
            rate = unit.rates.get(metric.spec.name, unit.probability) * second_rate
            if metric.spec.uses_deep_pool and self.deep_retriever is not None:
                rate *= self.deep_retriever.rate
            rates |= dict.fromkeys((output.name for output in metric.spec.outputs), rate)
        trace_id, span_id, now = unit.record.trace_id, unit.record.span_id, time.time()
        return [
            Score(
                key=ScoreKey(trace_id=trace_id, span_id=span_id, metric=result.key, version=result.version),
                result=result,
                stratum=unit.decision,
                weight=weight_of(unit, rates.get(result.name)),
                scored_at=now,
            )
            for result in results
        ]

    def deciding(self, scores: Sequence[Score], *, is_late: bool = False) -> list[Score]:
        """Return the scores that decide a unit's end: the judge's values and errors, or all without any.

        A unit is drawn for its verdicts, so a cosine that needs no judge must not end it while the judge is away.

        Args:
            scores: of one unit.
            is_late: of two judges, the second one's errors hold the unit up no longer.
        """
        if is_late and self.first is not None:
            return [score for score in scores if score.result.state != "error"] or list(scores)
        name = self.judge.name if self.judge is not None else None
        judged = [
            score
            for score in scores
            if score.result.judge is not None
            and score.result.judge.model == name
            and score.result.state in {"ok", "error"}
        ]
        return judged or list(scores)

    async def results(self, record: RagRecord) -> list[MetricResult]:
        """Return every result of a record, whatever the sampling rates."""
        return await self._evaluated(record, self.metrics, self.judge)

    async def _evaluated(
        self, record: RagRecord, metrics: Sequence[Metric], judge: Judge | None
    ) -> list[MetricResult]:
        case = EvalContext(
            record,
            judge=judge,
            embedder=self.embedder,
            pairs=self.pairs,
            options=self.options,
            deep_retriever=self.deep_retriever,
        )
        with uninstrumented(), own_work():
            results = await evaluate(metrics, case)
        # What the judge can never compute is no gap of this run, whatever else the run lacks.
        gaps = {it.name for it in results if it.state == "na"}
        beyond = {
            output.name
            for metric in metrics
            if not gaps.isdisjoint(output.name for output in metric.spec.outputs)
            and not is_computable(metric, judge, self.embedder, self.pairs)
            for output in metric.spec.outputs
        }
        return [replace(it, reason="unsupported_by_judge") if it.name in gaps & beyond else it for it in results]

    async def aclose(self) -> None:
        """Release the connections of judge and embedder."""
        for part in (self.judge, self.embedder):
            if part is not None:
                await part.aclose()


def weight_of(unit: Unit, rate: float | None = None) -> float | None:
    """Return 1 / inclusion probability, at most `MAX_WEIGHT`; None when the head probability is unknown.

    The inclusion probability is the product of head, draw and what full queues kept.

    Args:
        unit: the drawn unit.
        rate: the probability of the metric; default the unit's.
    """
    head, probability = unit.record.head_probability, unit.probability if rate is None else rate
    included = (head or 0.0) * probability * unit.kept
    return min(1.0 / included, MAX_WEIGHT) if included > 0.0 else None


def verdict_of(
    scores: Sequence[Score],
    attempt: int,
    *,
    write: Callable[[], None] | None = None,
    also: Callable[[sqlite3.Connection], None] | None = None,
    then: Callable[[], None] | None = None,
    random_of: Callable[[float, float], float] = random.uniform,
) -> Outcome:
    """Return what becomes of a unit with these scores.

    One value, or nothing but ``na``, is a scored unit. Errors alone are tried again while one of them may pass and
    attempts are left; otherwise the unit is ``invalid``, and its errors are published as such.

    Args:
        scores: of one unit, those that decide (`ragtrace.scoring.Scorer.deciding`).
        attempt: which try this was, from 1.
        write: writes the scores before the end.
        also: for the transaction of the end.
        then: publishes.
        random_of: uniform in two bounds.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> def failed(reason):
        ...     result = MetricResult(name="faithfulness", state="error", reason=reason)
        ...     key = ScoreKey(trace_id="t", span_id="s", metric="faithfulness", version="")
        ...     return Score(key=key, result=result)
        >>> verdict_of([failed("judge_refused")], 1).state
        'invalid'
        >>> verdict_of([failed("judge_timeout")], 1).retry_in_s is None
        False
    """
    errors = {score.result.reason for score in scores if score.result.state == "error"}
    if not errors or any(score.result.state == "ok" for score in scores):
        return Outcome(state="scored", write=write, also=also, then=then)
    reason = min(str(error) for error in errors)
    if errors & PASSING and attempt < MAX_ATTEMPTS:
        most_s = _WAITS_S[min(attempt - 1, len(_WAITS_S) - 1)]
        return Outcome(reason=reason, retry_in_s=random_of(0.0, most_s))
    return Outcome(state="invalid", reason=reason, write=write, also=also, then=then)


def postponed(blocked: Blocked | None, scores: Sequence[Score] = ()) -> Outcome | None:
    """Return the outcome of a unit that has to wait for the limits; None when it may go on.

    Call it before a unit is scored, without scores, and afterwards with them. A unit with one value is scored,
    whatever else failed. A unit with errors of an absent judge or a spent budget alone comes back when calls may
    pass. No attempt is counted, and the queue ends the unit at its age.

    Args:
        blocked: what `JudgeLimiter.blocked` says now.
        scores: the deciding scores of a scored unit (`Scorer.deciding`).

    Example:
        >>> from ragtrace.scoring.limits import Blocked
        >>> postponed(Blocked(reason="held_401", wait_s=300.0)).retry_in_s
        300.0
        >>> postponed(None) is None
        True
    """
    errors = {score.result.reason for score in scores if score.result.state == "error"}
    has_value = any(score.result.state == "ok" for score in scores)
    if scores and (has_value or not errors or not errors <= _AWAY):
        return None
    if blocked is not None:
        return Outcome(reason=blocked.reason, retry_in_s=blocked.wait_s, is_spared=True)
    return Outcome(reason=_OURS, retry_in_s=_OVER_BUDGET_S, is_spared=True) if _OURS in errors else None
