"""Cosine of embeddings, with zero vectors as "no direction" instead of a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import JudgeInvalidOutput

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cosines_with_first(rows: NDArray[np.float64], n_texts: int) -> tuple[bool, list[float | None]]:
    """Return whether the first row has a direction, and the cosine of it with each other row.

    Args:
        rows: one row a text, as an embedder gave them.
        n_texts: rows that were asked for.

    Returns:
        The flag, and one cosine in [-1, 1] for each further row: None where either is a zero vector.

    Raises:
        JudgeInvalidOutput: not one finite row a text.

    Example:
        >>> cosines_with_first(np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-3.0, 0.0]]), 4)
        (True, [1.0, None, -1.0])
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
        return False, [None] * (n_texts - 1)
    return True, [None if unit is None else float(np.clip(first @ unit, -1.0, 1.0)) for unit in units[1:]]


def _unit(row: NDArray[np.float64]) -> NDArray[np.float64] | None:
    # Scaled before squaring: 1e200 squared is infinite, and 1e-200 squared is 0.
    largest = np.abs(row).max(initial=0.0)
    if largest == 0.0:
        return None
    scaled = row / largest
    unit: NDArray[np.float64] = scaled / np.linalg.norm(scaled)
    return unit
