"""No-answer: whether the answer tries to answer at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.offline.reading import WHOLE, bare
from ragtrace.judges.offline.tables import table
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, answer_lacking, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "answered"


async def no_answer(ctx: EvalContext) -> list[MetricResult]:
    """1.0 for an attempt, right or wrong; 0.0 for an answer that declines or is blank, and a provider's refusal.

    Higher is better. Code, a link, a number or a table alone is an attempt. A blank answer, LlamaIndex's "Empty
    Response" and a known phrase, in any of 28 languages, are decided without a call. A run that did not end as
    ``answered`` is ``na partial_run``, one whose answer was lost ``na answer_missing``, one whose branches gave
    several ``na several_answers``, and one without an answer, as a line of a file may be, is
    ``na missing_input:answer``.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import RagRecord
        >>> asyncio.run(evaluate([METRIC], EvalContext(RagRecord(id="1", query="Where?", answer=""))))[0].value
        0.0
    """
    lacking = answer_lacking(ctx.record)
    if lacking is not None and lacking not in {"no_answer", "abstained"}:
        return METRIC.spec.every(lacking)
    said = bare(ctx.record.answer)
    if lacking or not said or said in table("refusals.txt")[WHOLE]:
        return [result(NAME, 0.0, {"attempted": False, "short_circuit": True})]
    attempted = (await ctx.audit()).attempted
    return [result(NAME, float(attempted), {"attempted": attempted, "short_circuit": False})]


METRIC = CoroutineMetric(
    MetricSpec(
        name="no_answer",
        aliases=(NAME,),
        summary="Whether the answer attempts an answer (exported as answered, 1 = attempted).",
        needs=("query", "answer"),
        required=(),
        outputs=(Output(name=NAME, threshold=None, is_watched=True),),
        calls="0 for a blank answer or a known phrase, else the shared audit call",
        source="ragtrace",
        task="audit",
    ),
    no_answer,
)
