"""Answer relevancy in one grade: how well the answer meets the query, from 1 to 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.answer.one_to_five import grade_spec, graded_answer
from ragtrace.metrics.base import CoroutineMetric

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "answer_relevancy_1to5"


async def answer_relevancy_1to5(ctx: EvalContext) -> list[MetricResult]:
    """A judge's grade of relevance: 5 complete and to the point, 3 in part, 1 about something else or declining.

    ``answer_relevancy_1to5`` in 1 to 5 and ``answer_relevancy_1to5_normalised`` = (grade - 1) / 4; higher is
    better. Truth plays no part. ``na``: no_answer, partial_run, missing_input:query. Source:
    oh-my-knowledge.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([{"reason": "All of it is answered.", "grade": 5}])
        >>> record = RagRecord(id="1", query="Where?", answer="In Oslo.")
        >>> [result.value for result in asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))]
        [5.0, 1.0]
    """
    data = {"query": ctx.record.query, "answer": ctx.record.answer}
    return await graded_answer(ctx, NAME, data)


METRIC = CoroutineMetric(
    grade_spec(
        NAME,
        "One grade of how well the answer meets the query.",
        needs=("query", "answer", "judge"),
        required=("query", "answer", "judge"),
    ),
    answer_relevancy_1to5,
)
