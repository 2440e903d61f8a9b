"""Views into outputs; without contents only ids, numbers, closed words and names of parts leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from ragtrace.mcp import results
from ragtrace.model.diagnosis import MEANINGS, WORDS
from ragtrace.model.printable import printable
from ragtrace.model.record import LabelScale, LabelScope
from ragtrace.model.score import ERROR_REASONS, NA_REASONS, SKIP_REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.stats.intervals import Interval
    from ragtrace.views import types

MOST_METRICS, MOST_LISTED, MOST_PARTS = 60, 50, 60
MOST_CHARS = {"question": 4_000, "answer": 8_000, "reference": 4_000, "passage": 1_500, "claim": 1_000}
_REASONS = NA_REASONS | ERROR_REASONS | SKIP_REASONS
_CLAIM_VERDICTS = {"supported", "not_supported", "contradicted", "invented"}
_FACTS = {"workflow", "environment", "corpus", "corpus_version", "model", "selection_source", "tag"}
_WORDS = {word for words in WORDS.values() for word in words} | {"yes", "no"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
_MISSING = re.compile(r"missing_input:[a-z_]{1,40}")
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class Converter:
    """Makes outputs of views.

    Attributes:
        has_content: whether texts leave.
    """

    has_content: bool

    def overview(self, it: types.Overview) -> results.Overview:
        """Return the overview with its most important metrics and workflows."""
        return results.Overview(
            source=it.source,
            runs=it.runs,
            first=moment(it.first),
            last=moment(it.last),
            metrics=[_metric(metric) for metric in it.metrics[:MOST_METRICS]],
            verdicts=[_share(share) for share in it.verdicts],
            workflows=dict(it.workflows[:MOST_LISTED]),
            notes=[self._note(note) for note in it.notes],
        )

    def page(self, it: types.RunPage) -> results.WorstRuns:
        """Return one page of a list."""
        return results.WorstRuns(
            metric=it.metric,
            direction=it.direction,
            count=it.count,
            page=it.page,
            runs=[self._line(line) for line in it.lines],
            notice=self._notice(),
        )

    def run(self, it: types.RunView) -> results.Run:
        """Return one run, with at most 60 claims, passages and scores."""
        return results.Run(
            id=it.id,
            trace_id=it.trace_id,
            trace_url=it.trace_url,
            at=moment(it.at),
            outcome=it.outcome,
            verdict=it.verdict,
            stage=it.stage,
            standing=it.word,
            meaning=it.meaning,
            evidence={name: value for name, value in it.verdict_facts if self._leaves(value)},
            scores=[_score(score) for score in it.scores[:MOST_PARTS]],
            claims=[self._claim(claim) for claim in it.claims[:MOST_PARTS]],
            passages=[self._passage(passage) for passage in it.passages[:MOST_PARTS]],
            left_out=_left_out(scores=it.scores, claims=it.claims, passages=it.passages),
            facts=_facts(it.facts),
            duration_s=it.duration_s,
            input_tokens=it.tokens[0] if it.tokens else None,
            output_tokens=it.tokens[1] if it.tokens else None,
            people_ratings=[rating.value for rating in it.ratings[:MOST_PARTS]],
            question=self._text(it.query, "question"),
            answer=self._text(it.answer, "answer"),
            reference=self._text(it.reference, "reference"),
            notice=self._notice(),
        )

    def comparison(self, it: types.ComparisonView) -> results.Comparison:
        """Return a comparison with its worst regressions."""
        return results.Comparison(
            before=it.names[0],
            after=it.names[1],
            runs_before=it.counts[0],
            runs_after=it.counts[1],
            metrics=[_compared(metric) for metric in it.metrics[:MOST_METRICS]],
            verdicts=[
                results.VerdictShares(verdict=name, before=mean(before), after=mean(after))
                for name, before, after in it.verdicts
            ],
            worst_regressions=[self._compared_run(run) for run in it.runs[:MOST_LISTED] if run.change < 0],
            refused=[printable(line) for line in it.refused],
            notice=self._notice(),
        )

    def _line(self, it: types.RunLine) -> results.Line:
        return results.Line(
            id=it.id,
            at=moment(it.at),
            workflow=it.workflow,
            model=it.model,
            value=it.value,
            passed=it.passed,
            state=it.state,
            reason=reason(it.reason),
            verdict=it.verdict,
            stage=it.stage,
            standing=it.word,
            people_rating=it.rating,
            question=self._text(it.query, "claim"),
            worst_claim=self._text(it.claim, "claim"),
        )

    def _passage(self, it: types.PassageRow) -> results.Passage:
        return results.Passage(
            id=it.id,
            has_rank=it.has_rank,
            retrieved=it.rank,
            selected=it.selected,
            in_prompt=it.used,
            score=it.score,
            rerank_score=it.rerank_score,
            grade=it.grade,
            supports_claims=list(it.claims),
            is_cited=it.cited,
            text=self._text(it.text, "passage"),
        )

    def _claim(self, it: types.ClaimRow) -> results.Claim:
        return results.Claim(
            number=it.number,
            verdict=it.verdict if it.verdict in _CLAIM_VERDICTS else _OTHER,
            support=it.support,
            evidence=list(it.evidence[:MOST_PARTS]),
            text=self._text(it.text, "claim"),
            reason=self._text(it.reason, "claim"),
        )

    def _compared_run(self, it: types.ComparedRun) -> results.ComparedRun:
        return results.ComparedRun(
            before_id=it.before_id,
            after_id=it.after_id,
            before=it.before,
            after=it.after,
            change=it.change,
            before_verdict=it.before_verdict,
            after_verdict=it.after_verdict,
            question=self._text(it.query, "claim"),
        )

    def _text(self, text: str | None, kind: str) -> str | None:
        if not self.has_content or text is None:
            return None
        most, plain = MOST_CHARS[kind], printable(text, keep="\n\t")
        return plain if len(plain) <= most else f"{plain[:most]}... ({len(plain) - most} characters more)"

    def _note(self, note: str) -> str:
        return printable(note if self.has_content else note.partition(" (the first: ")[0])

    def _leaves(self, value: str) -> bool:
        return self.has_content or value in _WORDS or _NUMBER.fullmatch(value) is not None

    def _notice(self) -> str | None:
        return results.UNTRUSTED if self.has_content else None


def diagnosis(it: types.InvestigationView) -> results.Diagnosis:
    """Return an investigation without its examples' texts."""
    return results.Diagnosis(
        is_fallen=it.is_fallen,
        headline=printable(it.headline),
        metric=it.metric,
        since=moment(it.since),
        before=mean(it.before) if it.before else None,
        after=mean(it.after) if it.after else None,
        stage=it.stage,
        verdict=it.verdict,
        meaning=next((words for verdict, words in MEANINGS.items() if verdict == it.verdict), None),
        causes=[
            results.Cause(
                dimension=cause.dimension,
                value=printable(cause.value),
                share=cause.share,
                before=cause.before,
                after=cause.after,
            )
            for cause in it.culprits[:MOST_LISTED]
        ],
        also=[
            results.AlsoWorse(metric=other.metric, before=other.before, after=other.window)
            for other in it.also[:MOST_LISTED]
        ],
        example_ids=list(it.example_ids[:MOST_LISTED]),
    )


def mean(it: Interval, n: int | None = None) -> results.Mean:
    """Return a mean with its interval."""
    return results.Mean(mean=it.mean, low=it.low, high=it.high, n=n)


def moment(at: float | None) -> datetime | None:
    """Return Unix seconds as a time; None for an unknown one.

    Example:
        >>> str(moment(60.0)), moment(0.0)
        ('1970-01-01 00:01:00+00:00', None)
    """
    try:
        return datetime.fromtimestamp(at, UTC) if at else None
    except (OverflowError, ValueError, OSError):
        return None


def reason(text: str | None) -> str | None:
    """Return a reason of the closed list; `other` for another text.

    Example:
        >>> reason("abstained"), reason("missing_input:answer"), reason("Ada said so")
        ('abstained', 'missing_input:answer', 'other')
    """
    if text is None or text in _REASONS or _MISSING.fullmatch(text):
        return text
    return _OTHER


def _metric(it: types.MetricView) -> results.Metric:
    return results.Metric(
        metric=it.key.metric,
        label=it.label,
        judge=it.key.judge,
        version=it.key.version or "",
        k=it.key.k,
        universe=_one_of(it.key.universe, LabelScope),
        label_scale=_one_of(it.key.label_scale, LabelScale),
        direction=it.direction,
        threshold=it.threshold,
        mean=mean(it.mean, it.n),
        units=it.units,
        forced=it.forced,
        share_that_misses_the_threshold=it.missed,
        na=_counts(it.na),
        errors=_counts(it.errors),
        drift=it.drift.state,
        drift_since=moment(it.drift.since),
        drift_before=it.drift.before,
        drift_after=it.drift.after,
    )


def _score(it: types.ScoreRow) -> results.Score:
    return results.Score(
        metric=it.key.metric,
        state=it.state,
        value=it.value,
        reason=reason(it.reason),
        passed=it.passed,
        threshold=it.threshold,
        judge=it.key.judge,
        version=it.key.version,
        k=it.key.k,
        universe=_one_of(it.key.universe, LabelScope),
        label_scale=_one_of(it.key.label_scale, LabelScale),
        weight=it.weight,
        stratum=it.stratum,
    )


def _compared(it: types.ComparedMetric) -> results.Compared:
    return results.Compared(
        metric=it.label,
        direction=it.direction,
        before=mean(it.before, it.n[0]),
        after=mean(it.after, it.n[1]),
        difference=it.difference,
        low=it.low,
        high=it.high,
        pairs=it.pairs,
        verdict=it.verdict,
    )


def _share(it: types.VerdictShare) -> results.Verdict:
    return results.Verdict(verdict=it.verdict, stage=it.stage, meaning=it.meaning, share=mean(it.share, it.n))


def _counts(found: Mapping[str, int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text, n in found.items():
        name = reason(text) or _OTHER
        counts[name] = counts.get(name, 0) + n
    return counts


def _one_of(text: str | None, kind: Any) -> str | None:
    return text if text is None or text in get_args(kind) else _OTHER


def _facts(given: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the facts of the deployment, and never the session, the user or the request's metadata."""
    found: dict[str, list[str]] = {}
    for name, value in given:
        if name in _FACTS and len(found.setdefault(name, [])) < MOST_LISTED:
            found[name].append(printable(value))
    return found


def _left_out(**parts: Sequence[object]) -> dict[str, int]:
    return {name: len(part) - MOST_PARTS for name, part in parts.items() if len(part) > MOST_PARTS}
