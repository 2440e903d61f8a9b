"""Answer similarity: the embedder's cosine of question and answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric
from ragtrace.metrics.cosine import similarity, similarity_spec

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


async def answer_similarity(ctx: EvalContext) -> list[MetricResult]:
    """Cosine of the query's and the answer's embedding.

    In [-1, 1], higher is better, without a threshold. It works offline and tells an answer to another question from
    one to this question; it says nothing of truth. Levels depend on the embedder, whose name stands in the details:
    never compare across embedders. ``na``: missing_input:query, no_answer, partial_run, unsupported_by_judge
    without an embedder; ``error zero_embedding`` where a text has no content for the embedder. Source: cosine
    similarity.

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
    return await similarity(ctx, "answer_similarity", ctx.record.query, ctx.record.answer)


METRIC = CoroutineMetric(
    similarity_spec(
        "answer_similarity",
        "Embedding cosine of question and answer; says whether the topic fits, not whether it is true.",
        needs=("query", "answer", "embedder"),
    ),
    answer_similarity,
)
