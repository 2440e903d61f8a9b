"""OpenInference: flattened lists, and JSON in ``input.value`` and ``output.value``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ragtrace import semconv
from ragtrace.ingest.dialects.base import SpanFacts
from ragtrace.ingest.dialects.values import (
    answer_in,
    content_text,
    count_in,
    counted,
    document_of,
    documents_in,
    flattened,
    given_out,
    loaded,
    mapping_in,
    message_in,
    messages_in,
    question_in,
    run_name,
    text_in,
    texts_in,
)
from ragtrace.model import Message, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanDocument, SpanRole
    from ragtrace.ingest.spans import ReceivedSpan

_ROLES: Final[dict[str, SpanRole]] = {
    semconv.KIND_CHAIN: "root",
    "AGENT": "root",
    semconv.KIND_RETRIEVER: "retrieval",
    semconv.KIND_RERANKER: "rerank",
    semconv.KIND_LLM: "generation",
    semconv.KIND_EMBEDDING: "embedding",
    semconv.KIND_TOOL: "tool",
    semconv.KIND_EVALUATOR: "evaluation",
}
_REDACTED = "__REDACTED__"  # where the instrumentation is told to hide inputs or outputs


class OpenInference:
    """Reads spans of OpenInference instrumentations, in Python and TypeScript.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> given = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "Oslo."}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", attributes=given)).documents[0].text
        'Oslo.'
    """

    name = "openinference"
    lacks: Mapping[str, str] = {
        "document_id": "LangChain's documents have ids in output.value alone, and before 0.1.80 nowhere.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether a span has a kind of OpenInference."""
        return semconv.OPENINFERENCE_SPAN_KIND in span.attributes

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = {name: value for name, value in span.attributes.items() if value != _REDACTED}
        role = _ROLES.get(str(given.get(semconv.OPENINFERENCE_SPAN_KIND)).upper(), "other")
        facts: dict[str, Any] = {
            "session": text_in(given.get(semconv.SESSION_ID)),
            "user": text_in(given.get(semconv.USER_ID)),
            "tags": texts_in(given.get(semconv.TAGS)),
            "metadata": mapping_in(given.get(semconv.METADATA)),
        }
        if role == "root":
            facts["workflow"] = run_name(span.name)
        reader = _READERS.get(role)
        return SpanFacts(role=role, **facts, **(reader(given) if reader is not None else {}))


def _root(given: Mapping[str, object]) -> dict[str, Any]:
    output = given.get(semconv.OUTPUT_VALUE)
    return {
        "query": question_in(given.get(semconv.INPUT_VALUE)),
        "output": answer_in(output),
        "documents": given_out(output),
    }


def _retrieval(given: Mapping[str, object]) -> dict[str, Any]:
    documents, malformed = _documents(given, semconv.RETRIEVAL_DOCUMENTS)
    # The instrumentation of LangChain has ids, and an empty list, there alone.
    if documents is None or all(document.id is None for document in documents):
        output = loaded(given.get(semconv.OUTPUT_VALUE))
        if isinstance(output, list) and any(isinstance(item, str) for item in output):
            told, worse = given_out(output), 0  # nodes of LlamaIndex as they show themselves
        else:
            told, worse = documents_in(output) if isinstance(output, dict | list) else (None, 0)
        if documents is None:
            documents, malformed = told, malformed + worse
        elif told is not None and [one.text for one in told] == [one.text for one in documents]:
            documents = told
    return {"query": question_in(given.get(semconv.INPUT_VALUE)), "documents": documents, "malformed": malformed}


def _rerank(given: Mapping[str, object]) -> dict[str, Any]:
    documents, malformed = _documents(given, semconv.RERANKER_OUTPUT_DOCUMENTS)
    candidates, worse = _documents(given, semconv.RERANKER_INPUT_DOCUMENTS)
    return {
        "query": text_in(given.get("reranker.query")),
        "documents": documents,
        "candidates": candidates,
        "malformed": malformed + worse,
        "top_k": count_in(given.get(semconv.RERANKER_TOP_K)),
        "request_model": text_in(given.get(semconv.RERANKER_MODEL_NAME)),
    }


def _tool(given: Mapping[str, object]) -> dict[str, Any]:
    output = given.get(semconv.OUTPUT_VALUE)
    return {
        "tool_name": text_in(given.get(semconv.TOOL_NAME)),
        "tool_output": answer_in(output) or text_in(output),
        "documents": given_out(_message_of(output)),
    }


def _message_of(output: object) -> object:
    """Return the message in LangChain's JSON of one."""
    found = loaded(output)
    inner = found.get("data", found.get("kwargs")) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else found


def _generation(given: Mapping[str, object]) -> dict[str, Any]:
    return {
        "messages": _messages(given, "llm.input_messages") or _prompts(given),
        "output": _reply(given),
        "request_model": text_in(given.get(semconv.LLM_MODEL_NAME)),
        "provider": text_in(given.get(semconv.LLM_PROVIDER)) or text_in(given.get("llm.system")),
        "usage": _usage(given),
    }


def _documents(given: Mapping[str, object], prefix: str) -> tuple[tuple[SpanDocument, ...] | None, int]:
    if prefix in given:
        return documents_in(given[prefix])
    items = flattened(given, prefix)
    return counted([_document(item) for item in items]) if items else (None, 0)


def _document(item: Mapping[str, object]) -> SpanDocument | None:
    metadata = mapping_in(item.get(semconv.DOCUMENT_METADATA))
    prefix = f"{semconv.DOCUMENT_METADATA}."
    flat = {name[len(prefix) :]: value for name, value in item.items() if name.startswith(prefix)}
    return document_of(
        item.get(semconv.DOCUMENT_CONTENT),
        item.get(semconv.DOCUMENT_ID),
        item.get(semconv.DOCUMENT_SCORE),
        {**metadata, **flat},
    )


def _messages(given: Mapping[str, object], prefix: str) -> tuple[Message, ...]:
    if prefix in given:
        return messages_in(given[prefix])
    return tuple(message for item in flattened(given, prefix) if (message := _message(item)) is not None)


def _message(item: dict[str, object]) -> Message | None:
    content = text_in(item.get("message.content"))
    if content is None:
        parts = flattened(item, "message.contents")
        content = "\n".join(filter(None, (content_text(part.get("message_content.text")) for part in parts)))
    return message_in({"role": text_in(item.get("message.role")) or "", "content": content})


def _prompts(given: Mapping[str, object]) -> tuple[Message, ...]:
    items = flattened(given, "llm.prompts")
    texts = [text for item in items if (text := text_in(item.get("prompt.text", item.get(""))))]
    texts = texts or list(texts_in(given.get("llm.prompts")))
    if texts:
        return tuple(Message(role="user", content=text) for text in texts)
    return messages_in(given.get(semconv.INPUT_VALUE) or ())


def _reply(given: Mapping[str, object]) -> str | None:
    said = _messages(given, "llm.output_messages")
    if said:
        return said[-1].content
    choices = [text for item in flattened(given, "llm.choices") if (text := text_in(item.get("completion.text")))]
    return choices[-1] if choices else answer_in(given.get(semconv.OUTPUT_VALUE))


def _usage(given: Mapping[str, object]) -> Usage | None:
    sent, written = (
        count_in(given.get(name)) for name in (semconv.LLM_TOKEN_COUNT_PROMPT, semconv.LLM_TOKEN_COUNT_COMPLETION)
    )
    if sent is None and written is None:
        return None
    return Usage(
        input_tokens=sent,
        output_tokens=written,
        cache_read_tokens=count_in(given.get(semconv.LLM_TOKEN_COUNT_CACHE_READ)),
        cache_write_tokens=count_in(given.get(semconv.LLM_TOKEN_COUNT_CACHE_WRITE)),
        reasoning_tokens=count_in(given.get(semconv.LLM_TOKEN_COUNT_REASONING)),
    )


_READERS: Final = {
    "root": _root,
    "retrieval": _retrieval,
    "rerank": _rerank,
    "tool": _tool,
    "generation": _generation,
}
DIALECT: SpanDialect = OpenInference()
