"""Context use: how many of the delivered contexts the answer drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.model import MetricResult

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext

NAME = "context_use"


class ContextUse:
    """Contexts that support a claim of the answer / contexts delivered, in [0, 1], higher is better.

    Blank contexts are left out. Low with a good answer says that fewer passages would do; it has no threshold, as
    one passage may hold all there is to say. Not `context_precision`, which asks whether a context is relevant,
    used or not. ``na``: no_answer, partial_run, no_contexts, abstained, no_claims. Coroutine-safe. Source:
    METRICS.md 2.6.

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

    spec = MetricSpec(
        name=NAME,
        summary="Share of the delivered contexts that support a claim of the answer.",
        needs=("answer", "contexts", "query", "judge"),
        required=("answer", "contexts", "judge"),
        outputs=(Output(name=NAME, threshold=None),),
        calls="1 judge call, shared with faithfulness",
        source="ragtrace",
        task="audit",
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return one result; raises JudgeError."""
        contexts = ctx.contexts()
        audit = await ctx.audit()
        if not audit.attempted:
            return [MetricResult(name=NAME, state="na", reason="abstained")]
        if not audit.claims:
            return [MetricResult(name=NAME, state="na", reason=audit.unscorable or "no_claims")]
        supporting = {index for claim in audit.claims if claim.verdict == "supported" for index in claim.sources}
        used = [passage.id for index, passage in contexts if index in supporting]
        details = {"contexts": len(contexts), "used": used}
        return [MetricResult(name=NAME, state="ok", value=len(used) / len(contexts), details=details)]


METRIC = ContextUse()
