"""Reciprocal rank of the first relevant context; its mean over traces is MRR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.graded import GRADING_CALLS, graded
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.metrics.graded import Graded
    from ragtrace.model import MetricResult


class Mrr:
    """1 / rank of the first relevant context, in [0, 1], higher is better; 0.0 when none is relevant.

    There is no cut-off. A context without a grade that stands before the first relevant one gives
    ``na unlabelled_topk``; behind it, it changes nothing. Without any delivered context ``na k_not_positive``.
    Other states as for `p_at_k`. Coroutine-safe. Source: trec_eval ``recip_rank``.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "abx"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 2, "b": 4}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """

    spec = MetricSpec(
        name="mrr",
        summary="1 / rank of the first relevant context; the mean over traces is MRR.",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="mrr"),),
        calls=GRADING_CALLS,
        source="trec_eval recip_rank",
        options=("relevant_grade",),
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return the reciprocal rank; raises JudgeError when the judge has no grades."""
        if max(ctx.k_values()) <= 0:
            return [result("mrr", "k_not_positive")]
        source = await graded(ctx)
        outcome = _outcome(source, ctx.options.relevant_grade)
        return [source.result("mrr", outcome, {"grades": source.top(None)})]


def _outcome(source: Graded, relevant: int) -> Outcome:
    fault = source.fault(0)
    if fault is not None:
        return fault
    found = rank.hits(source.delivered, source.grades, relevant)
    first = found.index(True) if True in found else len(found)
    return source.fault(first) or rank.reciprocal_rank(source.delivered, source.grades, relevant)


METRIC = Mrr()
