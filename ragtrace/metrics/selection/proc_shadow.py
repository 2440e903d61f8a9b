"""PROC and bounds of RA-nWG against a deeper retrieval of the same query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.judges.cache.grade_cache import text_key
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.graded import AtK, AtKMetric, NoGrades, by_labels, by_verdict
from ragtrace.metrics.selection.ra_nwg import explained
from ragtrace.metrics.selection.set_family import SetParams, set_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.metrics.deep_retrieval import DeepPool
    from ragtrace.metrics.eval_context import EvalContext, MetricOptions
    from ragtrace.metrics.graded import Graded
    from ragtrace.model import Passage, RagRecord

_FROZEN = SetParams(is_frozen=True)
_HINT = "PROC of a shadow pool needs a retriever to call: ragtrace.configure(shadow=function of query and top_k)"


def proc_shadow(source: Graded, k: int, _options: MetricOptions) -> AtK:
    """PROC of the pool against a deeper retrieval.

    The weights are frozen at 1, .5, .1, and the label scope is ``shadow``.

    - ``proc_shadow_at_k``: G(best K of Pool) over G(best K of pool and deeper pool), in [0, 1], up. Never below
      PROC of the whole corpus. Values compare at one depth and one judge alone: the depth stands in the details and
      in the version, so that another depth is another series;
    - ``ra_nwg_upper_shadow_at_k``: G(S) over the same, in [0, 1], up; never below RA-nWG with frozen weights. The
      pair with the lower bound stands in the details as ``ra_nwg_bounds``.

    In simulation PROC is too high by .02 to .26 at depth 20 to 50, less for a strong retriever and a greater depth.
    With published weights the bound fails in 3 to 11 % of draws, with frozen ones in none.

    The retriever is called for `DeepRetriever.rate` of the records; the others are ``skipped not_sampled``. The
    judge grades the passages that are new by id and by text, and none once K fives are known: deeper search cannot
    change the value then. Labels of the scope ``shadow`` in the record are taken instead, with their number as the
    depth. ``na``: no_labels (no retriever), k_not_positive, unlabelled_topk, zero_oracle; ``error``: judge_error
    where the retriever raised, judge_timeout where it was too slow. Source: arXiv 2511.09545.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="a", rank=1),))
        >>> labels = Labels(grades={"a": 4, "b": 5}, label_scope="shadow")
        >>> results = asyncio.run(METRIC.compute(EvalContext(RagRecord(id="1", pools=(pool,), labels=labels))))
        >>> results[0].value, results[0].details["depth"], results[1].details["ra_nwg_bounds"]
        (0.5, 2, [0.5, 0.5])
    """
    scores = set_scores(source.grades, source.delivered, source.pool, k, _FROZEN)
    upper = scores.outcome("ra_nwg")
    details = explained(scores, _FROZEN, k)
    if isinstance(upper, float):
        details["ra_nwg_bounds"] = [scores.g_obs / k, upper]
    outcomes = {"proc_shadow_at_k": scores.outcome("proc"), "ra_nwg_upper_shadow_at_k": upper}
    return AtK(outcomes=outcomes, details=details)


async def _read(ctx: EvalContext) -> Graded | NoGrades:
    """Return the grades of pool and shadow pool, or why there are none."""
    labels = ctx.record.labels
    if labels is not None and labels.label_scope == "shadow":
        found = by_labels(ctx.record, labels)
        return replace(found, label_facts={"depth": len(labels.grades)})
    if ctx.deep_retriever is None:
        return NoGrades(reason="no_labels", details={"hint": _HINT})
    if not ctx.deep_retriever.is_drawn(ctx.record):
        return NoGrades(reason="not_sampled")
    return await _graded(ctx)


async def _graded(ctx: EvalContext) -> Graded:
    verdict = await ctx.grades()
    shadow = await ctx.deep_pool()
    fresh = _beyond(ctx.record, shadow)
    wanted = max(ctx.k_values()) - sum(grade == 5 for grade in verdict.grades.values())
    more = await ctx.grade(fresh, wanted)
    facts: dict[str, object] = {
        "depth": shadow.depth,
        "depth_returned": len(shadow.passages),
        "shadow_new": len(fresh),
        "shadow_graded": len(more.grades),
    }
    grades = {**verdict.grades, **more.grades}
    found = by_verdict(ctx, replace(verdict, grades=grades, cached=verdict.cached + more.cached))
    facts = {**found.label_facts, **facts}
    return replace(found, label_scope="shadow", label_facts=facts, series=f"depth {shadow.depth}")


def _beyond(record: RagRecord, shadow: DeepPool) -> Sequence[Passage]:
    """Return the shadow's passages that the record does not hold, each id and each text once."""
    held = [passage for pool in record.pools for passage in pool.passages]
    ids = {passage.id for passage in held}
    texts = {text_key(passage.text) for passage in held}
    fresh: list[Passage] = []
    for passage in shadow.passages:
        text = text_key(passage.text)
        if passage.text.strip() and passage.id not in ids and text not in texts:
            fresh.append(passage)
            ids.add(passage.id)
            texts.add(text)
    return fresh


METRIC = AtKMetric(
    MetricSpec(
        name="proc_shadow",
        summary="The pool's best contexts against a deeper retrieval of the same query; upper bounds.",
        needs=("ranking", "pool", "labels", "judge"),
        required=(),
        outputs=(
            Output(name="proc_shadow_at_k", threshold=None),
            Output(name="ra_nwg_upper_shadow_at_k", threshold=None),
        ),
        calls="the retriever once; then 1 judge call per 10 passages of pool and shadow not graded before",
        source="RA-nWG, arXiv 2511.09545",
        uses_deep_pool=True,
    ),
    proc_shadow,
    _read,
)
