"""Langfuse: a type, input and output on each observation, as its SDKs send them by OTLP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ragtrace import semconv
from ragtrace.ingest.dialects.base import SpanFacts
from ragtrace.ingest.dialects.values import (
    answer_in,
    count_in,
    decoded,
    documents_in,
    mapping_in,
    messages_in,
    question_in,
    run_name,
    text_in,
    texts_in,
)
from ragtrace.model import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanRole
    from ragtrace.ingest.spans import ReceivedSpan

_OWN: Final = "langfuse.observation."
_ROLES: Final[dict[str, SpanRole]] = {
    "chain": "root",
    "agent": "root",
    "retriever": "retrieval",
    "generation": "generation",
    "embedding": "embedding",
    "tool": "tool",
    "evaluator": "evaluation",
}


class Langfuse:
    """Reads observations of Langfuse's SDKs and callback handlers.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> given = {"langfuse.observation.type": "retriever", "langfuse.observation.output": '[{"id": "a"}]'}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", attributes=given)).documents[0].id
        'a'
    """

    name = "langfuse"
    lacks: Mapping[str, str] = {
        "rerank": "Observations have no type for a reranker, so a selection is known by the prompt alone.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether a span is an observation of Langfuse."""
        return f"{_OWN}type" in span.attributes

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = span.attributes
        own = {name.removeprefix(_OWN): value for name, value in given.items() if name.startswith(_OWN)}
        # The first versions with OTLP have spans and generations alone.
        kind = "retriever" if "metadata.ls_retriever_name" in own else str(own.get("type"))
        role = _ROLES.get(kind, "other" if span.parent_id else "root")
        asked, output = (_unquoted(own.get(name)) for name in ("input", "output"))
        facts: dict[str, Any] = {}
        if role in {"root", "retrieval"}:
            facts["query"] = question_in(asked)
        if role == "root":
            facts |= {"output": answer_in(output), "workflow": _workflow(span)}
        if role == "retrieval":
            facts["documents"], facts["malformed"] = documents_in(output)
        if role == "tool":
            facts |= {"tool_name": span.name, "tool_output": answer_in(output)}
        if role == "generation":
            facts |= _generation(own)
        return SpanFacts(
            role=role,
            session=text_in(given.get(semconv.SESSION_ID)),
            user=text_in(given.get(semconv.USER_ID)),
            tags=texts_in(given.get("langfuse.trace.tags")),
            **facts,
        )


def _unquoted(value: object) -> object:
    return decoded(value) if isinstance(value, str) and value.startswith('"') else value


def _workflow(span: ReceivedSpan) -> str | None:
    return run_name(span.attributes.get("langfuse.trace.name")) or run_name(span.name)


def _generation(own: Mapping[str, object]) -> dict[str, Any]:
    model = text_in(own.get("model.name"))
    counts = mapping_in(own.get("usage_details"))
    sent, written = count_in(counts.get("input")), count_in(counts.get("output"))
    return {
        "messages": messages_in(own.get("input") or ()),
        "output": answer_in(own.get("output")),
        "request_model": text_in(decoded(own.get("metadata.ls_model_name"))) or model,
        "response_model": model,
        "provider": text_in(decoded(own.get("metadata.ls_provider"))),
        "usage": None if sent is None and written is None else Usage(input_tokens=sent, output_tokens=written),
    }


DIALECT: SpanDialect = Langfuse()
