"""Answer similarity: the embedder's cosine of question and answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.cosine import cosines_with_first

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


class AnswerSimilarity:
    """Cosine of the query's and the answer's embedding, in [-1, 1], higher is better, without a threshold.

    It works offline and tells an answer to another question from one to this question; it says nothing of truth.
    Levels depend on the embedder, whose name stands in the details: never compare across embedders. ``na``:
    missing_input:query, no_answer, partial_run, unsupported_by_judge without an embedder; ``error zero_embedding``
    where a text has no content for the embedder. Coroutine-safe. Source: cosine similarity.

    Example:
        >>> import asyncio
        >>> import numpy as np
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> class Letters:
        ...     name = "letters"
        ...
        ...     async def embed(self, texts):
        ...         return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=float)
        >>> ctx = EvalContext(RagRecord(id="1", query="aa", answer="a"), embedder=Letters())
        >>> asyncio.run(METRIC.compute(ctx))[0].value
        1.0
    """

    spec = MetricSpec(
        name="answer_similarity",
        summary="Embedding cosine of question and answer; says whether the topic fits, not whether it is true.",
        needs=("query", "answer", "embedder"),
        outputs=(Output(name="answer_similarity", low=-1.0, threshold=None),),
        calls="1 embedding batch of 2 texts",
        source="cosine of embeddings",
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return the cosine; raises JudgeError when the embedder fails."""
        name = self.spec.name
        rows = await ctx.embed([ctx.record.query, ctx.record.answer])
        _, (value,) = cosines_with_first(rows, 2)
        details = {"embedder": ctx.embedder.name if ctx.embedder else ""}
        return [result(name, "zero_embedding" if value is None else value, details)]


METRIC = AnswerSimilarity()
