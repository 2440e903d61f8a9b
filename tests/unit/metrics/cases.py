"""Runs of metrics over a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.metrics import EvalContext, MetricOptions, evaluate, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.metrics import Metric
    from ragtrace.model import MetricResult, RagRecord

PARTS = {"judge", "embedder", "pairs", "deep_retriever"}


async def run(metrics: str | Sequence[str | Metric], made: RagRecord, **given: Any) -> dict[str, MetricResult]:
    """Evaluate metrics over a record; what is no judge, embedder, pair scorer or retriever is a metric option."""
    parts = {name: given.pop(name) for name in PARTS & {*given}}
    ctx = EvalContext(made, options=MetricOptions(**given), **parts)
    names = [metrics] if isinstance(metrics, str) else metrics
    chosen = [metric for one in names for metric in (select([one]) if isinstance(one, str) else [one])]
    return {result.key: result for result in await evaluate(chosen, ctx)}
