"""Calls of tools: a step each, and their output as passages or as a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.tools import ToolOutput

from ragtrace.capture import OwnWords, guarded, prompt_text, read_mapping, rows_in, shown
from ragtrace.capture.attribution import found_in
from ragtrace.capture.types import Generation
from ragtrace.model import Passage
from ragtrace_llamaindex.nodes import NodeColumns
from ragtrace_llamaindex.selection import found_of, record_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.capture import Failure, IntegrationRun
    from ragtrace_llamaindex.run_state import OpenSpan, RunState, ToolSpan

_MOST_ROWS = 500  # written out while the application waits
_MOST_PASSAGES = 2_000
_SOUGHT_PASSAGES = 64  # in the prompts, to know that one of a list is shown
_LONGEST_READ_CHARS = 1_000_000  # of a text that may be JSON
_HANDOFF = "handoff"  # the tool by which one agent passes a question to another


class ToolResult(NamedTuple):
    """A tool's output as it was when the call ended."""

    text: str
    found: NodeColumns | list[object]
    texts: list[str]
    is_searched: bool  # the output may hold passages


@guarded
def report_tool_call(span: ToolSpan, result: object, error: BaseException | None, ended_ns: int) -> None:
    """Report a tool call that has ended."""
    run = span.state.run
    if run is None:
        return
    value = result.raw_output if isinstance(result, ToolOutput) else result
    is_searched = error is None and span.name != _HANDOFF and not getattr(result, "is_error", False)
    passages = passages_in(value) if is_searched else []
    read = ToolResult(_text_of(result), found_of(passages) if passages else [], _texts_in(value), is_searched)
    chars = read.found.chars if isinstance(read.found, NodeColumns) else 0
    span.state.record(record_tool_call, span, run, read, run.failure_of(error), ended_ns, chars=chars)


@guarded
def record_tool_call(
    span: ToolSpan, run: IntegrationRun, result: ToolResult, failure: Failure | None, ended_ns: int
) -> None:
    """Write a tool call; its output counts as passages where nothing was searched in it."""
    span.state.said.append(result.text)
    run.tool_called(
        span.name,
        arguments=span.arguments,
        result=result.text or None,
        description=span.description,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        error=failure,
        key=span.id,
        parent_key=span.within_key,
    )
    if not result.is_searched or span.has_found:
        return
    own = span.state.own
    if result.found:
        found = from_outside(own, result.found, span.arguments)
        if found:
            record_found(span, run, found, span.name, ended_ns)
        return
    for text in result.texts or [result.text]:
        if any(text.strip() in said for said in span.replies):  # a model inside the tool wrote it
            continue
        for part in own.evidence_in(text, span.arguments, span.name, span.replies):
            run.add_text(part, source=span.name)


def from_outside(own: OwnWords, found: NodeColumns | list[object], arguments: str) -> NodeColumns | list[object]:
    """Return what a tool found, less the passages whose text a model of the run wrote itself."""

    def is_own(text: str) -> bool:
        return own.holds(text, value_in_json(arguments))

    if isinstance(found, NodeColumns):
        return found.without(is_own)
    return [part for part in found if not (isinstance(part, dict) and is_own(read_mapping(part)[0] or ""))]


def note_found(state: RunState, fields: Mapping[str, object]) -> None:
    """Note what a step gave out that may have come from a search of its own: passages, and rows of a database."""
    for name, part in fields.items():
        if isinstance(part, str):
            if part.startswith("[") and len(part) <= _LONGEST_READ_CHARS:  # it is read when the run ends
                state.offered.setdefault(name, part)
        elif not isinstance(part, list | tuple | dict) or not 0 < len(part) <= _MOST_PASSAGES:
            continue
        elif found := passages_in(part):
            state.offered.setdefault(name, found_of(found))
        elif len(part) <= _MOST_ROWS:
            _note_rows(state, part, name)


def _note_rows(state: RunState, part: object, name: str) -> None:
    for rows in rows_in(part, name):
        state.rows.setdefault(rows.forms[0], rows)


@guarded
def settle_found(root: OpenSpan, run: IntegrationRun) -> None:
    """Report what steps gave out as it is shown to a model: passages where nothing was searched, and rows."""
    state = root.state
    for name, found in state.offered.items():
        if isinstance(found, str):
            _note_rows(state, found, name)
        elif not (state.seen or run.retrievals()):
            passages = run.reader.read(found) if isinstance(found, list) else found.passages(run.reader)
            if run.prompt_contains(passages[:_SOUGHT_PASSAGES]):
                record_found(root, run, from_outside(state.own, found, ""), name, root.started_ns)
    for rows in state.rows.values():
        if state.own.holds(rows.forms[0]) and _is_written(run, rows.forms):
            continue
        shown = _shown(run, rows.forms)
        each = [form for row in rows.rows if (form := _shown(run, row))] if shown is None else [shown]
        for text in each or (rows.forms[:1] if rows.is_named and state.is_model_asked else ()):
            run.add_text(text, source=rows.source)


def _is_written(run: IntegrationRun, forms: Iterable[str]) -> bool:
    """Tell whether a model wrote rows before one was shown them; an answer may repeat what it was shown."""
    sought = [Passage(id=str(place), text=form, rank=1) for place, form in enumerate(forms)]
    own = OwnWords()
    for step in run.steps:
        if not isinstance(step, Generation):
            continue
        if found_in(prompt_text(step.inputs), sought):
            break
        for said in step.outputs:
            own.add(said.content)
            for call in said.calls:
                own.add(value_in_json(call.arguments))
    return any(own.holds(form) for form in forms)


def _shown(run: IntegrationRun, forms: Iterable[str]) -> str | None:
    return next((form for form in forms if run.prompt_contains([Passage(id="", text=form, rank=1)])), None)


def passages_in(value: object) -> list[object]:
    """Return the nodes or search results in a tool's value, [] where it has none.

    Example:
        >>> passages_in('[{"id": "d1", "text": "Oslo."}]'), passages_in("Oslo.")
        ([{'id': 'd1', 'text': 'Oslo.'}], [])
    """
    if isinstance(value, str):
        value = value_in_json(value)
    parts = list(value) if isinstance(value, list | tuple) else [value]
    return parts if parts and all(_is_passage(part) for part in parts) else []


def _is_passage(part: object) -> bool:
    if isinstance(part, NodeWithScore | BaseNode):
        return True
    return isinstance(part, dict) and "role" not in part and bool(read_mapping(part)[0])


def value_in_json(text: str) -> object:
    """Return the value of a text that is a JSON list or object; None for any other.

    Example:
        >>> value_in_json('{"a": 1}'), value_in_json("In Oslo.")
        ({'a': 1}, None)
    """
    if len(text) > _LONGEST_READ_CHARS or not text.lstrip().startswith(("[", "{")):
        return None
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read


def _texts_in(value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        return []
    return [part for part in value if part.strip()]


def _text_of(result: object) -> str:
    return result.content if isinstance(result, ToolOutput) else shown(result)
