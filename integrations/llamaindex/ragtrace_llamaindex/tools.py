"""Calls of tools: a step each, and their output as passages or as a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.tools import ToolOutput

from ragtrace.capture import guarded, read_mapping, shown
from ragtrace_llamaindex.nodes import NodeColumns
from ragtrace_llamaindex.selection import found_of, record_found

if TYPE_CHECKING:
    from ragtrace.capture import Failure, IntegrationRun
    from ragtrace_llamaindex.run_state import ToolSpan

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
    if result.found:
        record_found(span, run, result.found, span.name, ended_ns)
        return
    said = span.state.last_reply if span.has_model else ""
    for text in result.texts or [result.text]:
        if text and not (said and text.strip() in said):  # else a model inside the tool wrote it
            run.add_text(text, source=span.name)


def passages_in(value: object) -> list[object]:
    """Return the nodes or search results in a tool's value, [] where it has none.

    Example:
        >>> passages_in('[{"id": "d1", "text": "Oslo."}]'), passages_in("Oslo.")
        ([{'id': 'd1', 'text': 'Oslo.'}], [])
    """
    if isinstance(value, str):
        value = _read_json(value)
    parts = list(value) if isinstance(value, list | tuple) else [value]
    return parts if parts and all(_is_passage(part) for part in parts) else []


def _is_passage(part: object) -> bool:
    if isinstance(part, NodeWithScore | BaseNode):
        return True
    return isinstance(part, dict) and "role" not in part and bool(read_mapping(part)[0])


def _read_json(text: str) -> object:
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
