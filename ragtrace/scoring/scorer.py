"""From a unit to its scores: the metrics that were chosen, under the judge that was chosen."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.capture.suppression import own_work
from ragtrace.judges.quiet import uninstrumented
from ragtrace.metrics.eval_context import EvalContext, Options
from ragtrace.metrics.evaluate import evaluate, threshold_of
from ragtrace.model import Score, ScoreKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Embedder, Judge, PairScorer
    from ragtrace.metrics.base import Metric, Output
    from ragtrace.metrics.deep_retrieval import DeepRetriever
    from ragtrace.model import MetricResult, RagRecord
    from ragtrace.queues import Unit

MAX_WEIGHT = 1e6  # of a probability so small that one score would outweigh a day


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Scores one unit at a time; coroutine-safe, so that many may be under way on one loop.

    Attributes:
        metrics: what to compute, in order.
        judge: who is asked.
        embedder: who embeds.
        pairs: who scores (premise, hypothesis) pairs.
        deep_retriever: who retrieves deeper, for some of the traces.
        options: settings of metrics.
        left_out: names of default metrics that judge, embedder and pair scorer can never compute.
    """

    metrics: tuple[Metric, ...]
    judge: Judge | None
    embedder: Embedder | None
    options: Options
    pairs: PairScorer | None = None
    deep_retriever: DeepRetriever | None = None
    left_out: tuple[str, ...] = ()

    def threshold_of(self, output: Output) -> float | None:
        """Return the pass threshold of an output where the judge gives the verdict."""
        return threshold_of(output, self.options, self.judge)

    def chosen(self, unit: Unit) -> list[Metric]:
        """Return the metrics that a unit was drawn for; none where another process drew it for others."""
        return [metric for metric in self.metrics if not unit.rates or metric.spec.name in unit.rates]

    async def score(self, unit: Unit) -> list[Score]:
        """Return every score of a unit; a judge's failure is a score of state ``error``."""
        chosen = self.chosen(unit)
        rates = {
            output.name: unit.rates.get(metric.spec.name, unit.probability) * self._share(metric)
            for metric in chosen
            for output in metric.spec.outputs
        }
        return self._signed(unit, await self._evaluated(unit.record, chosen), rates)

    def _share(self, metric: Metric) -> float:
        """Return with which probability a metric is computed for a trace that was drawn for it."""
        return self.deep_retriever.rate if metric.spec.uses_deep_pool and self.deep_retriever is not None else 1.0

    def deciding(self, scores: Sequence[Score]) -> list[Score]:
        """Return the scores of a unit that say whether it has its end: the judge's values and errors.

        Where it gave none, all of them: a unit is drawn for its verdicts, and a cosine that needs no judge must not
        end it while the judge is away.
        """
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
        """Return every result of a record, before sampling has a say."""
        return await self._evaluated(record, self.metrics)

    async def _evaluated(self, record: RagRecord, metrics: Sequence[Metric]) -> list[MetricResult]:
        case = EvalContext(
            record,
            judge=self.judge,
            embedder=self.embedder,
            pairs=self.pairs,
            options=self.options,
            deep_retriever=self.deep_retriever,
        )
        with uninstrumented(), own_work():
            return await evaluate(metrics, case)

    async def aclose(self) -> None:
        """Release the connections of judge and embedder."""
        for part in (self.judge, self.embedder):
            if part is not None:
                await part.aclose()

    def _signed(self, unit: Unit, results: Sequence[MetricResult], rates: Mapping[str, float]) -> list[Score]:
        now = time.time()
        record = unit.record
        return [
            Score(
                key=ScoreKey(
                    trace_id=record.trace_id, span_id=record.span_id, metric=result.key, version=result.version
                ),
                result=result,
                stratum=unit.decision,
                weight=weight_of(unit, rates.get(result.name)),
                scored_at=now,
            )
            for result in results
        ]


def weight_of(unit: Unit, rate: float | None = None) -> float | None:
    """Return 1 / inclusion probability, at most `MAX_WEIGHT`; None when the head probability is unknown.

    Args:
        unit: what was drawn.
        rate: the probability of the metric; default the unit's.
    """
    head, probability = unit.record.head_probability, unit.probability if rate is None else rate
    if head is None or head <= 0.0 or probability <= 0.0:
        return None
    return min(1.0 / (head * probability), MAX_WEIGHT)
