"""AP@K over the relevant passages retrieved: how early the relevant contexts stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.graded import AtKMetric, graded_spec
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded


def ap_at_k_retrieved(source: Graded, k: int, options: MetricOptions) -> Outcome:
    """Mean precision at each relevant context among the first K.

    In [0, 1], higher is better. It is the sum over relevant ranks i <= K of (relevant up to i / i), over the
    relevant contexts in the top K. What was missed does not count, so it differs from trec_eval's AP, which divides
    by all relevant documents: with 6 relevant documents and 3 hits at K = 3 this is 1.0 and ``map_cut`` .5.
    `ragtrace.metrics.ranking.rank` has both as functions of ids and grades. No relevant context gives 0.0. States
    as for `p_at_k`. Source: open-rag-eval.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 2, "b": 5}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """
    relevant = options.relevant_grade
    return source.fault(k) or rank.ap_at_k_retrieved(source.delivered, source.grades, k, relevant) or 0.0


METRIC = AtKMetric(
    graded_spec(
        "ap_at_k_retrieved",
        "How early the relevant contexts stand among the first K; what was missed does not count.",
        "open-rag-eval AP@K",
        options=("relevant_grade",),
    ),
    ap_at_k_retrieved,
)
