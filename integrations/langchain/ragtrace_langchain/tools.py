"""Tools that return a text in place of documents."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from ragtrace_langchain.content_blocks import documents_in_blocks
from ragtrace_langchain.documents import documents_in, fields_of
from ragtrace_langchain.langgraph import is_command
from ragtrace_langchain.messages import content_text
from ragtrace_langchain.run_state import OpenSpan
from ragtrace_langchain.search_results import contexts_in, document_of, value_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.documents import Document


def tool_documents(span: OpenSpan, outputs: object, documents: list[Document] | None) -> list[Document] | None:
    """Return the documents that a tool gave; note its text where it gave none."""
    messages = list(_messages_in(outputs))
    span.state.tool_calls.update(message.tool_call_id for message in messages)
    if documents is not None or span.sources or span.found:
        return documents
    if not messages:
        return None if is_command(outputs) else _value_documents(span, outputs)
    return next((found for message in messages if (found := _value_documents(span, _content_of(message)))), None)


def tools_in_prompt(span: OpenSpan, prompt: Sequence[Any]) -> Iterator[tuple[OpenSpan, list[Document]]]:
    """Note the tool messages of this question in a prompt whose tools fired no event; yield the documents in them.

    Those before the last human message are of earlier questions.
    """
    turn = list(takewhile(_is_no_question, reversed(prompt)))
    if span.state.given is None and len(turn) < len(prompt):
        span.state.given = documents_in_blocks(getattr(prompt[-1 - len(turn)], "content", None)) or None
    for message in reversed(turn):
        if getattr(message, "type", None) != "tool" or message.tool_call_id in span.state.tool_calls:
            continue
        span.state.tool_calls.add(message.tool_call_id)
        tool = OpenSpan(span.state, span.parent, "tool", message.name or "tool", span.started_ns)
        documents = documents_in(message.artifact, tool.name) or _value_documents(tool, _content_of(message))
        if documents:
            yield tool, documents


def _is_no_question(message: object) -> bool:
    return getattr(message, "type", None) != "human"


def _content_of(message: ToolMessage) -> object:
    return None if message.status == "error" else message.content


def _messages_in(outputs: object) -> Iterator[ToolMessage]:
    """Yield the messages that a tool gave out itself or in a command; none of a command that also steers.

    A hand-off to another agent or a note in the state is not what a tool found.
    """
    if isinstance(outputs, ToolMessage):
        yield outputs
    elif is_command(outputs):
        update = fields_of(outputs) or {}
        messages = update.get("messages")
        if not outputs.goto and update.keys() == {"messages"} and isinstance(messages, list | tuple):
            yield from (part for part in messages if isinstance(part, ToolMessage))
    elif isinstance(outputs, list):
        yield from (part for part in outputs if isinstance(part, ToolMessage))


def _value_documents(span: OpenSpan, value: object) -> list[Document] | None:
    """Return the documents that a tool's value writes out; note its texts where it has none."""
    blocks = documents_in_blocks(value)
    if blocks:
        return blocks
    texts = _texts_of(value)
    written = [_written_in(text, span.name) for text in texts]
    if written and all(written):
        return [document for documents in written for document in documents]
    said = span.state.last_reply if span.has_model else ""
    for text in texts:
        if not (said and text.strip() in said):  # an agent inside the tool said that, of what it found itself
            span.state.run.add_text(text, source=span.name)
    return None


def _written_in(text: str, name: str) -> list[Document]:
    value = value_of_text(text)
    one = document_of(value, is_named=False) if isinstance(value, dict) else None
    return documents_in(value, name) or ([one] if one is not None else [])


def _texts_of(value: object) -> list[str]:
    """Return a tool's texts: of a list of texts or blocks, each one, also where LangChain made JSON of it."""
    if isinstance(value, str):
        parts = value_of_text(value)
        if isinstance(parts, list) and parts and all(isinstance(part, str) for part in parts):
            return [part for part in parts if part.strip()]
        return [value]
    if isinstance(value, list | tuple):
        return [text for part in value if (text := content_text([part], is_prompt=True))]
    return [] if value is None else [str(value)]


def record_contexts(span: OpenSpan, given: object, outputs: object) -> None:
    """Note contexts that a step gave out as one text, while nothing was found as passages."""
    state = span.state
    if state.pool or span.kind != "chain" or span.has_model or span.within is not None:
        return
    record_context_texts(span, given, outputs)


def record_context_texts(span: OpenSpan, given: object, outputs: object) -> None:
    """Note the texts of a value that stand in place of documents."""
    for name, text in contexts_in(outputs, span.name, given):
        span.state.run.add_text(text, source=name, kind="context_text")
