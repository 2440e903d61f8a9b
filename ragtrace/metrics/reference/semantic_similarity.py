"""Semantic similarity: the embedder's cosine of answer and reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.cosine import cosines_with_first

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


class SemanticSimilarity:
    """Cosine of the answer's and the reference's embedding, in [-1, 1], higher is better, without a threshold.

    A negative cosine stays negative. Levels depend on the embedder, whose name stands in the details: never compare
    across embedders. ``na``: no_answer, partial_run, missing_input:reference (ragas compares with one space),
    unsupported_by_judge without an embedder; ``error``: zero_embedding where a text has no content for the embedder
    (open-rag-eval 0.0), a judge error where the embedder fails. Coroutine-safe. Source: cosine similarity.

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

    spec = MetricSpec(
        name="semantic_similarity",
        summary="Embedding cosine of answer and reference.",
        needs=("answer", "reference", "embedder"),
        outputs=(Output(name="semantic_similarity", low=-1.0, threshold=None),),
        calls="1 embedding batch of 2 texts",
        source="cosine of embeddings",
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return the cosine; raises JudgeError when the embedder fails."""
        name = self.spec.name
        rows = await ctx.embed([ctx.record.answer, ctx.record.reference or ""])
        _, (value,) = cosines_with_first(rows, 2)
        details = {"embedder": ctx.embedder.name if ctx.embedder else ""}
        return [result(name, "zero_embedding" if value is None else value, details)]


METRIC = SemanticSimilarity()
