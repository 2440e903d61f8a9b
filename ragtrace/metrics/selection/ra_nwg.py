"""RA-nWG, PROC, %PROC and N-Recall over labels of a whole scope."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.graded import AtK, AtKMetric, by_labels
from ragtrace.metrics.selection.census import KnownGrades, census_scores, estimated, intervals, unseen_fives_up_to
from ragtrace.metrics.selection.label_scope import by_cache, refusal
from ragtrace.metrics.selection.set_family import PUBLISHED, set_bounds, set_scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.metrics.eval_context import EvalContext, MetricOptions
    from ragtrace.metrics.graded import Graded, NoGrades
    from ragtrace.metrics.selection.set_family import SetParams, SetScores

_QUANTITIES = {
    "ra_nwg_at_k": "ra_nwg",
    "proc_at_k": "proc",
    "pct_proc_at_k": "pct_proc",
    "n_recall4_at_k": "n_recall4",
    "n_recall5_at_k": "n_recall5",
}


def ra_nwg(params: SetParams = PUBLISHED, *, has_bounds: bool = False) -> AtKMetric:
    """The RA-nWG family over labels of a whole scope.

    Each output in [0, 1], higher is better.

    - ``ra_nwg_at_k``: G(S) / G(best K of U), the rarity-weighted gain of the delivered contexts over the best K;
    - ``proc_at_k``: G(best K of Pool) / G(best K of U), the ceiling that retrieval left to selection;
    - ``pct_proc_at_k``: G(S) / G(best K of Pool), how well selection used the pool;
    - ``n_recall4_at_k``, ``n_recall5_at_k``: share of the reachable 4s and 5s, and of the 5s.

    `ragtrace.metrics.selection.set_family` defines the weights and G. The labels U have one of three scopes:

    - ``gold``: labels of the record, with the published weights;
    - ``cache``: labels of the record, or without any the judge's file of grades for the same query
      (``grade_cache``), matched by text; a panel has no such file. Size, version and last growth stand in the
      details. Values fall as the file grows; frozen (``label_freeze``) they are comparable over time;
    - ``stratified``: strata in the labels; the census is estimated, its 95 % bootstrap interval is in the details.

    Without gold labels the weights are frozen at 1, .5, .1, because the census moves. Grades of the pool alone, and
    labels of any other scope, are ``na no_labels`` with a hint. With U = Pool, PROC is 1 by construction, and
    RA-nWG shows .97 for a retriever that misses half the evidence. Use `selection_efficiency` there.

    Unlabelled pool members count as outside the pool, and PROC is then a lower estimate
    (``is_proc_lower_estimate``). Further ``na``: k_not_positive, unlabelled_topk, zero_oracle, zero_pool;
    ``error``: invalid_grade. Source: arXiv 2511.09545 and its article.

    Args:
        params: parameters of the family; with ``monotone`` the outputs are ``ra_nwg_monotone_at_k``
            and so on.
        has_bounds: adds the lowest and highest value over all grades that unlabelled contexts may have.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="a", rank=1),))
        >>> gold = Labels(grades={"a": 4, "b": 5})
        >>> results = asyncio.run(METRIC.compute(EvalContext(RagRecord(id="1", pools=(pool,), labels=gold))))
        >>> [(result.name, result.value) for result in results[:3]]
        [('ra_nwg_at_k', 0.5), ('proc_at_k', 0.5), ('pct_proc_at_k', 1.0)]
    """
    infix = "_monotone_at_k" if params.monotone else "_at_k"
    quantities = {name.replace("_at_k", infix): key for name, key in _QUANTITIES.items()}

    def at(source: Graded, k: int, _options: MetricOptions) -> AtK:
        used = replace(params, is_frozen=params.is_frozen or source.label_scope != "gold")
        scores = set_scores(source.grades, source.delivered, source.pool, k, used)
        details = explained(scores, used, k)
        if source.label_scope == "stratified":
            if scores.reason is None:
                scores, estimates, bounds = _estimated(source, k, used)
                ci95 = {name: list(bounds[key]) for name, key in quantities.items() if key in bounds}
                details |= {**estimates, "ci95": ci95}
        elif has_bounds and scores.reason == "unlabelled_topk":
            lowest_highest = set_bounds(source.grades, source.delivered, source.pool, k, used)
            details["bounds"] = {name: list(pair) for name, pair in lowest_highest.items()}
        return AtK(outcomes={name: scores.outcome(key) for name, key in quantities.items()}, details=details)

    spec = MetricSpec(
        name="ra_nwg_monotone" if params.monotone else "ra_nwg",
        summary="Rarity-weighted gain of the contexts against the best labelled passages, and its parts.",
        needs=("ranking", "pool", "labels"),
        required=(),
        outputs=tuple(Output(name=name) for name in quantities),
        calls="none with labels; over a file of grades 1 judge call per 10 passages not graded before",
        source="RA-nWG, arXiv 2511.09545",
    )
    return AtKMetric(spec, at, _read)


async def _read(ctx: EvalContext) -> Graded | NoGrades:
    """Return the record's labels, else those of the judge's file; refuse labels of another scope."""
    labels = ctx.record.labels
    if labels is None:
        return await by_cache(ctx)
    return refusal(ctx.record, labels) or by_labels(ctx.record, labels)


def _estimated(
    source: Graded, k: int, params: SetParams
) -> tuple[SetScores, dict[str, object], dict[str, tuple[float, float]]]:
    """Return the family over the estimated census, its facts, and its 95 % intervals."""
    grades = _known_grades(source, k)
    census = estimated(source.strata)
    scores = census_scores(census, grades, k, params)
    facts = {
        "weights": {str(grade): scores.weights[grade] for grade in (5, 4, 3, 2, 1)},
        "census": dict(zip("543", map(max, census, grades.known), strict=True)),
        "g_obs": scores.g_obs,
        "g_oracle": scores.g_oracle,
        "g_pool": scores.g_pool,
        "unseen_fives_up_to": unseen_fives_up_to(source.strata),
        "is_oracle_exact": grades.known[0] >= k,
    }
    return scores, facts, intervals(source.strata, grades, k, params)


def _known_grades(source: Graded, k: int) -> KnownGrades:
    def counted(keys: Iterable[str]) -> tuple[float, float, float]:
        found = Counter(source.grades.get(key) for key in keys)
        return found[5], found[4], found[3]

    selected = source.distinct()[:k]
    return KnownGrades(
        selected=counted(selected), pooled=counted({*source.pool, *selected}), known=counted(source.grades)
    )


def explained(scores: SetScores, params: SetParams, k: int) -> dict[str, object]:
    """Return the facts behind set scores: weights, gains, census and what was left out.

    ``is_oracle_exact``: so many 5s are known that the best K are all 5s; more labels cannot change the oracle.
    """
    if scores.reason is not None:
        return {}
    n5, n4, n3 = scores.census
    return {
        "weights": {str(grade): scores.weights[grade] for grade in (5, 4, 3, 2, 1)},
        "weighting": "frozen" if params.is_frozen else "published",
        "census": {"5": n5, "4": n4, "3": n3},
        "g_obs": scores.g_obs,
        "g_oracle": scores.g_oracle,
        "g_pool": scores.g_pool,
        "returned": scores.returned,
        "pool_unlabelled": scores.pool_unlabelled,
        "is_proc_lower_estimate": scores.pool_unlabelled > 0,
        "is_oracle_exact": n5 >= k,
    }


METRIC = ra_nwg()
