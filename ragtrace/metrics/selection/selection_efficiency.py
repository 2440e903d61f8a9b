"""Estimates that labels of the retrieved pool allow: selection efficiency, utility, bounds of RA-nWG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.graded import GRADING_CALLS, AtK, AtKMetric
from ragtrace.metrics.selection.ra_nwg import explained
from ragtrace.metrics.selection.set_family import PUBLISHED, SetParams, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.metrics.graded import Graded

_FROZEN = SetParams(is_frozen=True)


def selection_efficiency(source: Graded, k: int, _options: MetricOptions) -> AtK:
    """The members of the RA-nWG family that labels of the retrieved pool estimate correctly.

    - ``selection_efficiency_at_k``: %PROC with U = pool and weights from the pool, in [0, 1], up. In a simulation
      of 2,000 passages and 1,500 queries its mean absolute error against %PROC of the whole corpus is at most .015;
    - ``context_utility_at_k``: G(S) / K with frozen weights 1, .5, .1, in [0, 1], up. Never above RA-nWG with
      frozen weights. Without a threshold, because only K fives reach 1;
    - ``pool_recall4_at_k``: share of the pool's 4s and 5s that was selected, in [0, 1], up; not recall;
    - ``ra_nwg_upper_at_k``: G(S) over the best K of everything labelled, frozen weights, in [0, 1]. Never below
      RA-nWG with frozen weights.

    The details hold utility and upper bound as ``ra_nwg_bounds``, a pair that tightens as more is labelled. With
    ``is_oracle_exact`` K fives are known, and the upper bound is RA-nWG itself.

    Grades are the record's labels of any scope, cut down to the pool for the first three, else the judge's. RA-nWG
    and PROC themselves are refused over pool labels (`ra_nwg`). ``na``: k_not_positive, no_labels, unlabelled_topk,
    zero_oracle; ``error``: invalid_grade. Source: arXiv 2511.09545.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> def stage(name, ids):
        ...     return Pool(stage=name, passages=tuple(Passage(id=i, text=i, rank=1) for i in ids))
        >>> labels = Labels(grades={"a": 5, "b": 4, "c": 1}, label_scope="pool")
        >>> record = RagRecord(id="1", pools=(stage("retrieved", "abc"), stage("used", "b")), labels=labels)
        >>> results = asyncio.run(METRIC.compute(EvalContext(record)))
        >>> results[0].value, results[1].value, results[3].details["ra_nwg_bounds"]
        (0.5, 0.5, [0.5, 0.5])
    """
    members = {*source.pool, *source.delivered}
    pooled = {key: grade for key, grade in source.grades.items() if key in members}
    inside = set_scores(pooled, source.delivered, source.pool, k)
    frozen = set_scores(source.grades, source.delivered, source.pool, k, _FROZEN)
    utility = frozen.reason or frozen.g_obs / k
    upper = frozen.outcome("ra_nwg")
    outcomes: dict[str, Outcome] = {
        "selection_efficiency_at_k": inside.outcome("ra_nwg"),
        "context_utility_at_k": utility,
        "pool_recall4_at_k": inside.outcome("n_recall4"),
        "ra_nwg_upper_at_k": upper,
    }
    details = explained(inside, PUBLISHED, k)
    details["is_oracle_exact"] = frozen.census[0] >= k
    if isinstance(utility, float) and isinstance(upper, float):
        details["ra_nwg_bounds"] = [utility, upper]
    scopes = dict.fromkeys(outcomes, "pool") | {"ra_nwg_upper_at_k": source.label_scope}
    return AtK(outcomes=outcomes, details=details, label_scopes=scopes)


METRIC = AtKMetric(
    MetricSpec(
        name="selection_efficiency",
        aliases=("ra_nwg_bounds",),
        summary="How well the selection used the retrieved pool, and the bounds this puts on RA-nWG.",
        needs=("ranking", "pool", "labels", "judge"),
        required=(),
        outputs=(
            Output(name="selection_efficiency_at_k"),
            Output(name="context_utility_at_k", threshold=None),
            Output(name="pool_recall4_at_k"),
            Output(name="ra_nwg_upper_at_k", threshold=None),
        ),
        calls=GRADING_CALLS,
        source="RA-nWG, arXiv 2511.09545",
    ),
    selection_efficiency,
)
