"""Harm: the share of K places that hold a weak or irrelevant passage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.metrics.base import Output
from ragtrace.metrics.graded import AtK, AtKMetric, graded_spec
from ragtrace.metrics.selection.set_family import PUBLISHED, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded
    from ragtrace.metrics.selection.set_family import SetParams


def harm(params: SetParams = PUBLISHED) -> AtKMetric:
    """Contexts graded `MetricOptions.harm_max` or less among the first K, over K.

    In [0, 1], LOWER is better. An empty slot is no harm: nothing delivered gives 0.0 where K is positive. Of grades
    mapped from 0 to 3 only a 0 counts, because that scale has no grade 2. States as for Precision4+. Source: the
    RA-nWG article, arXiv 2511.09545.

    Args:
        params: `SetParams.denominator` is read.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 2}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        0.5
    """

    def at(source: Graded, k: int, options: MetricOptions) -> AtK:
        own = replace(params, harm_max=options.harm_max)
        outcome = set_scores(source.grades, source.delivered, (), k, own).outcome("harm")
        details = {"grades": source.top(k), "harm_max": options.harm_max}
        return AtK(outcomes={"harm_at_k": outcome}, details=details)

    spec = graded_spec(
        "harm",
        "Share of the first K contexts with grade 1 or 2; lower is better.",
        "the RA-nWG article",
        output=Output(name="harm_at_k", direction="down", threshold=0.2),
        options=("harm_max",),
    )
    return AtKMetric(spec, at)


METRIC = harm()
