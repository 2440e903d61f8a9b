"""Harm: the share of K places that hold a passage which is weak or irrelevant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.metrics.at_cutoffs import AtCutoffs, Found, outcome_of
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.selection.set_family import SetParams, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import Options
    from ragtrace.metrics.graded import Graded


class Harm(AtCutoffs):
    """Share of the first K delivered contexts with a grade of at most `Options.harm_max`, LOWER is better.

    In [0, 1]. An empty slot is not harm: nothing delivered gives 0.0 where K is positive. With grades mapped from
    0 to 3 only a 0 counts, as that scale has no grade 2. States as for Precision4+. Coroutine-safe.

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

    spec = MetricSpec(
        name="harm",
        summary="Share of the first K contexts with grade 1 or 2; lower is better.",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="harm_at_k", direction="down", threshold=0.2),),
        calls="none with labels, else the grading of the pool: 1 judge call per 10 passages",
        source="the RA-nWG article",
        options=("harm_max",),
    )

    def __init__(self, params: SetParams | None = None) -> None:
        self._params = params or SetParams()

    def at(self, source: Graded, k: int, options: Options) -> Found:
        """Return Harm at K."""
        params = replace(self._params, harm_max=options.harm_max)
        scores = set_scores(source.grades, source.delivered, (), k, params)
        outcome = outcome_of(scores.harm, scores.why_none("harm"))
        details = {"grades": source.top(k), "harm_max": options.harm_max}
        return Found(outcomes={"harm_at_k": outcome}, details=details, source=source)


METRIC = Harm()
