"""Context precision: whether the contexts that helped stand before those that did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import JudgeIncomplete
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, answer_lacking, result
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


async def context_precision(ctx: EvalContext, *, needs_reference: bool = False) -> list[MetricResult]:
    """Mean precision at each relevant context, in the order delivered.

    In [0, 1], higher is better. It is the sum over relevant places i of (relevant up to i / i), over the number of
    relevant contexts. A context is relevant where the judge says that it helps to reach the reference or, in a
    record without one, the answer. ``details.mode`` says which; never average the two together. The value ignores
    what was missed, so it is not the AP of information retrieval. No relevant context gives 0.0, as in ragas, llm4s
    and deepeval. Blank contexts are not judged.

    ``na``: missing_input:query, no_answer and partial_run (without reference), no_contexts. ``error``:
    judge_incomplete where a context has no verdict; llm4s counts it as irrelevant. Source: RAGAS context precision.

    Args:
        ctx: the record and the judge.
        needs_reference: a record without a reference is ``na missing_input:reference``.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> reply = {"verdicts": [{"id": 1, "relevant": False}, {"id": 2, "relevant": True}]}
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", query="Where?", answer="Oslo.", pools=(pool,))
        >>> ctx = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
        >>> asyncio.run(METRIC.compute(ctx))[0].value
        0.5
    """
    has_reference = bool((ctx.record.reference or "").strip())
    mode = "with_reference" if has_reference or needs_reference else "without_reference"
    missing = _missing(ctx, has_reference=has_reference, needs_reference=needs_reference)
    if missing is not None:
        return METRIC.spec.every(missing, {"mode": mode})
    relevant = (await ctx.relevance()).relevant
    indexes = [index for index, _ in ctx.ranked_contexts()]
    if set(relevant) != set(indexes):
        raise JudgeIncomplete("the judge's verdicts are not those of the contexts")
    found = [relevant[index] for index in indexes]
    details = {"mode": mode, "relevant": [index for index in indexes if relevant[index]], "contexts": indexes}
    return [result("context_precision", rank.average_precision(found, sum(found)), details)]


def _missing(ctx: EvalContext, *, has_reference: bool, needs_reference: bool) -> str | None:
    if not ctx.record.query.strip():
        return "missing_input:query"
    if needs_reference and not has_reference:
        return "missing_input:reference"
    lacking = None if has_reference else answer_lacking(ctx.record)
    return lacking or (None if ctx.ranked_contexts() else "no_contexts")


METRIC = CoroutineMetric(
    MetricSpec(
        name="context_precision",
        aliases=("context_utilization",),
        summary="How early the contexts that helped stand among those delivered.",
        needs=("query", "answer", "ranking", "reference", "judge"),
        required=(),
        task="relevance",
        outputs=(Output(name="context_precision"),),
        calls="1 judge call",
        source="ragas context precision, with and without reference",
    ),
    context_precision,
)
