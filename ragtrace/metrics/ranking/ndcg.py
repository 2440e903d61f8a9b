"""nDCG@K with linear gain on 0 to 3: the ranking against the best ranking of all that was graded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.scales import gains
from ragtrace.metrics.at_cutoffs import AtCutoffs, Found, outcome_of
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import Options
    from ragtrace.metrics.graded import Graded


class NdcgAtK(AtCutoffs):
    """nDCG@K, in [0, 1], higher is better. For comparisons: its ideal is taken over all graded passages.

    Grades become gains of 0 to 3: on the direct scale a 1 and a 2 gain nothing; those mapped from UMBRELA, strictly
    or not, become UMBRELA's again. An ideal of 0 gives ``na zero_oracle``. The other states are those of
    P@K. Coroutine-safe.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 2, "c": 1}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        1.0
    """

    spec = MetricSpec(
        name="ndcg",
        summary="The ranking against the best ranking of all graded passages, linear gain on 0 to 3.",
        needs=("contexts", "labels", "judge"),
        required=(),
        outputs=(Output(name="ndcg_at_k"),),
        calls="none with labels, else the grading of the pool: 1 judge call per 10 passages",
        source="trec_eval ndcg_cut",
    )

    def at(self, source: Graded, k: int, options: Options) -> Found:  # noqa: ARG002 -- grades count as they are
        """Return nDCG@K."""
        outcome = source.fault(k) or outcome_of(_ndcg(source, k), "zero_oracle")
        return Found(outcomes={"ndcg_at_k": outcome}, details={"grades": source.top(k)}, source=source)


def _ndcg(source: Graded, k: int) -> float | None:
    return rank.ndcg_at_k(source.delivered, gains(source.grades, scale=source.judge.label_scale), k)


METRIC = NdcgAtK()
