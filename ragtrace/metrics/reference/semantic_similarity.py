"""Semantic similarity: the embedder's cosine of answer and reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.cosine import cosines_with_first
from ragtrace.model import MetricResult

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext


class SemanticSimilarity:
    """Cosine of the answer's and the reference's embedding, in [-1, 1], higher is better, without a threshold.

    A negative cosine stays negative. Levels depend on the embedder, whose name stands in the details: never
    compare across embedders. ``na``: no_answer, partial_run, missing_input:reference, unsupported_by_judge
    without an embedder; ``error zero_embedding`` when either text has no content for the embedder, a judge error
    when the embedder fails. Coroutine-safe. Source: METRICS.md 1.7.

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
        if value is None:
            return [MetricResult(name=name, state="error", reason="zero_embedding", details=details)]
        return [MetricResult(name=name, state="ok", value=value, details=details)]


METRIC = SemanticSimilarity()
