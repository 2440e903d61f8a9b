"""The root span's attributes: question, answer, pool, selection, prompt, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.telemetry.wire import array_json, clean_value, cut_text, numbers_json, size_bytes, texts_json, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import FinishedRun
    from ragtrace.model import Passage, RagRecord
    from ragtrace.telemetry.documents import Room


def summary(captured: FinishedRun, room: Room, *, has_content: bool, dialect: str) -> dict[str, Any]:
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
        semconv.PROMPT_IDS: _texts(captured.prompt_ids, room),
        **_ranked(record, room),
        **_described(record, is_openinference=dialect != "genai"),
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


def _described(record: RagRecord, *, is_openinference: bool) -> dict[str, Any]:
    """Return tags and metadata of the request."""
    attributes: dict[str, Any] = {}
    if record.tags:
        attributes[semconv.RUN_TAGS] = record.tags
        if is_openinference:
            attributes[semconv.TAGS] = record.tags
    if record.metadata:
        attributes |= {f"{semconv.RUN_METADATA_PREFIX}{name}": value for name, value in record.metadata.items()}
        if is_openinference:
            attributes[semconv.METADATA] = to_json(dict(record.metadata))
    return attributes


def _taken(text: str, share: int, room: Room) -> str:
    kept: str = clean_value(cut_text(text, share))
    room.text_bytes -= size_bytes(kept)
    return kept


def _ranked(record: RagRecord, room: Room) -> dict[str, Any]:
    """Pool and selection by id, score and rank; nothing for a stage that was not seen.

    Each list is one JSON text: as arrays the lists of 50 candidates cost 0.3 ms of CPU a run in the SDK and its
    OTLP encoder, of 1.3 ms in all; as texts 0.04 ms (docs/decisions/0004).
    """
    stages = {pool.stage: pool.passages for pool in record.pools}
    if not stages:
        return {}
    pool = stages.get("retrieved")
    selected = stages.get("reranked", record.contexts)
    attributes: dict[str, Any] = {
        semconv.SELECTED_IDS: _texts([p.id for p in selected], room),
        semconv.SELECTED_SCORES: _scores(selected, room),
    }
    if pool is not None:
        # From the last to the first, so that the first place of a doubled id stays.
        places = dict(zip([p.id for p in reversed(pool)], range(len(pool), 0, -1), strict=True))
        attributes[semconv.POOL_IDS] = _texts([p.id for p in pool], room)
        attributes[semconv.POOL_SCORES] = _scores(pool, room)
        attributes[semconv.SELECTED_RANKS] = numbers_json([places.get(p.id, 0) for p in selected], room.limit_chars)
    return attributes


def _texts(texts: Sequence[str] | None, room: Room) -> str | None:
    return None if texts is None else texts_json(texts, room.limit_chars)


def _scores(passages: Sequence[Passage], room: Room) -> str | None:
    """Scores of all, or None when one has none: a made-up score never stands in this list."""
    scores = room.scores_of(passages)
    return None if scores is None else array_json(scores, room.limit_chars)
