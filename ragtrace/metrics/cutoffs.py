"""The cut-offs of @K metrics, and how results at several of them are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext


def cutoffs(ctx: EvalContext) -> list[tuple[int, str]]:
    """Return each distinct K of a case with its variant: "" for the first, else K as text.

    Example:
        >>> from ragtrace.metrics.eval_context import EvalContext, Options
        >>> from ragtrace.model import RagRecord
        >>> cutoffs(EvalContext(RagRecord(id="1"), options=Options(k_values=(5, 10, 5))))
        [(5, ''), (10, '10')]
    """
    distinct = list(dict.fromkeys(ctx.k_values()))
    return [(k, str(k) if place else "") for place, k in enumerate(distinct)]
