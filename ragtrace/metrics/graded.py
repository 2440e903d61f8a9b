"""A record's passages with their grades: from the record's labels, else from the judge."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace.judges.scales import are_grades, is_whole
from ragtrace.model import JudgeInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.metrics.case import Case
    from ragtrace.model import Labels, RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The lists that metrics over grades read.

    Attributes:
        grades: grade by passage id, over all that was labelled.
        universe: which set was labelled; ``pool`` for a judge's grades.
        judge: who graded, with the scale; ``labels`` for grades that came with the record.
        delivered: ids of the delivered contexts (the last stage seen), best first, copies included.
        pool: ids of the candidate pool (the first stage seen).
        stage: the stage that `delivered` is.
        version: version of the labels, where they have one.
    """

    grades: Mapping[str, int]
    universe: str
    judge: JudgeInfo
    delivered: tuple[str, ...]
    pool: tuple[str, ...]
    stage: str
    version: str | None = None

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
        return facts


LABELS = "labels"


async def graded(case: Case) -> Graded:
    """Return the grades of a case: the record's labels of any universe, else the judge's of its pool.

    Blank contexts are left out of a judge's lists, as it never sees them; with labels, ids alone count.

    Raises:
        JudgeError: there are no labels and the judge has no usable grades.
    """
    labels = case.record.labels
    if labels is not None:
        return by_labels(case.record, labels)
    verdict = await case.grades()
    judge = case.judge
    name, version = (judge.name, judge.version("grades")) if judge is not None else ("", "")
    return _listed(
        case.record,
        grades=verdict.grades,
        universe="pool",
        judge=JudgeInfo(model=name, prompt_hash=version, label_scale=verdict.scale),
        is_judged=True,
    )


def by_labels(record: RagRecord, labels: Labels) -> Graded:
    """Return the grades that came with a record."""
    version = hashlib.sha256(labels.version.encode()).hexdigest()[:8] if labels.version else ""
    return _listed(
        record,
        grades=labels.grades,
        universe=labels.universe,
        judge=JudgeInfo(model=LABELS, prompt_hash=version, label_scale=labels.scale),
        version=labels.version,
    )


def _listed(
    record: RagRecord,
    *,
    grades: Mapping[str, int],
    universe: str,
    judge: JudgeInfo,
    version: str | None = None,
    is_judged: bool = False,
) -> Graded:
    candidates = record.pools[0].passages if record.pools else ()
    return Graded(
        grades=grades,
        universe=universe,
        judge=judge,
        delivered=tuple(p.id for p in record.contexts if p.text.strip() or not is_judged),
        pool=tuple(p.id for p in candidates if p.text.strip() or not is_judged),
        stage=record.pools[-1].stage if record.pools else "",
        version=version,
    )
