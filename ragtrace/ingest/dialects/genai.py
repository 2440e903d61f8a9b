"""OpenTelemetry GenAI: the newest names, and those of earlier versions of the conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ragtrace import semconv
from ragtrace.ingest.dialects.base import SpanFacts
from ragtrace.ingest.dialects.values import (
    count_in,
    documents_in,
    flattened,
    given_out,
    last_of,
    loaded,
    loaded_parts,
    message_in,
    messages_in,
    run_name,
    text_in,
    texts_in,
)
from ragtrace.model import Message, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanRole
    from ragtrace.ingest.spans import ReceivedSpan

_ROLES: Final[dict[str, SpanRole]] = {
    "chat": "generation",
    "completion": "generation",
    "text_completion": "generation",
    "generate_content": "generation",
    "embeddings": "embedding",
    "embedding": "embedding",
    semconv.OPERATION_RETRIEVAL: "retrieval",
    semconv.OPERATION_RERANK: "rerank",
    semconv.OPERATION_EXECUTE_TOOL: "tool",
    semconv.OPERATION_WORKFLOW: "root",
    "invoke_agent": "root",
    semconv.OPERATION_EVALUATION: "evaluation",
}
# Older names, the newest first.
_PROMPTS = (semconv.GEN_AI_INPUT_MESSAGES, "gen_ai.prompt")
_REPLIES = (semconv.GEN_AI_OUTPUT_MESSAGES, "gen_ai.completion")
_INPUT_TOKENS = (semconv.GEN_AI_USAGE_INPUT_TOKENS, "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = (semconv.GEN_AI_USAGE_OUTPUT_TOKENS, "gen_ai.usage.completion_tokens")
_PROVIDERS = (semconv.GEN_AI_PROVIDER_NAME, "gen_ai.system")
_TURNS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}


class GenAi:
    """Reads spans of the OpenTelemetry GenAI conventions.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "a"}]'}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", attributes=attributes)).documents[0].id
        'a'
    """

    name = "genai"
    lacks: Mapping[str, str] = {
        "document_text": "The conventions give a retrieval's documents by id and score; texts are an extension.",
        "rerank": "The conventions have no rerank operation, so a selection is known by the prompt alone.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether a span has an attribute of the conventions."""
        return any(name.startswith("gen_ai.") for name in span.attributes)

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = span.attributes
        prompt, reply = _messages(span)
        documents, malformed = documents_in(given.get(semconv.GEN_AI_RETRIEVAL_DOCUMENTS))
        role = _role(given, has_documents=documents is not None or malformed > 0)
        if role == "tool":
            documents = given_out(given.get(semconv.GEN_AI_TOOL_CALL_RESULT))
        query = text_in(given.get(semconv.GEN_AI_RETRIEVAL_QUERY_TEXT))
        return SpanFacts(
            role=role,
            query=query if query is not None or role != "root" else last_of(prompt, "user"),
            documents=documents,
            malformed=malformed,
            top_k=_count(given, semconv.GEN_AI_RETRIEVAL_TOP_K, "gen_ai.request.top_k"),
            data_source=text_in(given.get(semconv.GEN_AI_DATA_SOURCE_ID)),
            messages=prompt,
            output=None if reply is None else reply.content,
            calls=() if reply is None else reply.calls,
            tool_name=text_in(given.get(semconv.GEN_AI_TOOL_NAME)),
            tool_output=text_in(given.get(semconv.GEN_AI_TOOL_CALL_RESULT)),
            request_model=text_in(given.get(semconv.GEN_AI_REQUEST_MODEL)),
            response_model=text_in(given.get(semconv.GEN_AI_RESPONSE_MODEL)),
            provider=_first(given, _PROVIDERS),
            usage=_usage(given),
            finish_reasons=texts_in(given.get(semconv.GEN_AI_RESPONSE_FINISH_REASONS)),
            workflow=run_name(given.get(semconv.GEN_AI_WORKFLOW_NAME)) or run_name(given.get("gen_ai.agent.name")),
            session=_first(given, (semconv.GEN_AI_CONVERSATION_ID, semconv.SESSION_ID)),
            user=text_in(given.get(semconv.USER_ID)),
        )


def _role(given: Mapping[str, object], *, has_documents: bool) -> SpanRole:
    if semconv.GEN_AI_EVALUATION_NAME in given:
        return "evaluation"
    known = _ROLES.get(str(given.get(semconv.GEN_AI_OPERATION_NAME)))
    if known is not None:
        return known
    if has_documents or semconv.GEN_AI_RETRIEVAL_QUERY_TEXT in given:
        return "retrieval"
    is_call = semconv.GEN_AI_REQUEST_MODEL in given and semconv.GEN_AI_OPERATION_NAME not in given
    return "generation" if is_call else "other"


def _messages(span: ReceivedSpan) -> tuple[tuple[Message, ...], Message | None]:
    """Return the prompt with its system instructions in front, and the reply; None where none was captured."""
    prompt: list[Message] = []
    replies: list[Message] = []
    for given in _sources(span):
        system = loaded_parts(given.get("gen_ai.system_instructions"))
        asked = next((found for name in _PROMPTS if (found := messages_in(given.get(name) or ()))), ())
        if system and asked and not prompt:
            one = message_in({"role": "system", "content": system})
            prompt.extend((one,) if one is not None else ())
        prompt.extend(asked)
        replies.extend(_assistant(given))
    for event in span.events:
        _take_event(event.name, event.attributes, prompt, replies)
    return tuple(prompt), replies[-1] if replies else None


def _sources(span: ReceivedSpan) -> Iterator[Mapping[str, object]]:
    """Yield the places that may hold messages: attributes, their flattened form, and events with attributes."""
    yield span.attributes
    for name, key in (("gen_ai.prompt", _PROMPTS[0]), ("gen_ai.completion", _REPLIES[0])):
        if items := flattened(span.attributes, name):
            yield {key: items}
    for event in span.events:
        if event.name.startswith("gen_ai.") and event.name not in _TURNS:
            yield event.attributes


def _assistant(given: Mapping[str, object]) -> tuple[Message, ...]:
    for name in _REPLIES:
        found = messages_in(given.get(name) or ())
        if found:
            return tuple(replace(one, role="assistant") for one in found)
    return ()


def _take_event(name: str, given: Mapping[str, object], prompt: list[Message], replies: list[Message]) -> None:
    """Take a message that is an event of its own, as the conventions had it in 2024."""
    if name in _TURNS and (one := message_in({"role": _TURNS[name], **given})) is not None:
        prompt.append(one)
    elif name == "gen_ai.choice":
        message = loaded(given.get("message"))
        one = message_in(message if isinstance(message, dict) else {"role": "assistant", **given})
        if one is not None:
            replies.append(one)


def _usage(given: Mapping[str, object]) -> Usage | None:
    counts = {
        "input_tokens": _count(given, *_INPUT_TOKENS),
        "output_tokens": _count(given, *_OUTPUT_TOKENS),
        "cache_read_tokens": _count(given, semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
        "cache_write_tokens": _count(given, semconv.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS),
        "reasoning_tokens": _count(given, semconv.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS),
    }
    return Usage(**counts) if any(count is not None for count in counts.values()) else None


def _count(given: Mapping[str, object], *names: str) -> int | None:
    return next((count for name in names if (count := count_in(given.get(name))) is not None), None)


def _first(given: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := text_in(given.get(name)))), None)


DIALECT: SpanDialect = GenAi()
