"""Reciprocal rank of the first relevant context; its mean over traces is MRR."""

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


async def mrr(ctx: EvalContext) -> list[MetricResult]:
    """1 / rank of the first relevant context.

    In [0, 1], higher is better; 0.0 when none is relevant. There is no cut-off. A context without a grade that
    stands before the first relevant one gives ``na unlabelled_topk``; behind it, it changes nothing. Without any
    delivered context ``na k_not_positive``. Other states as for `p_at_k`. Source: trec_eval ``recip_rank``.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "abx"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 2, "b": 4}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """
    if max(ctx.k_values()) <= 0:
        return [result("mrr", "k_not_positive")]
    source = await graded(ctx)
    return [source.result("mrr", _outcome(source, ctx.options.relevant_grade), {"grades": source.top(None)})]


def _outcome(source: Graded, relevant: int) -> Outcome:
    fault = source.fault(0)
    if fault is not None:
        return fault
    found = rank.hits(source.delivered, source.grades, relevant)
    first = found.index(True) if True in found else len(found)
    return source.fault(first) or rank.reciprocal_rank(source.delivered, source.grades, relevant)


METRIC = CoroutineMetric(
    graded_spec(
        "mrr",
        "1 / rank of the first relevant context; the mean over traces is MRR.",
        "trec_eval recip_rank",
        options=("relevant_grade",),
    ),
    mrr,
)
