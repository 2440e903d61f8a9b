"""AP@K over the relevant passages retrieved: how early the relevant contexts stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.at_cutoffs import AtCutoffs, Found, outcome_of
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import Options
    from ragtrace.metrics.graded import Graded


class ApAtKRetrieved(AtCutoffs):
    """Average precision over the relevant contexts in the top K, in [0, 1], higher is better.

    It ignores what was missed, so it is not the AP of information retrieval; `ragtrace.metrics.ranking.rank` has
    that as a function for labels of a whole universe. No relevant context gives 0.0. States as for P@K.
    Coroutine-safe.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 2, "b": 5}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """

    spec = MetricSpec(
        name="ap_at_k_retrieved",
        summary="How early the relevant contexts stand among the first K; what was missed does not count.",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="ap_at_k_retrieved"),),
        calls="none with labels, else the grading of the pool: 1 judge call per 10 passages",
        source="open-rag-eval AP@K",
        options=("relevant_grade",),
    )

    def at(self, source: Graded, k: int, options: Options) -> Found:
        """Return AP@K over the relevant contexts retrieved."""
        outcome = source.fault(k) or outcome_of(
            rank.ap_at_k_retrieved(source.delivered, source.grades, k, options.relevant_grade), "k_not_positive"
        )
        return Found(outcomes={"ap_at_k_retrieved": outcome}, details={"grades": source.top(k)}, source=source)


METRIC = ApAtKRetrieved()
