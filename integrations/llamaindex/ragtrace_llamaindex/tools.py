"""Calls of tools: a step each, and their output as passages or as a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.tools import ToolOutput

from ragtrace.capture import guarded, read_mapping, shown
from ragtrace_llamaindex.selection import take_found
from ragtrace_llamaindex.tree import ToolNode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from inspect import BoundArguments

    from ragtrace.capture import Run
    from ragtrace_llamaindex.tree import Node

_LONGEST_READ_CHARS = 1_000_000  # of a text that may be JSON
_PLAIN = (str, int, float, bool, list, dict, type(None))
_HANDOFF = "handoff"  # the tool by which one agent passes a question to another


@guarded
def begin_tool(node: Node, bound: BoundArguments, instance: Any) -> None:
    """Note a tool's name, and the arguments of its call."""
    if not isinstance(node, ToolNode):
        return
    metadata = getattr(instance, "metadata", None)
    node.name = shown(getattr(metadata, "name", None)) or node.name
    node.description = shown(getattr(metadata, "description", None)) or None
    node.arguments = _arguments_of(bound.arguments)


@guarded
def report_tool(node: ToolNode, run: Run, result: Any, error: BaseException | None, ended_ns: int) -> None:
    """Report a tool call that has ended; its output counts as passages where nothing was searched in it."""
    run.tool_called(
        node.name,
        arguments=node.arguments,
        result=_text_of(result) or None,
        description=node.description,
        started_ns=node.started_ns,
        ended_ns=ended_ns,
        error=error,
        key=node.id,
        parent_key=node.within_key,
    )
    if error is None and not node.has_found and node.name != _HANDOFF and not getattr(result, "is_error", False):
        _take_output(node, run, result, ended_ns)


def _take_output(node: ToolNode, run: Run, result: Any, ended_ns: int) -> None:
    value = result.raw_output if isinstance(result, ToolOutput) else result
    passages = passages_in(value)
    if passages:
        take_found(node, run, passages, node.name, ended_ns)
        return
    said = node.tree.last_text if node.has_model else ""
    for text in _texts_in(value) or [_text_of(result)]:
        if text and not (said and text.strip() in said):  # else a model inside the tool wrote it
            run.add_text(text, source=node.name)


def passages_in(value: Any) -> list[Any]:
    """Return the nodes or search results in a tool's value, [] where it has none.

    Example:
        >>> passages_in('[{"id": "d1", "text": "Oslo."}]'), passages_in("Oslo.")
        ([{'id': 'd1', 'text': 'Oslo.'}], [])
    """
    if isinstance(value, str):
        value = _read_json(value)
    parts = list(value) if isinstance(value, list | tuple) else [value]
    return parts if parts and all(_is_passage(part) for part in parts) else []


def _is_passage(part: Any) -> bool:
    if isinstance(part, NodeWithScore | BaseNode):
        return True
    return isinstance(part, dict) and "role" not in part and bool(read_mapping(part)[0])


def _read_json(text: str) -> Any:
    if len(text) > _LONGEST_READ_CHARS or not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts_in(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        return []
    return [part for part in value if part.strip()]


def _text_of(result: Any) -> str:
    return result.content if isinstance(result, ToolOutput) else shown(result)


def _arguments_of(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON, less what is the framework's own, such as a workflow's context."""
    given = {name: value for name, value in arguments.items() if name not in {"args", "kwargs"}}
    given.update(arguments.get("kwargs") or {})
    plain: Any = {name: value for name, value in given.items() if isinstance(value, _PLAIN)}
    positional = [value for value in arguments.get("args") or () if isinstance(value, _PLAIN)]
    if positional:
        plain = [*positional, plain] if plain else positional
    return json.dumps(plain, ensure_ascii=False, default=shown) if plain else ""
