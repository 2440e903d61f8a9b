"""One run whole: the answer in pieces, its claims with their evidence, passages, scores and ratings."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from ragtrace.judges.scales import is_whole
from ragtrace.model import label_id
from ragtrace.model.claims import SUPPORTED
from ragtrace.model.diagnosis import MEANINGS
from ragtrace.model.reading import SIGNS, preview
from ragtrace.scoring.offline.scored_row import key_of
from ragtrace.views.figures import is_own_threshold, output_of, summary_of, threshold_of
from ragtrace.views.pool import STAGES as POOL_STAGES
from ragtrace.views.pool import pooled
from ragtrace.views.types import (
    AnswerPiece,
    ClaimRow,
    PassageRow,
    RatingRow,
    RunView,
    ScoreRow,
    SignRow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.model.reading import Sign
    from ragtrace.model.standing import Standing
    from ragtrace.stores.tables import Row
    from ragtrace.views.scored_answer import ScoredAnswer

LEAST_OVERLAP = 0.6
"""Share of a claim's words that a sentence must hold, to be taken for the claim's place."""
_UNBROKEN = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?]+|\n|$)\s*")
_FACTS = (
    "workflow",
    "environment",
    "corpus",
    "corpus_version",
    "model",
    "session",
    "user",
    "selection_source",
    "interrupt",
)


def run_view(
    run_id: str, answer: ScoredAnswer, *, at: float, rows: Sequence[Row] = (), trace_url: str | None = None
) -> RunView:
    """Return everything that is known of a run.

    Args:
        run_id: of the run in its source.
        answer: its record, scores and ratings.
        at: Unix seconds of its end, 0 where unknown.
        rows: its scores as a store holds them, with their costs and weights.
        trace_url: address of its trace; None without one.
    """
    record = answer.record
    standing = answer.standing
    claims, spans = placed_claims(record.answer, _claims(answer.scores, standing), _context_ids(record))
    usage = record.usage
    return RunView(
        id=run_id,
        trace_id=record.trace_id,
        at=at,
        has_texts=answer.has_texts,
        query=record.query,
        answer=record.answer,
        reference=record.reference,
        outcome=record.outcome,
        history=tuple((turn.role, turn.shown) for turn in record.history),
        pieces=tuple(pieces(record.answer, spans)),
        claims=claims,
        passages=tuple(_passages(record, claims, answer.scores)),
        stages=tuple(stage for stage in POOL_STAGES if record.pool(stage)),
        scores=tuple(_scores(answer.scores, rows)),
        ratings=tuple(
            RatingRow(metric=it.metric, value=it.value, rater=it.rater, comment=it.comment) for it in answer.ratings
        ),
        verdict=standing.verdict,
        stage=standing.stage,
        meaning=None if standing.verdict is None else MEANINGS[standing.verdict],
        word=standing.word,
        claim=None if standing.claim is None else str(standing.claim),
        verdict_facts=tuple(_verdict_facts(standing.details)),
        duration_s=record.ended - record.started if record.ended > record.started > 0 else None,
        tokens=None if usage is None else (usage.input_tokens or 0, usage.output_tokens or 0),
        judge_calls=sum(row["llm_calls"] for row in rows),
        judge_tokens=(sum(row["prompt_tokens"] for row in rows), sum(row["completion_tokens"] for row in rows)),
        facts=tuple(_facts(record)),
        trace_url=trace_url,
        read=() if record.reading is None else tuple(preview(structs.replace(record.reading, signs=()))),
        signs=tuple(_signs(record.signs)),
    )


def _signs(signs: Sequence[Sign]) -> Iterator[SignRow]:
    for it in signs:
        yield SignRow(name=it.name, sentence=SIGNS[it.name], about=it.about, text=it.text, declare=it.declare)


def _details(score: ScoreJson | None) -> Mapping[str, Any]:
    found = score.get("details") if isinstance(score, dict) else None
    return found if isinstance(found, dict) else {}


def _claims(scores: Mapping[str, ScoreJson], standing: Standing) -> Sequence[Mapping[str, Any]]:
    """Return the claims of faithfulness, else of the first score with some; then what else is against the run."""
    named = sorted(scores, key=lambda name: (name != "faithfulness", name))
    found = next((claims for name in named if (claims := _stated(scores[name]))), [])
    said = {str(it["text"]) for it in found}
    return [*found, *(structs.asdict(it) for it in standing.claims if it.text not in said)]


def _stated(score: ScoreJson) -> list[Mapping[str, Any]]:
    """Return the claims of a score with a value: those of a refusal are none of the answer."""
    details = _details(score)
    given = details.get("claims") if details and score.get("value") is not None else None
    return [it for it in given if isinstance(it, dict) and it.get("text")] if isinstance(given, list) else []


def _context_ids(record: RagRecord) -> list[str]:
    """Return the listed id of each context, which claims name by its place."""
    listed = {id(it.passage): it.key for it in pooled(record)}
    by_text = {it.passage.text: it.key for it in pooled(record)}
    return [
        listed.get(id(one)) or (one.id if not one.text else by_text.get(one.text, one.id))
        for one in record.contexts
    ]


def placed_claims(
    answer: str, claims: Sequence[Mapping[str, Any]], contexts: Sequence[str]
) -> tuple[tuple[ClaimRow, ...], dict[int, tuple[int, int]]]:
    """Return the claims as rows, and the place of each that was found in the answer, by its number.

    A claim is found by its words in their order, else in the sentence that holds most of its words, at least six in
    ten. A sentence holds one claim; the first takes it.

    Args:
        answer: the whole answer.
        claims: of a score's details.
        contexts: ids of the passages, in the order in which claims name them.
    """
    spans: dict[int, tuple[int, int]] = {}
    for number, claim in enumerate(claims, start=1):
        found = _quoted(answer, str(claim["text"]), spans.values())
        if found is not None:
            spans[number] = found
    sentences = list(_sentences(answer))
    for number, claim in enumerate(claims, start=1):
        if number not in spans:
            found = _nearest(str(claim["text"]), sentences, spans.values())
            if found is not None:
                spans[number] = found
    rows = (
        _claim_row(number, claim, contexts, is_placed=number in spans) for number, claim in enumerate(claims, 1)
    )
    return tuple(rows), spans


def _claim_row(number: int, claim: Mapping[str, Any], contexts: Sequence[str], *, is_placed: bool) -> ClaimRow:
    given = claim.get("sources")
    places = [it for it in given if is_whole(it) and 0 <= it < len(contexts)] if isinstance(given, list) else []
    support = claim.get("support")
    is_number = isinstance(support, int | float) and not isinstance(support, bool) and math.isfinite(support)
    return ClaimRow(
        number=number,
        text=str(claim["text"]),
        verdict=str(claim.get("verdict") or "unknown"),
        support=min(max(float(cast("float", support)), 0.0), 1.0) if is_number else None,
        evidence=tuple(dict.fromkeys(contexts[it] for it in places)),
        reason=str(claim["reason"]) if claim.get("reason") else None,
        placed=is_placed,
    )


def _quoted(answer: str, text: str, taken: object) -> tuple[int, int] | None:
    return next((span for span in quotes(answer, text) if _is_free(span, taken)), None)


def quotes(answer: str, text: str) -> Iterator[tuple[int, int]]:
    r"""Yield where a text stands in an answer, with any blanks between its words.

    Example:
        >>> list(quotes("It\n rains. It rains.", "It  rains."))
        [(0, 10), (11, 20)]
    """
    sought = " ".join(text.split())
    words = list(_UNBROKEN.finditer(answer)) if sought else []
    joined = " ".join(word[0] for word in words)
    begins = [0, *accumulate(len(word[0]) + 1 for word in words)]
    end = 0
    while (start := joined.find(sought, end)) >= 0 and words:
        end = start + len(sought)
        first, last = (bisect_right(begins, place) - 1 for place in (start, end - 1))
        yield words[first].start() + start - begins[first], words[last].start() + end - begins[last]


def _is_free(span: tuple[int, int], taken: object) -> bool:
    return all(span[1] <= low or high <= span[0] for low, high in cast("Sequence[tuple[int, int]]", taken))


def _sentences(answer: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    for it in _SENTENCE.finditer(answer):
        text = it.group().strip()
        if text:
            start = it.start() + it.group().index(text)
            yield start, start + len(text), _words(text)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _nearest(
    text: str, sentences: Sequence[tuple[int, int, frozenset[str]]], taken: object
) -> tuple[int, int] | None:
    words = _words(text)
    free = [it for it in sentences if words and _is_free(it[:2], taken)]
    best = max(free, key=lambda it: len(words & it[2]), default=None)
    return best[:2] if best is not None and len(words & best[2]) >= LEAST_OVERLAP * len(words) else None


def pieces(answer: str, spans: Mapping[int, tuple[int, int]]) -> Iterator[AnswerPiece]:
    """Yield the answer in pieces, those of claims with their numbers.

    Example:
        >>> [(it.text, it.claim) for it in pieces("Hello. It rains.", {1: (7, 16)})]
        [('Hello. ', None), ('It rains.', 1)]
    """
    end = 0
    for number, (low, high) in sorted(spans.items(), key=lambda it: it[1]):
        if low > end:
            yield AnswerPiece(text=answer[end:low])
        yield AnswerPiece(text=answer[low:high], claim=number)
        end = high
    if end < len(answer):
        yield AnswerPiece(text=answer[end:])


def _passages(
    record: RagRecord, claims: Sequence[ClaimRow], scores: Mapping[str, ScoreJson]
) -> Iterator[PassageRow]:
    cited = {citation for part in record.answer_parts for citation in part.citations}
    grades = _grades(record, scores)
    for it in pooled(record):
        yield PassageRow(
            id=it.key,
            text=it.passage.text,
            rank=it.places.get("retrieved"),
            selected=it.places.get("reranked"),
            used=it.places.get("used"),
            score=it.scores.get("retrieved"),
            rerank_score=it.scores.get("reranked"),
            grade=grades.get(it.key, grades.get(label_id(it.passage, grades))),
            source=it.passage.source,
            claims=tuple(c.number for c in claims if c.verdict == SUPPORTED and it.key in c.evidence),
            cited=it.key in cited or it.passage.id in cited,
        )


def _grades(record: RagRecord, scores: Mapping[str, ScoreJson]) -> dict[str, int]:
    """Return grades by passage: the labels', else those of the longest list in the scores' details."""
    if record.labels is not None and record.labels.grades:
        return dict(record.labels.grades)
    found: Sequence[object] = ()
    for score in scores.values():
        grades = _details(score).get("grades")
        if isinstance(grades, list) and len(grades) > len(found):
            found = grades
    ids = dict.fromkeys(passage.id for passage in record.ranked_contexts if passage.text.strip())
    return {key: grade for key, grade in zip(ids, found, strict=False) if is_whole(grade) and 1 <= grade <= 5}


def _scores(scores: Mapping[str, ScoreJson], rows: Sequence[Row]) -> Iterator[ScoreRow]:
    stored = {
        row["metric"]: row for row in sorted(rows, key=lambda row: row["scored_at"]) if row["source"] != "human"
    }
    for name, score in scores.items():
        if isinstance(score, dict):
            yield _score(name, score, stored.get(name, {}))


def _score(name: str, score: ScoreJson, row: Mapping[str, Any]) -> ScoreRow:
    value, known, passed, key = score.get("value"), output_of(name), score.get("passed"), key_of(name, score)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return ScoreRow(
        key=key,
        state=str(score.get("state")),
        value=float(cast("float", value)) if is_number else None,
        reason=_text(score.get("reason")),
        passed=passed if isinstance(passed, bool) else None,
        direction=None if known is None else known.direction,
        threshold=threshold_of(name, key.judge),
        is_own_threshold=is_own_threshold(name, key.judge),
        weight=row.get("weight"),
        stratum=row.get("stratum"),
        llm_calls=row.get("llm_calls"),
        input_tokens=row.get("prompt_tokens"),
        output_tokens=row.get("completion_tokens"),
        scored_at=row.get("scored_at"),
        summary=summary_of(name),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _verdict_facts(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in details.items():
        if isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif isinstance(value, float):
            yield name, f"{value:.3g}"
        elif isinstance(value, int | str) and name not in {"verdict", "stage"}:
            yield name, str(value)


def _facts(record: RagRecord) -> Iterator[tuple[str, str]]:
    for name in _FACTS:
        value = getattr(record, name)
        if value:
            yield name, str(value)
    for tag in record.tags:
        yield "tag", tag
    for name, count in record.lossy.items():
        yield f"cut or lost: {name}", str(count)
    for name, value in record.metadata.items():
        yield name, str(value)
