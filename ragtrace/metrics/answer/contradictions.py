"""Contradictions: the share of the answer that says the opposite of the delivered contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import JudgeUnsupported
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, claims_lacking, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "contradicted_rate"


async def contradictions(ctx: EvalContext) -> list[MetricResult]:
    """Contradicted claims / claims of the answer.

    In [0, 1], lower is better. A claim that the contexts merely do not hold is no contradiction: faithfulness
    counts it. ``na``: no_answer, partial_run, no_contexts, abstained, no_claims, and unsupported_by_judge under a
    judge that cannot see a contradiction, for example one that compares words. Source: ragtrace.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> rows = [{"id": 1, "verdict": "contradicted", "sources": [1]}, {"id": 2, "verdict": "supported"}]
        >>> reply = {"attempted": True, "noncommittal": False, "claims": ["a", "b"], "verdicts": rows}
        >>> pool = Pool(stage="used", passages=(Passage(id="p", text="Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="?", answer="a b", outcome="answered", pools=(pool,))
        >>> ctx = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
        >>> asyncio.run(evaluate([METRIC], ctx))[0].value
        0.5
    """
    if ctx.judge is None or "contradictions" not in ctx.judge.tasks:
        raise JudgeUnsupported("the judge cannot see contradictions")
    audit = await ctx.audit()
    lacking = claims_lacking(audit)
    if lacking is not None:
        return [result(NAME, lacking)]
    found = [claim.text for claim in audit.claims if claim.verdict == "contradicted"]
    details = {"n_claims": len(audit.claims), "contradicted": found, "truncated": audit.truncated}
    return [result(NAME, len(found) / len(audit.claims), details)]


METRIC = CoroutineMetric(
    MetricSpec(
        name="contradictions",
        summary="Share of the answer's claims that the contexts contradict.",
        needs=("answer", "contexts", "query", "judge"),
        required=("answer", "contexts", "judge"),
        outputs=(Output(name=NAME, direction="down", threshold=0.2),),
        calls="1 judge call, shared with faithfulness",
        source="ragtrace",
        task="audit",
        abilities=("contradictions",),
    ),
    contradictions,
)
