"""A record's passages with their grades: from the record's labels, else from the judge."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ragtrace.judges.cache.grade_cache import normal_form
from ragtrace.judges.scales import are_grades, is_whole
from ragtrace.model import JudgeInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.judges.base import Grades
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import Labels, LabelStratum, RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The lists that metrics over grades read.

    Attributes:
        grades: grade by passage id, over all that was labelled.
        label_scope: which set was labelled; ``pool`` for a judge's grades.
        judge: who graded, with the scale; ``labels`` for grades that came with the record.
        delivered: ids of the delivered contexts (the last stage seen), best first, copies included.
        pool: ids of the candidate pool (the first stage seen).
        stage: the stage that `delivered` is.
        version: version of the labels, where they have one.
        cached: of a judge's grades, how many were known before; None for labels.
        strata: the parts of the corpus behind a stratified universe.
        label_facts: what stands in the details beside the rest.
        series: what makes these numbers a series of their own, apart from judge and metric; "" for nothing.
    """

    grades: Mapping[str, int]
    label_scope: str
    judge: JudgeInfo
    delivered: tuple[str, ...]
    pool: tuple[str, ...]
    stage: str
    version: str | None = None
    cached: int | None = None
    strata: tuple[LabelStratum, ...] = ()
    label_facts: Mapping[str, Any] = field(default_factory=dict)
    series: str = ""

    def fault(self, depth: int | None = None) -> str | None:
        """Return why no number may be computed over the first `depth` distinct contexts (all without one).

        Either ``no_labels``, ``invalid_grade`` or ``unlabelled_topk``, in this order; None when all is well.
        """
        if not self.grades:
            return "no_labels"
        if not are_grades(self.grades.values()):
            return "invalid_grade"
        top = self.distinct()[:depth]
        return None if all(key in self.grades for key in top) else "unlabelled_topk"

    def distinct(self) -> list[str]:
        """Return the delivered ids, each once."""
        return list(dict.fromkeys(self.delivered))

    def top(self, depth: int | None) -> list[int | None]:
        """Return the grades of the first `depth` distinct contexts, None where there is no sound one."""
        found = (self.grades.get(key) for key in self.distinct()[:depth])
        return [grade if is_whole(grade) else None for grade in found]

    def facts(self) -> dict[str, Any]:
        """Return what stands in the details of every metric over grades."""
        copies = len(self.delivered) - len(self.distinct())
        facts: dict[str, Any] = {
            "list": self.stage,
            "universe_size": len(self.grades),
            "dup_count": copies,
            "dup_rate": copies / len(self.delivered) if self.delivered else 0.0,
        }
        if self.version is not None:
            facts["labels_version"] = self.version
        if self.judge.model != LABELS:
            facts["batch_gate"] = "unverified"  # METRICS.md 2.5: until `ragtrace calibrate` measured the batches
        if self.cached is not None:
            facts["grades_cached"] = self.cached
        return facts | dict(self.label_facts)


LABELS = "labels"
OTHER_QUERY = (
    "the labels are of another query, however like this one: what is relevant changes with the query, "
    "so let the judge grade for this one"
)


async def graded(ctx: EvalContext) -> Graded:
    """Return the grades of a case: the record's labels of any universe, else the judge's of its pool.

    Blank contexts are left out of a judge's lists, as it never sees them; with labels, ids alone count.

    Raises:
        JudgeError: there are no labels and the judge has no usable grades.
    """
    labels = ctx.record.labels
    if labels is not None:
        return by_labels(ctx.record, labels)
    return by_verdict(ctx, await ctx.grades())


def by_verdict(ctx: EvalContext, verdict: Grades) -> Graded:
    """Return the grades that the case's judge gave its pool."""
    judge = ctx.judge
    name, version = (judge.name, judge.version("grades")) if judge is not None else ("", "")
    found = _listed(
        ctx.record,
        grades=verdict.grades,
        label_scope="pool",
        judge=JudgeInfo(model=name, prompt_hash=version, label_scale=verdict.scale),
        is_judged=True,
    )
    fault = {"grade_cache_fault": verdict.cache_fault} if verdict.cache_fault else {}
    return replace(found, cached=verdict.cached, label_facts=fault)


def by_labels(record: RagRecord, labels: Labels) -> Graded:
    """Return the grades that came with a record; none where they are of another query, with a hint."""
    version = hashlib.sha256(labels.version.encode()).hexdigest()[:8] if labels.version else ""
    is_own = are_of(record, labels)
    found = _listed(
        record,
        grades=labels.grades if is_own else {},
        label_scope=labels.label_scope,
        judge=JudgeInfo(model=LABELS, prompt_hash=version, label_scale=labels.scale),
        version=labels.version,
    )
    return replace(found, strata=labels.strata, label_facts={} if is_own else {"hint": OTHER_QUERY})


def are_of(record: RagRecord, labels: Labels) -> bool:
    """Return whether labels are of the record's query; those that name no query are.

    Example:
        >>> from ragtrace.model import Labels, RagRecord
        >>> record = RagRecord(id="1", query="Where is Oslo?")
        >>> are_of(record, Labels(grades={"a": 5}, query="Where  is Oslo?")), are_of(record, Labels(grades={}))
        (True, True)
        >>> are_of(record, Labels(grades={"a": 5}, query="Where is Bergen?"))
        False
    """
    return labels.query is None or normal_form(labels.query) == normal_form(record.query)


def _listed(
    record: RagRecord,
    *,
    grades: Mapping[str, int],
    label_scope: str,
    judge: JudgeInfo,
    version: str | None = None,
    is_judged: bool = False,
) -> Graded:
    candidates = record.pools[0].passages if record.pools else ()
    return Graded(
        grades=grades,
        label_scope=label_scope,
        judge=judge,
        delivered=tuple(p.id for p in record.contexts if p.text.strip() or not is_judged),
        pool=tuple(p.id for p in candidates if p.text.strip() or not is_judged),
        stage=record.pools[-1].stage if record.pools else "",
        version=version,
    )
