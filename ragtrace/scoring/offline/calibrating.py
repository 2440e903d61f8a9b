"""Scores a record for `ragtrace calibrate`, with repeats that check the judge."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ragtrace.errors import JudgeError
from ragtrace.judges.cache.grade_cache import PassageGrader
from ragtrace.model import MetricResult, Pool

if TYPE_CHECKING:
    from ragtrace.metrics.base import MetricSpec
    from ragtrace.metrics.eval_context import MetricOptions
    from ragtrace.model import Passage, RagRecord
    from ragtrace.scoring.scorer import Scorer

GATE = "batch_gate"
OPPOSITE = "length_debias"  # the variant of a result under the opposite setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationScorer:
    """Scores records and repeats some, to check the judge. Coroutine-safe.

    The numbers are always the judge's: labels that a record brings for its passages are not shown to a metric that
    could ask the judge for them.

    Attributes:
        scorer: of the metric.
        rejudged: ids of records to judge again with the opposite ``length_debias``.
        gated: ids of records whose passages are also graded one by one.
    """

    scorer: Scorer
    rejudged: frozenset[str] = field(default_factory=frozenset)
    gated: frozenset[str] = field(default_factory=frozenset)

    async def results(self, record: RagRecord) -> list[MetricResult]:
        """Return the results of the metrics, then those of the repeats."""
        scorer, asked = self.scorer, self._as_judged(record)
        results = await scorer.results(asked)
        opposite = opposite_options(scorer.options) if record.id in self.rejudged else None
        if opposite is not None:
            again = await replace(scorer, options=opposite).results(asked)
            results += [replace(found, variant=OPPOSITE) for found in again]
        if record.id in self.gated:
            results.append(await self._pairs(asked))
        return results

    async def aclose(self) -> None:
        """Release the scorer's connections."""
        await self.scorer.aclose()

    def _as_judged(self, record: RagRecord) -> RagRecord:
        could_ask = any(grades_passages(metric.spec) for metric in self.scorer.metrics)
        return replace(record, labels=None) if could_ask else record

    async def _pairs(self, record: RagRecord) -> MetricResult:
        """Return the grades from batches beside those of single passages."""
        judge = self.scorer.judge
        if judge is None or "grades" not in judge.tasks:
            return MetricResult(name=GATE, state="na", reason="unsupported_by_judge")
        if isinstance(judge, PassageGrader):  # what it remembers of a batch would be compared with itself
            judge = judge.without_grade_cache()
        pairs: list[tuple[int, int]] = []
        try:
            together = (await judge.grades(record)).grades
            for passage in gradable(record):
                alone = replace(record, pools=(Pool(stage="retrieved", passages=(passage,)),))
                single = (await judge.grades(alone)).grades
                pairs.append((together[passage.id], single[passage.id]))
        except JudgeError as error:
            return MetricResult(name=GATE, state="error", reason=error.reason, details={"message": str(error)})
        return MetricResult(name=GATE, state="ok", value=float(len(pairs)), details={"pairs": pairs})


def gradable(record: RagRecord) -> list[Passage]:
    """Return the non-blank passages of the candidate pool, each id once."""
    pool = record.pools[0].passages if record.pools else ()
    kept: dict[str, Passage] = {}
    for passage in pool:
        if passage.text.strip():
            kept.setdefault(passage.id, passage)
    return list(kept.values())


def grades_passages(spec: MetricSpec) -> bool:
    """Return whether a metric asks a judge for the grades of a pool."""
    return spec.task == "grades" or {"judge", "labels"} <= set(spec.needs)


def debiases_length(spec: MetricSpec) -> bool:
    """Return whether a metric's prompt says that length is no sign of quality."""
    return OPPOSITE in spec.options


def opposite_options(options: MetricOptions) -> MetricOptions | None:
    """Return the options with the opposite length setting, None without one."""
    if OPPOSITE not in {item.name for item in fields(options)}:
        return None
    changed: dict[str, Any] = {OPPOSITE: not getattr(options, OPPOSITE)}
    return replace(options, **changed)
