"""Context recall: the share of the facts of the reference that the contexts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.judges.base import Facts
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


class ContextRecall:
    """Facts of the reference that a delivered context holds / all its facts, in [0, 1], higher is better.

    ``na``: missing_input:reference without one, no_claims where it holds no fact (ragas NaN, llm4s 1.0, deepeval
    0). No context gives 0.0 without a call, because there was something to find and nothing was retrieved.
    ``details.facts`` names the contexts of each fact by 0-based index. Coroutine-safe. Source: RAGAS context
    recall.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> asyncio.run(METRIC.compute(EvalContext(RagRecord(id="1", reference="Oslo is in Norway."))))[0].value
        0.0
    """

    spec = MetricSpec(
        name="context_recall",
        summary="Share of the reference's facts that the delivered contexts hold.",
        needs=("reference", "contexts", "judge"),
        required=("reference",),
        task="facts",
        outputs=(Output(name="context_recall"),),
        calls="1 judge call",
        source="ragas context recall",
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return the value; raises JudgeError when the judge has no usable attribution."""
        if not (ctx.record.reference or "").strip():
            return [self._na("missing_input:reference")]
        if not ctx.contexts():
            details = {"facts": [], "contexts": 0}
            return [result("context_recall", 0.0, details)]
        facts = await ctx.facts()
        return [self._over(facts, len(ctx.contexts()))]

    def _over(self, verdict: Facts, n_contexts: int) -> MetricResult:
        if not verdict.facts:
            return self._na("no_claims")
        attributed = sum(bool(fact.sources) for fact in verdict.facts)
        details = {
            "facts": [{"text": fact.text, "sources": list(fact.sources)} for fact in verdict.facts],
            "contexts": n_contexts,
        }
        value = attributed / len(verdict.facts)
        return result("context_recall", value, details)

    @staticmethod
    def _na(reason: str) -> MetricResult:
        return result("context_recall", reason)


METRIC = ContextRecall()
