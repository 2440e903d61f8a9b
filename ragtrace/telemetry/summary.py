"""The root span's attributes: question, answer, pool, selection, prompt, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.telemetry.wire import clean_value, cut_text, size_bytes, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import Captured
    from ragtrace.model import Passage, RagRecord
    from ragtrace.telemetry.documents import Room


def summary(captured: Captured, room: Room, *, has_content: bool, dialect: str) -> dict[str, Any]:
    """Return the attributes of the root span of a run; None values are to be left out.

    Question and answer take at most a quarter of the room for texts each.
    """
    record = captured.record
    attributes: dict[str, Any] = {
        semconv.GEN_AI_WORKFLOW_NAME: record.workflow,
        semconv.USER_ID: record.user,
        semconv.RUN_OUTCOME: record.outcome,
        semconv.RUN_LOSSY: to_json(dict(record.lossy)) if record.lossy else None,
        semconv.SELECTION_SOURCE: record.selection_source,
        semconv.K: record.k or len(record.contexts) or None,
        semconv.CORPUS_NAME: record.corpus,
        semconv.CORPUS_VERSION: record.corpus_version,
        semconv.PROMPT_IDS: captured.prompt_ids,
        **_ranked(record),
    }
    if dialect != "openinference":
        attributes[semconv.GEN_AI_CONVERSATION_ID] = record.session
    if dialect != "genai":
        attributes[semconv.SESSION_ID] = record.session
    if has_content:
        share = room.text_bytes // 4
        attributes[semconv.INPUT_VALUE] = _taken(record.query, share, room)
        attributes[semconv.OUTPUT_VALUE] = _taken(record.answer, share, room)
        if record.interrupt is not None:
            attributes[semconv.RUN_INTERRUPT] = _taken(record.interrupt, share, room)
    return attributes


def _taken(text: str, share: int, room: Room) -> str:
    kept: str = clean_value(cut_text(text, share))
    room.text_bytes -= size_bytes(kept)
    return kept


def _ranked(record: RagRecord) -> dict[str, Any]:
    """Pool and selection by id, score and rank; nothing for a stage that was not seen."""
    stages = {pool.stage: pool.passages for pool in record.pools}
    if not stages:
        return {}
    pool = stages.get("retrieved")
    selected = stages.get("reranked", record.contexts)
    attributes: dict[str, Any] = {
        semconv.SELECTED_IDS: [p.id for p in selected],
        semconv.SELECTED_SCORES: _scores(selected),
    }
    if pool is not None:
        places: dict[str, int] = {}
        for place, passage in enumerate(pool, start=1):
            places.setdefault(passage.id, place)
        attributes[semconv.POOL_IDS] = [p.id for p in pool]
        attributes[semconv.POOL_SCORES] = _scores(pool)
        attributes[semconv.SELECTED_RANKS] = [places.get(p.id, 0) for p in selected]
    return attributes


def _scores(passages: Sequence[Passage]) -> list[float] | None:
    """Scores of all, or None when one has none: a made-up score never stands in this list."""
    scores = [p.score for p in passages if p.score is not None]
    return scores if scores and len(scores) == len(passages) else None
