"""P@K: the share of K places that hold a relevant passage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.graded import AtKMetric, graded_spec
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded


def p_at_k(source: Graded, k: int, options: MetricOptions) -> Outcome:
    """Relevant passages among the first K delivered contexts, over K.

    In [0, 1], higher is better. A passage is relevant from grade `MetricOptions.relevant_grade` on. Copies count
    once. K stays the denominator when fewer were delivered, as in trec_eval, ranx and ir_measures; open-rag-eval
    gives no number then.

    ``na``: k_not_positive, no_labels, unlabelled_topk (a context without a grade). ``error``: invalid_grade (not an
    integer of 1 to 5). Source: trec_eval ``P_k``.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 2}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """
    return source.fault(k) or rank.p_at_k(source.delivered, source.grades, k, options.relevant_grade) or 0.0


METRIC = AtKMetric(
    graded_spec(
        "p_at_k",
        "Share of the first K contexts that are relevant (grade 4 or 5).",
        "trec_eval P_k",
        options=("relevant_grade",),
    ),
    p_at_k,
)
