"""Cosine of embeddings, with zero vectors as "no direction" instead of a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import JudgeInvalidOutput
from ragtrace.metrics.base import MetricSpec, Output, result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragtrace.metrics.base import Need
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult


def cosines_with_first(rows: NDArray[np.float64], n_texts: int) -> list[float | None]:
    """Return the cosine of the first row with each other row.

    In [-1, 1]; None where either is a zero vector.

    Args:
        rows: one row a text, as an embedder gave them.
        n_texts: rows that were asked for.

    Raises:
        JudgeInvalidOutput: not one finite row a text.

    Example:
        >>> cosines_with_first(np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-3.0, 0.0]]), 4)
        [1.0, None, -1.0]
    """
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise JudgeInvalidOutput(f"the embedder gave no table of numbers for {n_texts} texts") from error
    if table.ndim != 2 or len(table) != n_texts or not np.isfinite(table).all():
        raise JudgeInvalidOutput(f"the embedder gave no finite vector for each of {n_texts} texts")
    units = [_unit(row) for row in table]
    first = units[0]
    if first is None:
        return [None] * (n_texts - 1)
    return [None if unit is None else float(np.clip(first @ unit, -1.0, 1.0)) for unit in units[1:]]


async def similarity(ctx: EvalContext, name: str, first: str, second: str) -> list[MetricResult]:
    """Return the cosine of the embeddings of two texts as the only output."""
    (value,) = cosines_with_first(await ctx.embed([first, second]), 2)
    details = {"embedder": ctx.embedder.name if ctx.embedder else ""}
    return [result(name, "zero_embedding" if value is None else value, details)]


def similarity_spec(name: str, summary: str, needs: tuple[Need, ...]) -> MetricSpec:
    """Return the spec of a cosine of two texts, which has no threshold."""
    return MetricSpec(
        name=name,
        summary=summary,
        needs=needs,
        outputs=(Output(name=name, low=-1.0, threshold=None),),
        calls="1 embedding batch of 2 texts",
        source="cosine of embeddings",
    )


def _unit(row: NDArray[np.float64]) -> NDArray[np.float64] | None:
    # Scaled before squaring: 1e200 squared is infinite, and 1e-200 squared is 0.
    largest = np.abs(row).max(initial=0.0)
    if largest == 0.0:
        return None
    scaled = row / largest
    unit: NDArray[np.float64] = scaled / np.linalg.norm(scaled)
    return unit
