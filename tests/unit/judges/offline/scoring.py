"""Scores of the offline judge for an answer over contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges import OverlapEmbedder, OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from tests.unit.judges.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult


async def results(
    answer: str, *contexts: str, metrics: Sequence[str] = ("faithfulness",), **facts: Any
) -> dict[str, MetricResult]:
    given = record(*contexts, answer=answer, **facts)
    case = EvalContext(given, judge=OverlapJudge(), embedder=OverlapEmbedder())
    return {result.name: result for result in await evaluate(select(metrics), case)}
