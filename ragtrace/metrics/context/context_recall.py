"""Context recall: the share of the facts of the reference that the contexts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


async def context_recall(ctx: EvalContext) -> list[MetricResult]:
    """Facts of the reference that a delivered context holds / all its facts.

    In [0, 1], higher is better. ``na``: missing_input:reference without one, no_claims where it holds no fact
    (ragas NaN, llm4s 1.0, deepeval 0). No context gives 0.0 without a call, because there was something to find and
    nothing was retrieved. ``details.facts`` names the contexts of each fact by 0-based index. Source: RAGAS context
    recall.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> asyncio.run(METRIC.compute(EvalContext(RagRecord(id="1", reference="Oslo is in Norway."))))[0].value
        0.0
    """
    contexts = ctx.contexts()
    if not contexts:
        return [result("context_recall", 0.0, {"facts": [], "contexts": 0})]
    facts = (await ctx.facts()).facts
    if not facts:
        return METRIC.spec.every("no_claims")
    listed = [{"text": fact.text, "sources": list(fact.sources)} for fact in facts]
    value = sum(bool(fact.sources) for fact in facts) / len(facts)
    return [result("context_recall", value, {"facts": listed, "contexts": len(contexts)})]


METRIC = CoroutineMetric(
    MetricSpec(
        name="context_recall",
        summary="Share of the reference's facts that the delivered contexts hold.",
        needs=("reference", "contexts", "judge"),
        required=("reference",),
        task="facts",
        outputs=(Output(name="context_recall"),),
        calls="1 judge call",
        source="ragas context recall",
    ),
    context_recall,
)
