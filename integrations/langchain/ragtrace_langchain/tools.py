"""Read what tools give out beside documents, and tell what of it came from outside the model."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from ragtrace.model import Passage
from ragtrace_langchain.content_blocks import documents_in_blocks
from ragtrace_langchain.documents import documents_in, fields_of, text_of
from ragtrace_langchain.langgraph import is_command
from ragtrace_langchain.messages import content_text
from ragtrace_langchain.run_state import OpenSpan, OpenToolCall
from ragtrace_langchain.search_results import contexts_in, document_of, rows_held, value_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.documents import Document

    from ragtrace_langchain.messages import ResultCopy
    from ragtrace_langchain.run_state import RunState

_HANDS_OFF = re.compile(
    r"transfer|hand_?(?:off|over|back)|delegate|escalate|assign_to|route_to|forward", re.IGNORECASE
)
_SHORTEST_REPEAT_CHARS = 16


def note_said(state: RunState, response: ResultCopy | None, text: str) -> None:
    """Note what a model said, and what it gave to its tools: neither is evidence when it comes back."""
    if text.strip():
        state.replies.append(text)
        state.own.add(text)
    for choice in response.generations[0] if response is not None and response.generations else ():
        for call in getattr(choice.message, "tool_calls", None) or ():
            state.own.add(call["args"])
            state.called_after[call["id"]] = len(state.replies)


def note_begin(span: OpenSpan, inputs: object) -> None:
    """Note how far a run was when a chain or tool began, and the rows of databases that it was given."""
    span.results_before = len(span.state.delivered)
    span.replies_before = len(span.state.replies)
    if span.kind == "chain" and span.within is None:
        note_rows(span, inputs)


def tool_documents(span: OpenSpan, outputs: object, documents: list[Document] | None) -> list[Document] | None:
    """Return the documents that a tool gave; note its text where it gave none."""
    state, call_id = span.state, getattr(span, "call_id", None)
    messages = [message for message in _messages_in(outputs) if message.tool_call_id not in state.tool_calls]
    if _is_hand_off(span, outputs):
        state.tool_calls.update(message.tool_call_id for message in messages if message.tool_call_id == call_id)
        state.tool_calls.update(message.tool_call_id for message in messages[-1:])
        return None
    state.tool_calls.update(message.tool_call_id for message in messages)
    arguments = span.inputs if isinstance(span, OpenToolCall) else None
    if span.sources or span.found or span.is_marked:
        return documents
    if documents is not None:
        return _from_outside(span, documents, arguments)
    if not messages:
        return None if is_command(outputs) else _value_documents(span, outputs, arguments)
    found = [_value_documents(span, _content_of(message), arguments) for message in messages]
    return next((documents for documents in found if documents), None)


def tools_in_prompt(span: OpenSpan, prompt: Sequence[Any]) -> Iterator[tuple[OpenSpan, list[Document]]]:
    """Note the tool messages of this question in a prompt whose tools fired no event; yield the documents in them.

    Those before the last human message are of earlier questions.
    """
    turn = list(takewhile(_is_no_question, reversed(prompt)))
    if span.state.given is None and len(turn) < len(prompt):
        span.state.given = documents_in_blocks(getattr(prompt[-1 - len(turn)], "content", None)) or None
    calls = {
        call["id"]: call for message in prompt if isinstance(message, AIMessage) for call in message.tool_calls
    }
    for message in reversed(turn):
        if getattr(message, "type", None) != "tool" or message.tool_call_id in span.state.tool_calls:
            continue
        span.state.tool_calls.add(message.tool_call_id)
        call = calls.get(message.tool_call_id)
        name = message.name or (call["name"] if call else "")
        tool = OpenSpan(span.state, span.parent, "tool", name or "tool", span.started_ns)
        arguments = call["args"] if call else None
        tool.replies_before = span.state.called_after.get(message.tool_call_id, len(span.state.replies))
        documents = documents_in(message.artifact, tool.name)
        if documents:
            documents = _from_outside(tool, documents, arguments)
        else:
            documents = _value_documents(tool, _content_of(message), arguments)
        if documents:
            yield tool, documents


def from_outside(state: RunState, documents: list[Document] | None) -> list[Document] | None:
    """Return the documents that a step was given, less those that a model of the run wrote; None without any."""
    return [one for one in documents or () if not state.own.holds(text_of(one))] or None


def _is_no_question(message: object) -> bool:
    return getattr(message, "type", None) != "human"


def _content_of(message: ToolMessage) -> object:
    return None if message.status == "error" else message.content


def _is_hand_off(span: OpenSpan, outputs: object) -> bool:
    """Tell whether a tool hands over to another agent: its message is a note, and the history goes with it."""
    commands = [part for part in (outputs if isinstance(outputs, list) else [outputs]) if is_command(part)]
    steering = [command for command in commands if command.goto]
    return any(getattr(command, "graph", None) for command in steering) or (
        bool(steering) and _HANDS_OFF.search(span.name) is not None
    )


def _messages_in(outputs: object) -> Iterator[ToolMessage]:
    """Yield the messages that a tool gave out, itself or in the updates of commands."""
    for part in outputs if isinstance(outputs, list) else [outputs]:
        if isinstance(part, ToolMessage):
            yield part
        elif is_command(part):
            messages = (fields_of(part) or {}).get("messages")
            for message in messages if isinstance(messages, list | tuple) else [messages]:
                if isinstance(message, ToolMessage):
                    yield message


def _from_outside(span: OpenSpan, documents: list[Document], arguments: object) -> list[Document] | None:
    """Return the documents less those whose text the model gave itself; None where it gave all of them."""
    own = span.state.own
    found = [document for document in documents if not own.holds(text_of(document), arguments)]
    return found if found or not documents else None


def _value_documents(span: OpenSpan, value: object, arguments: object) -> list[Document] | None:
    """Return the documents that a tool's value writes out; note its texts where it has none."""
    blocks = documents_in_blocks(value)
    if blocks:
        return _from_outside(span, blocks, arguments)
    texts = _texts_of(value)
    written = [_written_in(text, span.name) for text in texts]
    if written and all(written):
        return _from_outside(span, [document for documents in written for document in documents], arguments)
    state = span.state
    is_of_node = not isinstance(span, OpenToolCall)
    inner = state.replies[span.replies_before :] if span.has_model or is_of_node else []
    for text in texts:
        if any(text.strip() in said for said in inner):  # an agent inside the tool said that, of what it found
            continue
        for part in state.own.evidence_in(text, arguments, span.name, inner):
            if len(part) < _SHORTEST_REPEAT_CHARS or not any(part in known for known in state.tool_texts):
                state.tool_texts.append(part)
                state.run.add_text(part, source=span.name)
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
        if not span.state.own.holds(text):
            span.state.run.add_text(text, source=name, kind="context_text")


def note_rows(span: OpenSpan, value: object) -> None:
    """Note rows of a database in what a step was given or gave out; those that a model wrote are its own words."""
    state = span.state
    fields: Mapping[Any, object] = fields_of(value) or {span.name: value}
    for name, part in fields.items():
        for rows in rows_held(part, str(name)):
            first = rows.forms[0]
            if first not in state.rows and first not in state.tool_texts and not state.own.holds(first):
                state.rows[first] = rows


def settle_rows(state: RunState) -> None:
    """Report the rows of databases as a prompt shows them; where none does, those whose name says it."""
    for rows in state.rows.values():
        shown = [form for form in rows.forms if state.run.prompt_contains([_passage(form)])][:1]
        each = (
            next((form for form in row if state.run.prompt_contains([_passage(form)])), None) for row in rows.rows
        )
        texts = shown or [form for form in each if form is not None]
        for text in texts or (rows.forms[:1] if rows.is_named and state.has_model else ()):
            state.run.add_text(text, source=rows.source)


def _passage(text: str) -> Passage:
    return Passage(id="", text=text, rank=1)
