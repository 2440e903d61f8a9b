"""Context precision from grades: how early the contexts graded relevant stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric, result
from ragtrace.metrics.graded import graded, graded_spec
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.metrics.graded import Graded
    from ragtrace.model import MetricResult

NAME = "context_precision_graded"


async def context_precision_graded(ctx: EvalContext) -> list[MetricResult]:
    """Mean precision at each relevant delivered context.

    In [0, 1], higher is better. The formula is that of `context_precision`, over grades: a context is relevant from
    grade `MetricOptions.relevant_grade` (4) on. A context can be relevant to the question and yet unused by the
    answer, so the two stay apart. No relevant context gives 0.0. ``na``: no_contexts, no_labels, unlabelled_topk;
    ``error``: invalid_grade. Source: RAGAS context precision, over graded relevance.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 2, "b": 5}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """
    if not ctx.record.ranked_contexts:
        return [result(NAME, "no_contexts")]
    source = await graded(ctx)
    return [source.result(NAME, _outcome(source, ctx.options.relevant_grade), {"grades": source.top(None)})]


def _outcome(source: Graded, relevant: int) -> Outcome:
    if not source.delivered:
        return "no_contexts"
    fault = source.fault()
    if fault is not None:
        return fault
    found = rank.hits(source.delivered, source.grades, relevant)
    return rank.average_precision(found, sum(found))


METRIC = CoroutineMetric(
    graded_spec(
        NAME,
        "How early the contexts graded 4 or 5 stand among those delivered.",
        "ragas context precision over UMBRELA grades",
        options=("relevant_grade",),
    ),
    context_precision_graded,
)
