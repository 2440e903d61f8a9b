"""MLflow tracing: a type, inputs and outputs as JSON on each span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ragtrace import semconv
from ragtrace.ingest.dialects.base import SpanFacts
from ragtrace.ingest.dialects.values import (
    QUERY_BUNDLES,
    answer_in,
    count_in,
    decoded,
    documents_in,
    mapping_in,
    messages_in,
    question_in,
    run_name,
    text_in,
    unwrapped,
)
from ragtrace.model import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanRole
    from ragtrace.ingest.spans import ReceivedSpan

_TYPE: Final = "mlflow.spanType"
_ROLES: Final[dict[str, SpanRole]] = {
    "CHAIN": "root",
    "AGENT": "root",
    "WORKFLOW": "root",
    "RETRIEVER": "retrieval",
    "RERANKER": "rerank",
    "LLM": "generation",
    "CHAT_MODEL": "generation",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
    "EVALUATOR": "evaluation",
}


class MLflow:
    """Reads spans of MLflow's own instrumentations and decorators.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> given = {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": '[{"id": "a", "page_content": "..."}]'}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", attributes=given)).documents[0].id
        'a'
    """

    name = "mlflow"
    lacks: Mapping[str, str] = {
        "document_score": "A document has a text, an id and metadata; its score is known where it stands in these.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether a span has a type of MLflow."""
        return _TYPE in span.attributes

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = {name: decoded(value) for name, value in span.attributes.items()}
        role = _ROLES.get(str(given.get(_TYPE)), "other" if span.parent_id else "root")
        asked, output = given.get("mlflow.spanInputs"), given.get("mlflow.spanOutputs")
        facts: dict[str, Any] = {}
        if role in {"root", "retrieval"}:
            facts["query"] = question_in(unwrapped(asked, *QUERY_BUNDLES))
        if role in {"retrieval", "rerank"}:
            facts["documents"], facts["malformed"] = documents_in(output)
        if role == "rerank":
            facts["candidates"] = documents_in(unwrapped(asked, "documents", "nodes"))[0]
        if role == "root":
            facts |= {"output": answer_in(output), "workflow": run_name(span.name)}
        if role == "tool":
            facts |= {"tool_name": span.name, "tool_output": answer_in(output)}
        if role == "generation":
            facts |= _generation(given, asked, output)
        return SpanFacts(
            role=role,
            session=text_in(given.get(semconv.SESSION_ID)),
            user=text_in(given.get(semconv.USER_ID)),
            **facts,
        )


def _generation(given: Mapping[str, object], asked: object, output: object) -> dict[str, Any]:
    reply = mapping_in(output)
    raw = {**mapping_in(reply.get("llm_output")), **mapping_in(reply.get("raw")), **reply}
    choices = raw.get("choices")
    choice = mapping_in(choices[-1]) if isinstance(choices, list) and choices else {}
    parameters = mapping_in(given.get("invocation_params"))
    requested = (given.get("model"), parameters.get("model"), parameters.get("model_name"))
    finished = text_in(choice.get("finish_reason"))
    return {
        "messages": messages_in(unwrapped(asked, "prompt") or ()),
        "output": answer_in(choice.get("message") or output),
        "request_model": _first(*requested, given.get("mlflow.llm.model")),
        "response_model": _first(raw.get("model"), raw.get("model_name")),
        "provider": _first(given.get("mlflow.llm.provider"), mapping_in(given.get("metadata")).get("ls_provider")),
        "usage": _usage(given.get("mlflow.chat.tokenUsage") or raw.get("token_usage") or raw.get("usage")),
        "finish_reasons": (finished,) if finished else (),
    }


def _usage(value: object) -> Usage | None:
    counts = mapping_in(value)
    sent = count_in(counts.get("input_tokens", counts.get("prompt_tokens")))
    written = count_in(counts.get("output_tokens", counts.get("completion_tokens")))
    return None if sent is None and written is None else Usage(input_tokens=sent, output_tokens=written)


def _first(*values: object) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


DIALECT: SpanDialect = MLflow()
