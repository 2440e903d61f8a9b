"""Precision4+: the share of K places that hold a passage graded 4 or 5."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.metrics.base import Output
from ragtrace.metrics.graded import AtKMetric, graded_spec
from ragtrace.metrics.selection.set_family import PUBLISHED, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded
    from ragtrace.metrics.selection.set_family import SetParams


def precision4(params: SetParams = PUBLISHED) -> AtKMetric:
    """Contexts with grade 4 or 5 among the first K, over K.

    In [0, 1], higher is better. Copies count once. An empty slot adds nothing and K stays the denominator, unless
    `params` divide by the passages returned. Valid over any labels, a judge's grades of the pool too. Nothing
    delivered gives 0.0 where K is positive. ``na``: k_not_positive, no_labels, unlabelled_topk; ``error``:
    invalid_grade. Source: the RA-nWG article, arXiv 2511.09545.

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

    def at(source: Graded, k: int, _options: MetricOptions) -> Outcome:
        return set_scores(source.grades, source.delivered, (), k, params).outcome("precision4")

    spec = graded_spec(
        "precision4",
        "Share of the first K contexts with grade 4 or 5.",
        "the RA-nWG article",
        output=Output(name="precision4_at_k"),
    )
    return AtKMetric(replace(spec, aliases=("precision4+",)), at)


METRIC = precision4()
