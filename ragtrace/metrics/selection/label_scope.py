"""Labels that RA-nWG and PROC may use, and refusals of all others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.errors import JudgeError
from ragtrace.judges.cache.grade_cache import LabelKeeper, text_key
from ragtrace.metrics.graded import OTHER_QUERY, NoGrades, are_of, by_verdict, candidates

if TYPE_CHECKING:
    from ragtrace.judges.base import Grades
    from ragtrace.judges.cache.grade_cache import LabelSet
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.metrics.graded import Graded
    from ragtrace.model import Labels, RagRecord

_NEED = "RA-nWG and PROC need labels of a whole universe: gold, stratified, or cache (set grade_cache to a file)"
_POOL = f"{_NEED}; over the pool use selection_efficiency_at_k"
_HINTS = {
    "pool": f"a pool is no universe: PROC is 1 by construction. {_POOL}",
    "shadow": f"a shadow pool bounds from above alone: use proc_shadow_at_k. {_NEED}",
    "sample": (
        "a uniform random sample is no universe: 0 hits in m draws only bound a share by 3 / m. Grade bands of "
        f"ranks and give their strata, as universe 'stratified'. {_NEED}"
    ),
}
_NO_STRATA = "universe 'stratified' needs strata in the labels: size, labelled and counts of each"
_GROWN = "all that was ever graded for this query is this pool, and a pool is no universe. {need}"


def refusal(record: RagRecord, labels: Labels) -> NoGrades | None:
    """Return the refusal of labels that cover no whole scope, None where they may be used.

    Example:
        >>> from ragtrace.model import Labels, RagRecord
        >>> record = RagRecord(id="1", query="Where?")
        >>> refusal(record, Labels(grades={"a": 5})) is None
        True
        >>> refusal(record, Labels(grades={"a": 5}, label_scope="shadow")).details["hint"][:41]
        'a shadow pool bounds from above alone: us'
    """
    if not are_of(record, labels):
        return NoGrades(reason="no_labels", details={"hint": OTHER_QUERY})
    hint = _HINTS.get(labels.label_scope)
    if labels.label_scope == "stratified":
        hint = _of_strata(labels)
    return None if hint is None else NoGrades(reason="no_labels", details={"hint": hint})


async def by_cache(ctx: EvalContext) -> Graded | NoGrades:
    """Return all grades that the judge gave for the record's query, after grading the pool.

    Raises:
        JudgeError: the pool could not be graded, or the file not be read.
    """
    judge: object = ctx.judge
    if not isinstance(judge, LabelKeeper) or not judge.keeps_labels:
        return NoGrades(reason="no_labels", details={"hint": _POOL})
    verdict = await ctx.grades()
    try:
        labels = await judge.labelled(ctx.record)
    except OSError as error:
        raise JudgeError(str(error)) from error
    if labels is None:
        return NoGrades(reason="no_labels", details={"hint": _GROWN.format(need=_POOL)})
    found = _over(ctx, verdict, labels)
    if {*found.pool, *found.delivered} >= {*labels.grades}:
        return NoGrades(reason="no_labels", details={"hint": _GROWN.format(need=_POOL)})
    return found


def _over(ctx: EvalContext, verdict: Grades, labels: LabelSet) -> Graded:
    judged = by_verdict(ctx, verdict)
    growth = {"labels_grown_at": labels.grown_at, "labels_frozen": labels.frozen}
    return replace(
        judged,
        grades=labels.grades,
        label_scope="cache",
        delivered=tuple(text_key(passage.text) for _, passage in ctx.ranked_contexts()),
        pool=tuple(text_key(passage.text) for passage in candidates(ctx.record) if passage.text.strip()),
        version=str(labels.version),
        label_facts={**judged.label_facts, **growth},
        series="" if labels.frozen is None else f"frozen {labels.frozen}",
    )


def _of_strata(labels: Labels) -> str | None:
    if not labels.strata:
        return _NO_STRATA
    is_partial = any(stratum.labelled < stratum.size for stratum in labels.strata)
    return _HINTS["sample"] if is_partial and len(labels.strata) == 1 else None
