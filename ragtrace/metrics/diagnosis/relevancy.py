"""Whether an answer turns to the question, and whether its contexts do: by answer relevancy and by words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace.judges.offline.reading import is_evasive
from ragtrace.judges.offline.words import is_english, stems
from ragtrace.model.claims import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.judges.base import Claim
    from ragtrace.metrics.diagnosis.table import Known
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import RagRecord

# Levels of answer relevancy depend on the embedder: only what is far below or above its pass mark says something.
LOW_RELEVANCY: Final = 0.2
HIGH_RELEVANCY: Final = 0.8
# Of 99 answerable questions of CLAPnq 3 % lie below it with their own answer and passage, 95 % with another one's.
LOW_COVERAGE: Final = 0.25
# Of those questions 13 % have fewer of their words in their own passage, 99 % in another one's. Of 101 unanswerable
# questions 61 % have fewer in theirs.
LOW_RELATED: Final = 0.4
_FEW_TERMS: Final = 2
_FEW_IN_A_SESSION: Final = 3
# What asks nothing, such as a search phrase or talk, need share no word with what answers it.
_ASKS: Final = re.compile(
    r"\?|^\W*+(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should|may|"
    r"must|has|have|had)\b",
    re.IGNORECASE,
)
_OFFLINE_EMBEDDERS: Final = ("overlap", "local:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Responsiveness:
    """How far an answer turns to the question.

    The offline embedders compare single words, and a question that the judge writes in other words has a cosine
    near 0. A low relevancy by them, or none because the judge failed, is therefore checked against the words of the
    question. Those words are all there is where the judge writes no questions.

    Attributes:
        relevancy: answer relevancy in [0, 1]; None without one.
        is_by_meaning: an embedder that reads whole sentences gave it.
        is_evasive: the judge called the answer noncommittal in every question that it wrote, or it says nothing by
            its words, and the contexts support no claim of it.
        coverage: share of the terms of the question that stand in the answer or in a passage that supports it, in
            [0, 1]; None where relevancy decides, or where words decide nothing.
        related: as `ragtrace.metrics.diagnosis.table.DiagnosisFacts.related`.
    """

    relevancy: float | None = None
    is_by_meaning: bool = False
    is_evasive: bool = False
    coverage: float | None = None
    related: Known = "unknown"

    @classmethod
    def of(cls, ctx: EvalContext, claims: Sequence[Claim], invented: Sequence[str]) -> Responsiveness:
        """Read what the metric answer_relevancy found, or compare words where the judge cannot write questions.

        Nothing is known where it can, and nobody asked for that metric.

        Args:
            ctx: of the run.
            claims: of the answer.
            invented: specifics of the answer that no context has.
        """
        if ctx.judge is not None and "questions" not in ctx.judge.tasks:
            return cls._by_words(ctx, claims, invented)
        found = ctx.results.get("answer_relevancy")
        if found is None or found.state == "na":
            return cls()
        said = found.details.get("noncommittal")
        is_evasive = isinstance(said, list) and bool(said) and all(said)
        embedder = str(found.details.get("embedder"))
        is_by_meaning = found.value is not None and not embedder.startswith(_OFFLINE_EMBEDDERS)
        is_open = not is_evasive and not is_by_meaning and (found.value is None or found.value < LOW_RELEVANCY)
        return cls(
            relevancy=found.value,
            is_by_meaning=is_by_meaning,
            is_evasive=is_evasive,
            coverage=_coverage(ctx, claims) if is_open else None,
        )

    @classmethod
    def _by_words(cls, ctx: EvalContext, claims: Sequence[Claim], invented: Sequence[str]) -> Responsiveness:
        has_support = any(claim.verdict == SUPPORTED for claim in claims)
        if not has_support and is_evasive(ctx.record.answer, ctx.record.query):
            return cls(is_evasive=True)
        if not _ASKS.search(ctx.record.query):
            return cls()
        if not invented and all(claim.verdict == SUPPORTED for claim in claims):
            coverage = _coverage(ctx, claims)
            return cls(coverage=coverage if coverage is not None and coverage < LOW_COVERAGE else None)
        asked, held = _asked(ctx.record), _terms(passage.text for passage in ctx.record.contexts)
        return cls(related="no" if len(asked & held) < LOW_RELATED * len(asked) else "unknown")

    @property
    def responsive(self) -> Known:
        """As `ragtrace.metrics.diagnosis.table.DiagnosisFacts.responsive`."""
        if self.is_evasive:
            return "no"
        if self.coverage is not None:
            return "no" if self.coverage < LOW_COVERAGE else "unknown"
        if self.relevancy is None or LOW_RELEVANCY <= self.relevancy < HIGH_RELEVANCY:
            return "unknown"
        return "yes" if self.relevancy >= HIGH_RELEVANCY else "no" if self.is_by_meaning else "unknown"

    def evidence(self) -> dict[str, object]:
        """Return relevancy and coverage, each with the limit below which it is low."""
        found: dict[str, object] = {}
        if self.relevancy is not None:
            found["answer_relevancy"] = self.relevancy
        if self.coverage is not None:
            return found | {"query_coverage": self.coverage, "query_coverage_low": LOW_COVERAGE}
        return found | ({"answer_relevancy_low": LOW_RELEVANCY} if self.is_by_meaning else {})


def _coverage(ctx: EvalContext, claims: Sequence[Claim]) -> float | None:
    """Return the share of the terms of the question in the answer and in the passages behind it.

    None without a claim, and where one has no support, which says more.
    """
    record = ctx.record
    asked = _asked(record)
    if not asked or not claims or any(claim.verdict != SUPPORTED for claim in claims):
        return None
    sources = {place for claim in claims for place in claim.sources}
    found = _terms((record.answer, *(record.contexts[place].text for place in sorted(sources))))
    return len(asked & found) / len(asked)


def _asked(record: RagRecord) -> set[str]:
    """Return the terms of the question; empty where they say nothing.

    That is a follow-up question, whose words stand in the turns before, and a text in another language. A question
    of few terms may be one, as "How much?".
    """
    asked = {*stems(record.query)}
    is_follow_up = bool(record.history) or len(asked) < (
        _FEW_TERMS if record.session is None else _FEW_IN_A_SESSION
    )
    is_foreign = False in (is_english(record.query), is_english(record.answer))
    return set() if is_follow_up or is_foreign else asked


def _terms(texts: Iterable[str]) -> set[str]:
    return {term for text in texts for term in stems(text)}
