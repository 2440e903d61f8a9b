"""Semantic similarity: the embedder's cosine of answer and reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric
from ragtrace.metrics.cosine import similarity, similarity_spec

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


async def semantic_similarity(ctx: EvalContext) -> list[MetricResult]:
    """Cosine of the answer's and the reference's embedding.

    In [-1, 1], higher is better, without a threshold. A negative cosine stays negative. Levels depend on the
    embedder, whose name stands in the details: never compare across embedders. ``na``: no_answer, partial_run,
    missing_input:reference (ragas compares with one space), unsupported_by_judge without an embedder; ``error``:
    zero_embedding where a text has no content for the embedder (open-rag-eval 0.0), a judge error where the
    embedder fails. Source: cosine similarity.

    Example:
        >>> import asyncio
        >>> import numpy as np
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> class Signs:
        ...     name = "signs"
        ...
        ...     async def embed(self, texts):
        ...         return np.array([[1.0 if text == "yes" else -1.0] for text in texts])
        >>> ctx = EvalContext(RagRecord(id="1", answer="no", reference="yes"), embedder=Signs())
        >>> asyncio.run(METRIC.compute(ctx))[0].value
        -1.0
    """
    return await similarity(ctx, "semantic_similarity", ctx.record.answer, ctx.record.reference or "")


METRIC = CoroutineMetric(
    similarity_spec(
        "semantic_similarity",
        "Embedding cosine of answer and reference.",
        needs=("answer", "reference", "embedder"),
    ),
    semantic_similarity,
)
