"""Answer coverage in one grade: how many of the key facts the answer states, from 1 to 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.numbering import Numbered
from ragtrace.metrics.answer.one_to_five import grade_spec, graded_answer
from ragtrace.metrics.base import CoroutineMetric

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "answer_coverage_1to5"


async def answer_coverage_1to5(ctx: EvalContext) -> list[MetricResult]:
    """A judge's grade of coverage: 5 all key facts stated in the answer, 3 about half, 1 none.

    ``answer_coverage_1to5`` in 1 to 5 and ``answer_coverage_1to5_normalised`` = (grade - 1) / 4; higher is better.
    The facts are those of the reference; without one, those of the contexts that the query asks for.
    ``details.mode`` tells the two apart. oh-my-knowledge calls this "context_recall"; `context_recall` here looks
    the facts up in the contexts. ``na``: no_answer, partial_run, missing_input:reference (neither reference nor
    contexts). Source: oh-my-knowledge.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([{"reason": "The year is missing.", "grade": 3}])
        >>> record = RagRecord(id="1", query="Where?", answer="In Oslo.", reference="In Oslo, since 2010.")
        >>> [result.value for result in asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))]
        [3.0, 0.5]
    """
    record = ctx.record
    data: dict[str, object] = {"query": record.query, "answer": record.answer}
    has_reference = bool((record.reference or "").strip())
    details = {"mode": "with_reference" if has_reference else "without_reference"}
    if has_reference:
        data["reference"] = record.reference
    elif ctx.contexts():
        data["contexts"] = Numbered(record).shown()
    else:
        return METRIC.spec.every("missing_input:reference", details)
    return await graded_answer(ctx, NAME, data, details=details)


METRIC = CoroutineMetric(
    grade_spec(
        NAME,
        "One grade of how many key facts of the reference, or else of the contexts, the answer states.",
        needs=("answer", "reference", "contexts", "query", "judge"),
        required=("answer", "judge"),
    ),
    answer_coverage_1to5,
)
