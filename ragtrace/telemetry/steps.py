"""One step of a run into the name, kind and attributes of its span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind

from ragtrace import semconv
from ragtrace.capture import Rerank, Retrieval, ToolCall
from ragtrace.model import Usage
from ragtrace.telemetry.documents import documents_json, reranked_json
from ragtrace.telemetry.flattened import RESERVED_ATTRIBUTES, flattened_documents
from ragtrace.telemetry.messages import PassageMarks, messages_json
from ragtrace.telemetry.wire import clean_value, cut_text, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import Generation, Step
    from ragtrace.model import Passage
    from ragtrace.telemetry.documents import Room

Built = tuple[str, SpanKind, dict[str, Any]]
_NO_MARKS = PassageMarks(())
_NO_USAGE = Usage()


class StepWriter:
    """Builds the spans' contents of one trace; not thread-safe, one for each run.

    Args:
        room: what the trace may still put on the wire.
        marks: replaces passages in prompts, where references are wanted.
        has_content: whether texts are written.
        dialect: genai, openinference or both.
    """

    def __init__(self, room: Room, marks: PassageMarks, *, has_content: bool, dialect: str) -> None:
        self._room = room
        self._marks = marks
        self._has_content = has_content
        self._is_genai = dialect != "openinference"
        self._is_openinference = dialect != "genai"

    def built(self, step: Step) -> Built:
        """Return span name, kind and attributes of one step; None values are to be left out."""
        if isinstance(step, Retrieval):
            return self._retrieval(step)
        if isinstance(step, Rerank):
            return self._rerank(step)
        if isinstance(step, ToolCall):
            return self._tool_call(step)
        return self._generation(step)

    def _retrieval(self, step: Retrieval) -> Built:
        query = self._text(step.query)
        flattened = self._flattened(step.passages, semconv.RETRIEVAL_DOCUMENTS)
        documents = documents_json(step.passages, self._room, has_content=self._has_content)
        attributes: dict[str, Any] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
            semconv.GEN_AI_DATA_SOURCE_ID: step.source,
            semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
            semconv.GEN_AI_RETRIEVAL_DOCUMENTS: documents.json,
            semconv.RETRIEVAL_DOCUMENT_COUNT: len(step.passages),
            semconv.RETRIEVAL_DOCUMENT_CAPTURED: documents.captured,
            semconv.RETRIEVAL_DOCUMENT_TRUNCATED: documents.truncated
            + _cut(step.passages, flattened, self._room.limit_chars),
        }
        if self._is_genai:
            attributes[semconv.GEN_AI_RETRIEVAL_QUERY_TEXT] = query
        if self._is_openinference:
            attributes[semconv.INPUT_VALUE] = query
        # Flattened documents stand first: were the span too full for all, the SDK would drop these.
        return _named(semconv.SPAN_RETRIEVAL, step.source), SpanKind.CLIENT, flattened | attributes

    def _rerank(self, step: Rerank) -> Built:
        attributes: dict[str, Any] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RERANK,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RERANKER,
            semconv.RERANK_CANDIDATE_COUNT: len(step.candidates),
            semconv.RERANK_TOP_N: step.top_n,
            semconv.RERANK_DOCUMENTS: reranked_json(step.candidates, step.passages, self._room),
        }
        if self._is_genai:
            attributes[semconv.GEN_AI_REQUEST_MODEL] = step.model
        if self._is_openinference:
            attributes[semconv.RERANKER_MODEL_NAME] = step.model
            attributes[semconv.RERANKER_TOP_K] = step.top_n
        chosen = self._flattened(step.passages, semconv.RERANKER_OUTPUT_DOCUMENTS)
        given = self._flattened(
            step.candidates, semconv.RERANKER_INPUT_DOCUMENTS, taken=len(chosen), has_content=False
        )
        return _named(semconv.SPAN_RERANK, step.model), SpanKind.INTERNAL, given | chosen | attributes

    def _flattened(
        self, passages: Sequence[Passage], prefix: str, *, taken: int = 0, has_content: bool = True
    ) -> dict[str, Any]:
        """Return one attribute for each field of the best documents, in dialect openinference alone.

        In dialect both the one JSON attribute serves every reader that we know, and each text is sent once.
        """
        if self._is_genai:
            return {}
        return flattened_documents(
            passages,
            prefix,
            self._room,
            limit=self._room.limit_attributes - RESERVED_ATTRIBUTES - taken,
            has_content=has_content and self._has_content,
            may_repeat=prefix == semconv.RERANKER_OUTPUT_DOCUMENTS,
        )

    def _tool_call(self, step: ToolCall) -> Built:
        arguments, result = self._text(step.arguments), self._text(step.result)
        attributes: dict[str, Any] = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EXECUTE_TOOL,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_TOOL,
            semconv.GEN_AI_TOOL_NAME: step.name,
            semconv.GEN_AI_TOOL_TYPE: semconv.TOOL_TYPE_FUNCTION,
            semconv.GEN_AI_TOOL_CALL_ID: step.call_id,
        }
        if self._is_genai:
            attributes[semconv.GEN_AI_TOOL_DESCRIPTION] = step.description
            attributes[semconv.GEN_AI_TOOL_CALL_ARGUMENTS] = arguments
            attributes[semconv.GEN_AI_TOOL_CALL_RESULT] = result
        if self._is_openinference:
            attributes[semconv.TOOL_NAME] = step.name
            attributes[semconv.TOOL_DESCRIPTION] = step.description
            attributes[semconv.INPUT_VALUE] = arguments
            attributes[semconv.OUTPUT_VALUE] = result
        return _named(semconv.SPAN_EXECUTE_TOOL, step.name), SpanKind.INTERNAL, attributes

    def _generation(self, step: Generation) -> Built:
        is_embedding = step.operation == "embeddings"
        attributes: dict[str, Any] = {
            semconv.GEN_AI_OPERATION_NAME: step.operation,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EMBEDDING if is_embedding else semconv.KIND_LLM,
        }
        if self._is_genai:
            attributes |= _genai(step)
        if self._is_openinference:
            attributes |= _openinference(step, is_embedding=is_embedding)
        if self._has_content:
            said = messages_json(step.inputs, self._room, self._marks)
            # A reply that quotes a passage is an answer and stays as it is.
            reply = messages_json(
                step.outputs,
                self._room,
                _NO_MARKS,
                finish_reasons=self._finish_reasons(step),
            )
            # One dialect carries the messages: each text is on the wire once.
            keys = (semconv.GEN_AI_INPUT_MESSAGES, semconv.GEN_AI_OUTPUT_MESSAGES)
            if not self._is_genai:
                keys = (semconv.INPUT_VALUE, semconv.OUTPUT_VALUE)
            attributes |= dict(zip(keys, (said, reply), strict=True))
        kind = SpanKind.INTERNAL if step.is_in_process else SpanKind.CLIENT
        return _named(step.operation, step.model), kind, attributes

    def _finish_reasons(self, step: Generation) -> list[str]:
        """Return a finish reason for each output, "" where none is known; dialect genai leaves those out."""
        filler = [""] * len(step.outputs) if self._is_openinference else []
        return [*step.finish_reasons, *filler][: len(step.outputs)]

    def _text(self, text: str) -> str | None:
        if not self._has_content:
            return None
        kept: str = clean_value(cut_text(text, self._room.text_bytes // 8))
        copies = 2 if self._is_genai and self._is_openinference else 1
        self._room.text_bytes -= copies * size_bytes(kept)
        return kept


def _cut(passages: Sequence[Passage], flattened: dict[str, Any], limit_chars: int | None) -> int:
    """Return how many of the flattened texts were cut when they were captured, or will be by the SDK."""
    if not flattened:
        return 0
    key = f"{semconv.RETRIEVAL_DOCUMENTS}.%d.{semconv.DOCUMENT_CONTENT}"
    kept = [passage for place, passage in enumerate(passages) if key % place in flattened]
    return sum(p.truncated > 0 or (limit_chars is not None and len(p.text) > limit_chars) for p in kept)


def _genai(step: Generation) -> dict[str, Any]:
    usage = step.usage or _NO_USAGE
    return {
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


def _openinference(step: Generation, *, is_embedding: bool) -> dict[str, Any]:
    usage = step.usage or _NO_USAGE
    return {
        semconv.EMBEDDING_MODEL_NAME if is_embedding else semconv.LLM_MODEL_NAME: step.model,
        semconv.LLM_PROVIDER: None if is_embedding else step.provider,
        semconv.LLM_TOKEN_COUNT_PROMPT: usage.input_tokens,
        semconv.LLM_TOKEN_COUNT_COMPLETION: usage.output_tokens,
        semconv.LLM_TOKEN_COUNT_CACHE_READ: usage.cache_read_tokens,
        semconv.LLM_TOKEN_COUNT_CACHE_WRITE: usage.cache_write_tokens,
        semconv.LLM_TOKEN_COUNT_REASONING: usage.reasoning_tokens,
    }


def _named(prefix: str, thing: object) -> str:
    return f"{prefix} {clean_value(thing)}" if thing else prefix
