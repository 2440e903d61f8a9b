"""nDCG@K with linear gain on 0 to 3: the ranking against the best ranking of all graded passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.scales import gains
from ragtrace.metrics.base import Output
from ragtrace.metrics.graded import AtKMetric, graded_spec
from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded


def ndcg(source: Graded, k: int, _options: MetricOptions) -> Outcome:
    """DCG of the first K contexts over the DCG of the best K of all graded passages.

    In [0, 1], higher is better. DCG = sum of gain / log2(rank + 1). Gains are 0 to 3: on the direct scale a 1 and a
    2 gain nothing, a 3, 4 and 5 gain 1, 2 and 3; grades mapped from UMBRELA become UMBRELA's again. Use it to
    compare rankings over the same labels. An ideal of 0 gives ``na zero_oracle``; other states as for `p_at_k`.
    Source: trec_eval ``ndcg_cut``.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=tuple(Passage(id=i, text=i, rank=1) for i in "ab"))
        >>> record = RagRecord(id="1", pools=(pool,), labels=Labels(grades={"a": 5, "b": 2, "c": 1}))
        >>> asyncio.run(METRIC.compute(EvalContext(record)))[0].value
        1.0
    """
    fault = source.fault(k)
    if fault is not None:
        return fault
    value = rank.ndcg_at_k(source.delivered, gains(source.grades, scale=source.judge.label_scale), k)
    return "zero_oracle" if value is None else value


METRIC = AtKMetric(
    graded_spec(
        "ndcg",
        "The ranking against the best ranking of all graded passages, linear gain on 0 to 3.",
        "trec_eval ndcg_cut",
        output=Output(name="ndcg_at_k"),
    ),
    ndcg,
)
