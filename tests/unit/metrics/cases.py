"""Records and runs for tests of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import Passage, Pool, RagRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.metrics.base import Metric
    from ragtrace.model import MetricResult

PARTS = {"judge", "embedder", "pairs", "deep_retriever"}


def used(*texts: str) -> tuple[Pool, ...]:
    """Return delivered contexts with the ids p1, p2 and so on."""
    passages = tuple(Passage(id=f"p{n}", text=text, rank=n) for n, text in enumerate(texts, start=1))
    return (Pool(stage="used", passages=passages),)


def record(*texts: str, **fields: Any) -> RagRecord:
    return RagRecord(**{"id": "1", "query": "Where?", "answer": "In Oslo.", "pools": used(*texts), **fields})


async def run(metrics: str | Sequence[str | Metric], made: RagRecord, **given: Any) -> dict[str, MetricResult]:
    """Evaluate metrics over a record; what is no judge, embedder, pair scorer or retriever is a metric option."""
    parts = {name: given.pop(name) for name in PARTS & {*given}}
    ctx = EvalContext(made, options=MetricOptions(**given), **parts)
    names = [metrics] if isinstance(metrics, str) else metrics
    chosen = [metric for one in names for metric in (select([one]) if isinstance(one, str) else [one])]
    return {result.key: result for result in await evaluate(chosen, ctx)}
