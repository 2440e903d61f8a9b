"""P@K: the share of K places that hold a relevant passage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.at_cutoffs import AtCutoffs, Found, outcome_of
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import Options
    from ragtrace.metrics.graded import Graded


class PAtK(AtCutoffs):
    """P@K over the delivered contexts, in [0, 1], higher is better; equal to Precision4+ at K.

    K stays the denominator when fewer were delivered. A context without a grade gives ``na unlabelled_topk``,
    a grade that is no integer of 1 to 5 ``error invalid_grade``. Coroutine-safe.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 2}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """

    spec = MetricSpec(
        name="p_at_k",
        summary="Share of the first K contexts that are relevant (grade 4 or 5).",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="p_at_k"),),
        calls="none with labels, else the grading of the pool: 1 judge call per 10 passages",
        source="trec_eval P_k",
        options=("relevant_grade",),
    )

    def at(self, source: Graded, k: int, options: Options) -> Found:
        """Return P@K."""
        outcome = source.fault(k) or outcome_of(
            rank.p_at_k(source.delivered, source.grades, k, options.relevant_grade), "k_not_positive"
        )
        return Found(outcomes={"p_at_k": outcome}, details={"grades": source.top(k)}, source=source)


METRIC = PAtK()
