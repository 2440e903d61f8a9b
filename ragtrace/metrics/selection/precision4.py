"""Precision4+: the share of K places that hold a passage graded 4 or 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.graded import GRADING_CALLS, AtK, AtKMetric
from ragtrace.metrics.selection.set_family import SetParams, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded


class Precision4(AtKMetric):
    """Contexts with grade 4 or 5 among the first K, over K; in [0, 1], higher is better.

    Copies count once. An empty slot adds nothing and K stays the denominator, unless `params` divide by the
    passages returned. Valid over any labels, a judge's grades of the pool too. Nothing delivered gives 0.0 where K
    is positive. ``na``: k_not_positive, no_labels, unlabelled_topk; ``error``: invalid_grade. Coroutine-safe.
    Source: the RA-nWG article, arXiv 2511.09545.

    Args:
        params: `SetParams.denominator` is read.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 3}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """

    spec = MetricSpec(
        name="precision4",
        aliases=("precision4+",),
        summary="Share of the first K contexts with grade 4 or 5.",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="precision4_at_k"),),
        calls=GRADING_CALLS,
        source="the RA-nWG article",
    )

    def __init__(self, params: SetParams | None = None) -> None:
        self._params = params or SetParams()

    def at(self, source: Graded, k: int, options: MetricOptions) -> AtK:  # noqa: ARG002 -- 4 is in the name
        """Return Precision4+ at K."""
        scores = set_scores(source.grades, source.delivered, (), k, self._params)
        return AtK(outcomes={"precision4_at_k": scores.outcome("precision4")}, details={"grades": source.top(k)})


METRIC = Precision4()
