"""Grades of a record's passages, and metrics over them with a value for each K."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.judges.cache.grade_cache import normal_form
from ragtrace.judges.scales import are_grades, is_whole
from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.model import JudgeInfo, label_id
from ragtrace.model.passage import content_hash

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from ragtrace.judges.base import Grades
    from ragtrace.metrics.base import Outcome
    from ragtrace.metrics.eval_context import EvalContext, MetricOptions
    from ragtrace.model import Labels, LabelStratum, MetricResult, Passage, RagRecord

    # The outcome of the only output, or those of several.
    At = Callable[["Graded", int, MetricOptions], "AtK | Outcome"]
    Read = Callable[[EvalContext], Awaitable["Graded | NoGrades"]]

GRADING_CALLS = "none with labels, else the grading of the pool: 1 judge call per 10 passages"
LABELS = "labels"
OTHER_QUERY = (
    "the labels are of another query, however like this one: what is relevant changes with the query, "
    "so let the judge grade for this one"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Grades of a record's passages, with the lists that metrics over grades read.

    Attributes:
        grades: grade by passage id, over all that was labelled.
        label_scope: the set that was labelled; ``pool`` for a judge's grades.
        judge: the grader and its scale; ``labels`` for grades that came with the record.
        delivered: ids of the ranked contexts (the last stage seen), best first, copies included.
        pool: ids of the candidate pool (the first stage seen).
        stage: the stage that `delivered` is.
        version: version of the labels, where they have one.
        cached: number of a judge's grades that were known before; None for labels.
        strata: the parts of the corpus behind a stratified scope.
        label_facts: further details about the labels.
        series: separates these numbers from others of the same judge and metric; "" for one series.
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
    label_facts: Mapping[str, object] = field(default_factory=dict)
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
        """Return the grades of the first `depth` distinct contexts, None where there is no valid one."""
        found = (self.grades.get(key) for key in self.distinct()[:depth])
        return [grade if is_whole(grade) else None for grade in found]

    def result(
        self,
        name: str,
        outcome: Outcome,
        details: Mapping[str, object] | None = None,
        label_scope: str | None = None,
    ) -> MetricResult:
        """Return an outcome as a result with grader, label scope and facts."""
        found = result(name, outcome, {**self._facts(), **(details or {})})
        return replace(found, judge=self.judge, label_scope=label_scope or self.label_scope, version=self.series)

    def _facts(self) -> dict[str, object]:
        copies = len(self.delivered) - len(self.distinct())
        facts: dict[str, object] = {
            "list": self.stage,
            "universe_size": len(self.grades),
            "dup_count": copies,
            "dup_rate": copies / len(self.delivered) if self.delivered else 0.0,
        }
        if self.version is not None:
            facts["labels_version"] = self.version
        if self.cached is not None:
            facts["grades_cached"] = self.cached
        return facts | dict(self.label_facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoGrades:
    """The reason for which a metric computes nothing for a record, at any K."""

    reason: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtK:
    """The outcome of each output at one K, with the facts behind it.

    Attributes:
        outcomes: by output.
        details: facts beside those of the grades.
        label_scopes: the scope of outputs that read another set of labels than the rest.
    """

    outcomes: Mapping[str, Outcome]
    details: Mapping[str, object] = field(default_factory=dict)
    label_scopes: Mapping[str, str] = field(default_factory=dict)


def graded_spec(
    name: str, summary: str, source: str, *, output: Output | None = None, options: tuple[str, ...] = ()
) -> MetricSpec:
    """Return the spec of a metric over grades; its one output is named after it by default."""
    return MetricSpec(
        name=name,
        summary=summary,
        needs=("ranking", "labels", "judge"),
        required=(),
        outputs=(output or Output(name=name),),
        calls=GRADING_CALLS,
        source=source,
        options=options,
    )


async def graded(ctx: EvalContext) -> Graded:
    """Return the grades of a record.

    They are its labels of any scope, else the judge's grades of its pool. Blank contexts are left out of a judge's
    lists, because the judge never sees them; with labels, ids alone count.

    Raises:
        JudgeError: there are no labels and the judge has no usable grades.
    """
    labels = ctx.record.labels
    return by_verdict(ctx, await ctx.grades()) if labels is None else by_labels(ctx.record, labels)


class AtKMetric:
    """A metric over grades with a value for each K. Coroutine-safe.

    Args:
        spec: of the metric.
        at: returns the outcomes at one K, which is positive, from the grades and the options.
        read: returns the grades of a record, or a refusal; the judge is asked only where a K is positive.
    """

    def __init__(self, spec: MetricSpec, at: At, read: Read = graded) -> None:
        self.spec = spec
        self._at = at
        self._read = read

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return one result for each K and output; raises JudgeError when the judge has no grades."""
        source: Graded | NoGrades | None = None
        results: list[MetricResult] = []
        for place, k in enumerate(ctx.k_values()):
            if k > 0 and source is None:
                source = await self._read(ctx)
            graded_at_k = source if source is not None and k > 0 else _no_places(ctx.record)
            if isinstance(graded_at_k, NoGrades):
                found = self.spec.every(graded_at_k.reason, graded_at_k.details)
            else:
                found = self._results(graded_at_k, k, ctx.options)
            results += [replace(result, k=k, variant=str(k) if place else "") for result in found]
        return results

    def _results(self, source: Graded, k: int, options: MetricOptions) -> list[MetricResult]:
        found = self._at(source, k, options)
        if not isinstance(found, AtK):
            found = AtK(outcomes={self.spec.outputs[0].name: found}, details={"grades": source.top(k)})
        return [
            source.result(it.name, found.outcomes[it.name], found.details, found.label_scopes.get(it.name))
            for it in self.spec.outputs
        ]


def _no_places(record: RagRecord) -> NoGrades:
    ids = [passage.id for passage in record.ranked_contexts]
    return NoGrades(reason="k_not_positive", details={"dup_count": len(ids) - len(set(ids))})


def by_verdict(ctx: EvalContext, verdict: Grades) -> Graded:
    """Return the grades that the judge gave the pool."""
    name, version = (ctx.judge.name, ctx.judge.version("grades")) if ctx.judge is not None else ("", "")
    return Graded(
        grades=verdict.grades,
        label_scope="pool",
        judge=JudgeInfo(model=name, prompt_hash=version, label_scale=verdict.scale),
        cached=verdict.cached,
        label_facts={"grade_cache_fault": verdict.cache_fault} if verdict.cache_fault else {},
        delivered=_ids_with_text(ctx.record.ranked_contexts),
        pool=_ids_with_text(candidates(ctx.record)),
        stage=_stage(ctx.record),
    )


def by_labels(record: RagRecord, labels: Labels) -> Graded:
    """Return the grades that came with a record; labels of another query give none, with a hint.

    Chunks of a document stand in the lists by the ids that the labels have: their own, or the document's.
    """
    version = content_hash(labels.version)[:8] if labels.version else ""
    is_own = are_of(record, labels)
    return Graded(
        grades=labels.grades if is_own else {},
        label_scope=labels.label_scope,
        judge=JudgeInfo(model=LABELS, prompt_hash=version, label_scale=labels.scale),
        version=labels.version,
        strata=labels.strata,
        label_facts={} if is_own else {"hint": OTHER_QUERY},
        delivered=tuple(label_id(passage, labels.grades) for passage in record.ranked_contexts),
        pool=tuple(label_id(passage, labels.grades) for passage in candidates(record)),
        stage=_stage(record),
    )


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


def candidates(record: RagRecord) -> tuple[Passage, ...]:
    """Return the passages of the first stage seen."""
    return record.pools[0].passages if record.pools else ()


def _ids_with_text(passages: Iterable[Passage]) -> tuple[str, ...]:
    return tuple(passage.id for passage in passages if passage.text.strip())


def _stage(record: RagRecord) -> str:
    return record.pools[-1].stage if record.pools else ""
