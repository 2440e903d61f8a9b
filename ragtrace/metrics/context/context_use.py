"""Context use: the share of the delivered contexts that the answer drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, claims_lacking, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "context_use"


async def context_use(ctx: EvalContext) -> list[MetricResult]:
    """Contexts that support a claim of the answer / contexts delivered.

    In [0, 1], higher is better. Blank contexts are left out. A low value under a good answer says that fewer
    passages would do. It has no threshold, because one passage may hold all there is to say. `context_precision`
    asks whether a context is relevant, used or not. ``na``: no_answer, partial_run, no_contexts, abstained,
    no_claims. Source: ragtrace.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> texts = ("Parcels reach Oslo within two working days.", "The shop sells tea.")
        >>> passages = tuple(Passage(id=text[:3], text=text, rank=i) for i, text in enumerate(texts, start=1))
        >>> record = RagRecord(
        ...     id="1",
        ...     query="When do parcels come?",
        ...     answer="Parcels reach Oslo within two working days.",
        ...     outcome="answered",
        ...     pools=(Pool(stage="used", passages=passages),),
        ... )
        >>> asyncio.run(evaluate([METRIC], EvalContext(record, judge=OverlapJudge())))[0].value
        0.5
    """
    contexts = ctx.contexts()
    audit = await ctx.audit()
    lacking = claims_lacking(audit)
    if lacking is not None:
        return [result(NAME, lacking)]
    supporting = {index for claim in audit.claims if claim.verdict == "supported" for index in claim.sources}
    used = [passage.id for index, passage in contexts if index in supporting]
    details = {"contexts": len(contexts), "used": used}
    return [result(NAME, len(used) / len(contexts), details)]


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        summary="Share of the delivered contexts that support a claim of the answer.",
        needs=("answer", "contexts", "query", "judge"),
        required=("answer", "contexts", "judge"),
        outputs=(Output(name=NAME, threshold=None),),
        calls="1 judge call, shared with faithfulness",
        source="ragtrace",
        task="audit",
    ),
    context_use,
)
