"""Faithfulness in one grade: how far the answer keeps to its contexts, from 1 to 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.grading_1to5 import AttemptGradeReply
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.metrics.answer.one_to_five import grade_spec, graded_answer
from ragtrace.metrics.base import CoroutineMetric

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "faithfulness_1to5"


async def faithfulness_1to5(ctx: EvalContext) -> list[MetricResult]:
    """A judge's grade of support: 5 all claims supported, 3 about half, 1 invented or contradicted.

    ``faithfulness_1to5`` in 1 to 5 and ``faithfulness_1to5_normalised`` = (grade - 1) / 4; higher is better.
    Coarser than `faithfulness`, which counts claims. ``na``: no_answer, partial_run, no_contexts, and abstained for
    an answer that only declines. Source: oh-my-knowledge.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> chat = ScriptedChat([{"attempted": True, "reason": "The year is not there.", "grade": 4}])
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="In Oslo, since 2010.", pools=(pool,))
        >>> [result.value for result in asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))]
        [4.0, 0.75]
    """
    record = ctx.record
    data = {"query": record.query, "contexts": Numbered(record).shown(), "answer": record.answer}
    return await graded_answer(ctx, NAME, data, AttemptGradeReply)


METRIC = CoroutineMetric(
    grade_spec(
        NAME,
        "One grade of how far the contexts support the answer.",
        needs=("answer", "contexts", "query", "judge"),
        required=("answer", "contexts", "judge"),
    ),
    faithfulness_1to5,
)
