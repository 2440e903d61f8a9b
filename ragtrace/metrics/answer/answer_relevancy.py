"""Answer relevancy: the similarity of the query with questions that the answer would answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ragtrace.errors import JudgeIncomplete
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result
from ragtrace.metrics.cosine import cosines_with_first

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


async def answer_relevancy(ctx: EvalContext) -> list[MetricResult]:
    """Mean cosine of the question with questions written from the answer.

    In [0, 1], higher is better. The judge writes `MetricOptions.n_questions` questions from the answer alone, each
    with a flag for a noncommittal answer. raw = mean of cos(embed(query), embed(question)); the value is 0.0 where
    ALL questions are flagged, else raw cut to [0, 1]. ``details`` keep raw and each cosine. Blank questions and
    those without a direction are left out with their flag. Levels depend on the embedder: never compare across
    embedders.

    ragas 0.4 uses ALL too, 0.2.15 used ANY, and neither cuts raw to [0, 1]; llm4s maps cosines by (cos + 1) / 2.

    ``na``: missing_input:query, no_answer, partial_run, unsupported_by_judge. ``error``: judge_incomplete without a
    question, zero_embedding where the query or all questions have no direction. Source: RAGAS, Es et al. 2023.

    Example:
        >>> import asyncio
        >>> import numpy as np
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> class Letters:
        ...     name = "letters"
        ...
        ...     async def embed(self, texts):
        ...         return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=float)
        >>> questions = [{"question": text, "noncommittal": False} for text in ("aa", "b")]
        >>> judge = LLMJudge(ScriptedChat([{"questions": questions}]))
        >>> ctx = EvalContext(RagRecord(id="1", query="a", answer="x"), judge=judge, embedder=Letters())
        >>> asyncio.run(METRIC.compute(ctx))[0].value
        0.5
    """
    asked = [item for item in (await ctx.questions()).questions if item.text.strip()]
    if not asked:
        raise JudgeIncomplete("the judge wrote no question")
    rows = await ctx.embed([ctx.record.query, *(item.text for item in asked)])
    cosines = cosines_with_first(rows, len(asked) + 1)
    details: dict[str, object] = {
        "embedder": ctx.embedder.name if ctx.embedder else "",
        "questions": [item.text for item in asked],
        "noncommittal": [item.noncommittal for item in asked],
        "cosines": cosines,
    }
    kept = [(item, value) for item, value in zip(asked, cosines, strict=True) if value is not None]
    if not kept:
        return METRIC.spec.every("zero_embedding", details)
    raw = math.fsum(value for _, value in kept) / len(kept)
    is_evasive = all(item.noncommittal for item, _ in kept)
    value = 0.0 if is_evasive else min(max(raw, 0.0), 1.0)
    return [result("answer_relevancy", value, {**details, "raw": raw})]


METRIC = CoroutineMetric(
    MetricSpec(
        name="answer_relevancy",
        summary="Similarity of the question with questions that the answer would answer.",
        needs=("query", "answer", "judge", "embedder"),
        outputs=(Output(name="answer_relevancy"),),
        task="questions",
        calls="1 judge call, 1 embedding batch of n + 1 texts",
        source="ragas answer relevancy",
        options=("n_questions",),
    ),
    answer_relevancy,
)
