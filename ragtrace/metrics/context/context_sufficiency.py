"""Context sufficiency: whether the delivered contexts hold all that the question asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "context_sufficiency"


async def context_sufficiency(ctx: EvalContext) -> list[MetricResult]:
    """1.0 where the delivered contexts hold all that the question asks, else 0.0.

    Higher is better. It needs neither a reference nor an answer: a refusal and a wrong answer have it too. Facts
    may be combined from several contexts. A question with a false premise, or with a part that the contexts lack,
    has 0.0. The judge decides in the audit that faithfulness asks for.

    ``na``: missing_input:query, no_contexts, and unsupported_by_judge under a judge that compares words. Similarity
    of words tells sufficient from insufficient contexts with a balanced accuracy of at most .79 on 200 questions of
    CLAPnq, with the cut-off chosen on the same questions; a language model reached .93 in the paper. ``error``:
    judge_incomplete where the judge does not say, also after the repair. Source: Sufficient Context, Joren et al.,
    ICLR 2025.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Who built the lab?", answer="I do not know.", pools=(pool,))
        >>> reply = {"sufficient": False, "attempted": False, "noncommittal": True, "claims": [], "verdicts": []}
        >>> ctx = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
        >>> asyncio.run(evaluate([METRIC], ctx))[0].value
        0.0
    """
    found = await ctx.sufficiency()
    return [result(NAME, float(found.sufficient), {"contexts": len(ctx.contexts())})]


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        summary="Whether the delivered contexts hold all that the question asks (1 = sufficient).",
        needs=("query", "contexts", "judge"),
        outputs=(Output(name=NAME),),
        calls="1 judge call, shared with faithfulness; one more where that reply left it out",
        source="Sufficient Context, ICLR 2025",
        task="audit",
        more_tasks=("sufficiency",),
        abilities=("sufficiency",),
    ),
    context_sufficiency,
)
