"""OpenLLMetry (Traceloop): workflows, tasks and retrievers; the calls of models are written as in `genai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace.ingest.dialects.base import SpanFacts
from ragtrace.ingest.dialects.values import (
    QUERY_BUNDLES,
    answer_in,
    counted,
    decoded,
    document_of,
    documents_in,
    mapping_in,
    question_in,
    run_name,
    text_in,
    unwrapped,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanDocument, SpanRole
    from ragtrace.ingest.spans import ReceivedSpan

_KIND: Final = "traceloop.span.kind"
_ROLES: Final[dict[str, SpanRole]] = {"workflow": "root", "agent": "root", "tool": "tool"}
_PROPERTIES: Final = "traceloop.association.properties."


class Traceloop:
    """Reads spans of OpenLLMetry's instrumentations and of Traceloop's decorators.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> given = {"traceloop.span.kind": "workflow", "traceloop.entity.input": '{"inputs": "Where?"}'}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", attributes=given)).query
        'Where?'
    """

    name = "traceloop"
    lacks: Mapping[str, str] = {
        "document_id": "The instrumentation of LangChain writes passages without ids, so they join by their text.",
        "retrieval": "Earlier instrumentations of LangChain, and those of clients, have no span of a retriever.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether a span has an attribute of Traceloop."""
        return any(name.startswith("traceloop.") for name in span.attributes)

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = span.attributes
        kind = str(given.get(_KIND))
        name = text_in(given.get("traceloop.entity.name")) or span.name
        asked = decoded(given.get("traceloop.entity.input"))
        output = decoded(given.get("traceloop.entity.output"))
        documents, malformed = _documents(output)
        role = _step(given, asked, documents) or _ROLES.get(kind, "other")
        is_search = role in {"retrieval", "rerank"}
        own = {key.removeprefix(_PROPERTIES): value for key, value in given.items() if key.startswith(_PROPERTIES)}
        return SpanFacts(
            role=role,
            query=question_in(unwrapped(asked, "inputs", *QUERY_BUNDLES))
            if role in {"root", "retrieval"}
            else None,
            documents=documents if is_search else None,
            candidates=_documents(mapping_in(asked).get("nodes"))[0] if role == "rerank" else None,
            malformed=malformed if is_search else 0,
            output=answer_in(unwrapped(output, "outputs")) if role == "root" else None,
            tool_name=name if role == "tool" else None,
            tool_output=answer_in(unwrapped(output, "outputs")) if role == "tool" else None,
            workflow=_workflow(given, name) if role == "root" else None,
            session=text_in(own.pop("session_id", None)),
            user=text_in(own.pop("user_id", None)),
            metadata=own,
        )


def _step(
    given: Mapping[str, object], asked: object, documents: tuple[SpanDocument, ...] | None
) -> SpanRole | None:
    """Tell a search by its operation, or by what LlamaIndex's methods take and return."""
    if given.get("gen_ai.operation.name") == "vector_db_retrieve":
        return "retrieval"
    if documents is None or not isinstance(asked, dict):
        return None
    if isinstance(asked.get("nodes"), list):
        return "rerank"
    return "retrieval" if any(name in asked for name in QUERY_BUNDLES) else None


def _documents(output: object) -> tuple[tuple[SpanDocument, ...] | None, int]:
    """Return LangChain's documents, or LlamaIndex's nodes, each of them a JSON text; None for anything else."""
    nodes = [mapping_in(item) for item in output] if isinstance(output, list) else []
    if not any(isinstance(item.get("node"), dict) for item in nodes):
        return (
            documents_in(output) if output == [] or mapping_in(output).get("documents") is not None else (None, 0)
        )
    return counted([_node(item.get("node"), item.get("score")) for item in nodes])


def _node(node: object, score: object) -> SpanDocument | None:
    given = mapping_in(node)
    name = given.get("id_", given.get("node_id"))
    return document_of(given.get("text"), name, score, mapping_in(given.get("metadata")))


def _workflow(given: Mapping[str, object], name: str) -> str | None:
    return run_name(given.get("traceloop.workflow.name")) or run_name(name.removesuffix(".workflow"))


DIALECT: SpanDialect = Traceloop()
