"""RA-nWG, PROC, %PROC and N-Recall against a labelled universe; refused where only the pool is labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace.metrics.at_cutoffs import AtCutoffs, Found, Refusal, outcome_of
from ragtrace.metrics.base import Declaration, Output
from ragtrace.metrics.graded import by_labels
from ragtrace.metrics.set_family import SetParams, set_bounds, set_scores

if TYPE_CHECKING:
    from ragtrace.metrics.case import Case, Options
    from ragtrace.metrics.graded import Graded
    from ragtrace.metrics.set_family import SetScores

UNIVERSES = frozenset({"gold", "cache"})
_QUANTITIES = {
    "ra_nwg_at_k": "ra_nwg",
    "proc_at_k": "proc",
    "pct_proc_at_k": "pct_proc",
    "n_recall4_at_k": "n_recall4",
    "n_recall5_at_k": "n_recall5",
}
_HINT = "RA-nWG and PROC need labels of the whole universe (gold or cache); over the pool use {other}"


class RaNwg(AtCutoffs):
    """The RA-nWG family over gold or cached labels of the record; each output in [0, 1], higher is better.

    - ``ra_nwg_at_k``: rarity-weighted gain of the delivered contexts over the best K of the universe;
    - ``proc_at_k``: the same for the best K of the pool, the ceiling that retrieval left to selection;
    - ``pct_proc_at_k``: their quotient, how well selection used the pool;
    - ``n_recall4_at_k``, ``n_recall5_at_k``: share of the reachable 4s and 5s, and of the 5s.

    Published weights over gold labels; over a cache the frozen weights 1, .5, .1, as a cache grows and its census
    moves. A judge's grades, or labels of any other universe, give ``na no_labels`` with a hint: with U = pool,
    PROC is 1 by construction and RA-nWG shows .97 for a retriever that misses half the evidence.
    Further ``na``: k_not_positive, unlabelled_topk, zero_oracle, zero_pool; ``error``: invalid_grade.
    No call is ever made. Coroutine-safe. Source: arXiv 2511.09545 and its article; METRICS.md 4.

    Args:
        params: parameters of the family; with ``monotone`` the outputs are ``ra_nwg_monotone_at_k``
            and so on.
        has_bounds: adds the lowest and highest value over all grades that unlabelled contexts may have.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.case import Case
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="a", rank=1),))
        >>> gold = Labels(grades={"a": 4, "b": 5})
        >>> results = asyncio.run(METRIC.compute(Case(RagRecord(id="1", pools=(pool,), labels=gold))))
        >>> [(result.name, result.value) for result in results[:3]]
        [('ra_nwg_at_k', 0.5), ('proc_at_k', 0.5), ('pct_proc_at_k', 1.0)]
    """

    def __init__(self, params: SetParams | None = None, *, has_bounds: bool = False) -> None:
        self._params = params or SetParams()
        self._has_bounds = has_bounds
        infix = "_monotone_at_k" if self._params.monotone else "_at_k"
        self._quantities = {name.replace("_at_k", infix): key for name, key in _QUANTITIES.items()}
        self.declaration = Declaration(
            name="ra_nwg_monotone" if self._params.monotone else "ra_nwg",
            summary="Rarity-weighted gain of the contexts against the best of a labelled universe, and its parts.",
            needs=("contexts", "pool", "labels"),
            gates=(),
            outputs=tuple(Output(name=name) for name in self._quantities),
            calls="none",
            source="RA-nWG, arXiv 2511.09545",
        )

    async def read(self, case: Case) -> Graded | Refusal:
        """Return the record's labels, or refuse labels of a pool, a shadow pool or a sample."""
        labels = case.record.labels
        if labels is None or labels.universe not in UNIVERSES:
            hint = _HINT.format(other="selection_efficiency_at_k")
            return Refusal(reason="no_labels", details={"hint": hint})
        return by_labels(case.record, labels)

    def at(self, source: Graded, k: int, options: Options) -> Found:  # noqa: ARG002 -- harm has a metric of its own
        """Return the family at K."""
        params = replace(self._params, is_frozen=self._params.is_frozen or source.universe != "gold")
        scores = set_scores(source.grades, source.delivered, source.pool, k, params)
        details = explained(scores, params)
        if self._has_bounds and scores.reason == "unlabelled_topk":
            bounds = set_bounds(source.grades, source.delivered, source.pool, k, params)
            details["bounds"] = {name: list(pair) for name, pair in bounds.items()}
        outcomes = {
            name: outcome_of(getattr(scores, key), scores.why_none(key)) for name, key in self._quantities.items()
        }
        return Found(outcomes=outcomes, details=details, source=source)


def explained(scores: SetScores, params: SetParams) -> dict[str, Any]:
    """Return the facts behind set scores: weights, gains, census and what was left out."""
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
    }


METRIC = RaNwg()
