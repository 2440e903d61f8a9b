"""Turn a run and its steps into the names, kinds and attributes of their spans."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind

from ragtrace import semconv
from ragtrace.capture import Rerank, Retrieval, ToolCall
from ragtrace.model import Usage
from ragtrace.telemetry.spans.documents import (
    RESERVED_ATTRIBUTES,
    documents_json,
    flattened_documents,
    reranked_json,
)
from ragtrace.telemetry.spans.messages import messages_json
from ragtrace.telemetry.wire import clean_value, to_json
from ragtrace.text import cut_bytes, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import FinishedRun, Generation, Step
    from ragtrace.model import Passage, RagRecord
    from ragtrace.telemetry.spans.documents import Room

StepSpan = tuple[str, object, SpanKind, dict[str, object]]
"""First word of a span's name, its subject where one is known, its kind, and attributes; None is left out."""
_NO_USAGE = Usage()


@dataclass(slots=True, kw_only=True)
class StepReader:
    """Reads the steps of one trace; not thread-safe, one for each run.

    Args:
        room: bytes that the trace may still put on the wire.
        has_content: whether texts are written.
        is_genai: whether keys of OpenTelemetry GenAI are written.
        is_openinference: whether keys of OpenInference are written.
    """

    room: Room
    has_content: bool
    is_genai: bool
    is_openinference: bool

    def read(self, step: Step) -> StepSpan:
        """Return name, subject, kind and attributes of a step's span."""
        if isinstance(step, Retrieval):
            return self._retrieval(step)
        if isinstance(step, Rerank):
            return self._rerank(step)
        if isinstance(step, ToolCall):
            return self._tool_call(step)
        return self._generation(step)

    def _retrieval(self, step: Retrieval) -> StepSpan:
        query = self._text(step.query)
        # In dialect both the one JSON attribute serves every reader that we know, and each text is sent once.
        flattened = {} if self.is_genai else self._flattened(step.passages, semconv.RETRIEVAL_DOCUMENTS)
        documents, truncated = documents_json(step.passages, self.room, has_content=self.has_content)
        if flattened:
            truncated += _cut_texts(step.passages, flattened, self.room.limit_chars)
        attributes: dict[str, object] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
            semconv.GEN_AI_DATA_SOURCE_ID: step.source,
            semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
            semconv.GEN_AI_RETRIEVAL_DOCUMENTS: documents,
            semconv.RETRIEVAL_DOCUMENT_COUNT: len(step.passages),
            semconv.RETRIEVAL_DOCUMENT_CAPTURED: len(step.passages),
            semconv.RETRIEVAL_DOCUMENT_TRUNCATED: truncated,
        }
        if self.is_genai:
            attributes[semconv.GEN_AI_RETRIEVAL_QUERY_TEXT] = query
        if self.is_openinference:
            attributes[semconv.INPUT_VALUE] = query
        # Flattened documents stand first: were the span too full for all, the SDK would drop these.
        return semconv.SPAN_RETRIEVAL, step.source, SpanKind.CLIENT, flattened | attributes

    def _rerank(self, step: Rerank) -> StepSpan:
        attributes: dict[str, object] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RERANK,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RERANKER,
            semconv.RERANK_CANDIDATE_COUNT: len(step.candidates),
            semconv.RERANK_TOP_N: step.top_n,
            semconv.RERANK_DOCUMENTS: reranked_json(step.candidates, step.passages, self.room),
        }
        if self.is_genai:
            attributes[semconv.GEN_AI_REQUEST_MODEL] = step.model
        if self.is_openinference:
            attributes[semconv.RERANKER_MODEL_NAME] = step.model
            attributes[semconv.RERANKER_TOP_K] = step.top_n
        if not self.is_genai:
            chosen = self._flattened(step.passages, semconv.RERANKER_OUTPUT_DOCUMENTS)
            given = self._flattened(
                step.candidates, semconv.RERANKER_INPUT_DOCUMENTS, taken=len(chosen), has_content=False
            )
            attributes = given | chosen | attributes
        return semconv.SPAN_RERANK, step.model, SpanKind.INTERNAL, attributes

    def _flattened(
        self, passages: Sequence[Passage], prefix: str, *, taken: int = 0, has_content: bool = True
    ) -> dict[str, object]:
        return flattened_documents(
            passages,
            prefix,
            self.room,
            limit=self.room.limit_attributes - RESERVED_ATTRIBUTES - taken,
            has_content=has_content and self.has_content,
            may_repeat=prefix == semconv.RERANKER_OUTPUT_DOCUMENTS,
        )

    def _tool_call(self, step: ToolCall) -> StepSpan:
        arguments, result = self._text(step.arguments), self._text(step.result)
        attributes: dict[str, object] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EXECUTE_TOOL,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_TOOL,
            semconv.GEN_AI_TOOL_NAME: step.name,
            semconv.GEN_AI_TOOL_TYPE: semconv.TOOL_TYPE_FUNCTION,
            semconv.GEN_AI_TOOL_CALL_ID: step.call_id,
        }
        if self.is_genai:
            attributes[semconv.GEN_AI_TOOL_DESCRIPTION] = step.description
            attributes[semconv.GEN_AI_TOOL_CALL_ARGUMENTS] = arguments
            attributes[semconv.GEN_AI_TOOL_CALL_RESULT] = result
        if self.is_openinference:
            attributes[semconv.TOOL_NAME] = step.name
            attributes[semconv.TOOL_DESCRIPTION] = step.description
            attributes[semconv.INPUT_VALUE] = arguments
            attributes[semconv.OUTPUT_VALUE] = result
        return semconv.SPAN_EXECUTE_TOOL, step.name, SpanKind.INTERNAL, attributes

    def _generation(self, step: Generation) -> StepSpan:
        is_embedding = step.operation == "embeddings"
        usage = step.usage or _NO_USAGE
        attributes: dict[str, object] = {
            semconv.GEN_AI_OPERATION_NAME: step.operation,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EMBEDDING if is_embedding else semconv.KIND_LLM,
        }
        if self.is_genai:
            attributes |= {
                semconv.GEN_AI_PROVIDER_NAME: step.provider or semconv.PROVIDER_UNKNOWN,
                semconv.GEN_AI_REQUEST_MODEL: step.model,
                semconv.GEN_AI_RESPONSE_MODEL: step.response_model,
                semconv.GEN_AI_RESPONSE_ID: step.response_id,
                semconv.GEN_AI_RESPONSE_FINISH_REASONS: step.finish_reasons or None,
                semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: step.first_chunk_s,
                # Unset means that the request did not stream.
                semconv.GEN_AI_REQUEST_STREAM: True if step.first_chunk_s is not None else None,
                semconv.GEN_AI_USAGE_INPUT_TOKENS: usage.input_tokens,
                semconv.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output_tokens,
                semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.cache_read_tokens,
                semconv.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: usage.cache_write_tokens,
                semconv.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: usage.reasoning_tokens,
            }
        if self.is_openinference:
            attributes |= {
                semconv.EMBEDDING_MODEL_NAME if is_embedding else semconv.LLM_MODEL_NAME: step.model,
                semconv.LLM_PROVIDER: None if is_embedding else step.provider,
                semconv.LLM_TOKEN_COUNT_PROMPT: usage.input_tokens,
                semconv.LLM_TOKEN_COUNT_COMPLETION: usage.output_tokens,
                semconv.LLM_TOKEN_COUNT_CACHE_READ: usage.cache_read_tokens,
                semconv.LLM_TOKEN_COUNT_CACHE_WRITE: usage.cache_write_tokens,
                semconv.LLM_TOKEN_COUNT_REASONING: usage.reasoning_tokens,
            }
        if self.has_content:
            attributes |= self._messages(step)
        kind = SpanKind.INTERNAL if step.is_in_process else SpanKind.CLIENT
        return step.operation, step.model, kind, attributes

    def _messages(self, step: Generation) -> dict[str, object]:
        """Return prompt and reply in one dialect: each text is on the wire once."""
        keys = (semconv.GEN_AI_INPUT_MESSAGES, semconv.GEN_AI_OUTPUT_MESSAGES)
        if not self.is_genai:
            keys = (semconv.INPUT_VALUE, semconv.OUTPUT_VALUE)
        # A finish reason for each output, "" where none is known; dialect genai leaves those out.
        unknown = [""] * len(step.outputs) if self.is_openinference else []
        reasons = [*step.finish_reasons, *unknown][: len(step.outputs)]
        said = messages_json(step.inputs, self.room)
        reply = messages_json(step.outputs, self.room, finish_reasons=reasons)
        return dict(zip(keys, (said, reply), strict=True))

    def _text(self, text: str) -> str | None:
        if not self.has_content:
            return None
        kept = clean_value(cut_bytes(text, self.room.text_bytes // 8))
        copies = 2 if self.is_genai and self.is_openinference else 1
        self.room.text_bytes -= copies * size_bytes(kept)
        return kept


def _cut_texts(passages: Sequence[Passage], flattened: dict[str, object], limit_chars: int | None) -> int:
    """Return how many of the flattened texts were cut when they were captured, or will be by the SDK."""
    key = f"{semconv.RETRIEVAL_DOCUMENTS}.%d.{semconv.DOCUMENT_CONTENT}"
    kept = [passage for place, passage in enumerate(passages) if key % place in flattened]
    return sum(p.truncated > 0 or (limit_chars is not None and len(p.text) > limit_chars) for p in kept)


def root_attributes(captured: FinishedRun, room: Room, *, has_content: bool, dialect: str) -> dict[str, object]:
    """Return the attributes of a run's root span; None values are to be left out.

    Question and answer take at most a quarter of the room for texts each.
    """
    record = captured.record
    prompt_ids = captured.prompt_ids
    is_openinference = dialect != "genai"
    attributes: dict[str, object] = {
        semconv.GEN_AI_WORKFLOW_NAME: record.workflow,
        semconv.USER_ID: record.user,
        semconv.RUN_OUTCOME: record.outcome,
        semconv.RUN_REFUSED: record.is_refused or None,
        semconv.RUN_LOSSY: to_json(dict(record.lossy)) if record.lossy else None,
        semconv.SELECTION_SOURCE: record.selection_source,
        semconv.K: record.k or len(record.contexts) or None,
        semconv.CORPUS_NAME: record.corpus,
        semconv.CORPUS_VERSION: record.corpus_version,
        semconv.PROMPT_IDS: None if prompt_ids is None else to_json(prompt_ids),
        **_ranked(record),
        semconv.RUN_TAGS: record.tags or None,
        semconv.TAGS: (record.tags or None) if is_openinference else None,
        **{f"{semconv.RUN_METADATA_PREFIX}{name}": value for name, value in record.metadata.items()},
        semconv.METADATA: to_json(dict(record.metadata)) if is_openinference and record.metadata else None,
        semconv.GEN_AI_CONVERSATION_ID: record.session if dialect != "openinference" else None,
        semconv.SESSION_ID: record.session if is_openinference else None,
    }
    if has_content:
        texts = {semconv.INPUT_VALUE: record.query, semconv.OUTPUT_VALUE: record.answer}
        if record.interrupt is not None:
            texts[semconv.RUN_INTERRUPT] = record.interrupt
        share = room.text_bytes // 4
        for name, text in texts.items():
            attributes[name] = kept = clean_value(cut_bytes(text, share))
            room.text_bytes -= size_bytes(kept)
    return attributes


def _ranked(record: RagRecord) -> dict[str, object]:
    """Return pool and selection by id, score and rank; nothing for a stage that was not seen.

    Each list is one JSON text: as arrays the lists of 50 candidates cost 0.3 ms of CPU a run in the SDK and its
    OTLP encoder, of 1.3 ms in all; as texts 0.04 ms (docs/decisions/0004). Scores are left out when one is
    missing: a made-up score never stands in this list.
    """
    stages = {pool.stage: pool.passages for pool in record.pools}
    if not stages:
        return {}
    pool = stages.get("retrieved")
    selected = stages.get("reranked", record.contexts)
    lists: dict[str, Sequence[object] | None] = {
        semconv.SELECTED_IDS: [p.id for p in selected],
        semconv.SELECTED_SCORES: _scores(selected),
    }
    if pool is not None:
        # From the last to the first, so that the first place of a doubled id stays.
        places = dict(zip([p.id for p in reversed(pool)], range(len(pool), 0, -1), strict=True))
        lists[semconv.POOL_IDS] = [p.id for p in pool]
        lists[semconv.POOL_SCORES] = _scores(pool)
        lists[semconv.SELECTED_RANKS] = [places.get(p.id, 0) for p in selected]
    return {name: to_json(rows) for name, rows in lists.items() if rows is not None}


def _scores(passages: Sequence[Passage]) -> list[float | None] | None:
    scores = [p.score for p in passages]
    is_whole = set(map(type, scores)) == {float} and all(map(math.isfinite, scores))  # type: ignore[arg-type]
    return scores if is_whole else None
