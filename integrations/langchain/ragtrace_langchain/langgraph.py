"""LangGraph's commands, interrupts and other exceptions that steer a graph."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Protocol, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

_ERRORS = "langgraph.errors"
_TYPES = "langgraph.types"
_PREGEL = "langgraph.pregel"
_SENT = "__pregel_push"


def is_control_flow(error: BaseException) -> bool:
    """Tell whether an exception is LangGraph steering: an interrupt, a command to the parent graph, a drain.

    Only an application that has imported LangGraph can raise one, so that ours need not import it. The class
    decides, never its name: an application's own ``GraphInterrupt`` is an error like any other.

    Example:
        >>> is_control_flow(ValueError())
        False
    """
    return _is_a(error, _ERRORS, "GraphBubbleUp")


def is_interrupt(error: BaseException) -> bool:
    """Tell whether an exception is a LangGraph interrupt: the run waits for a person.

    Example:
        >>> is_interrupt(KeyboardInterrupt())
        False
    """
    return _is_a(error, _ERRORS, "GraphInterrupt")


class Command(Protocol):
    """LangGraph's ``Command``."""

    goto: object
    update: object


def is_command(value: object) -> TypeGuard[Command]:
    """Tell whether a value is LangGraph's ``Command``: where to go, and an update of the state.

    Example:
        >>> is_command({"update": {}})
        False
    """
    return _is_a(value, _TYPES, "Command")


def graph_of(frame: FrameType | None) -> FrameType | None:
    """Return the frame if a graph runs in it: the one that tells the callbacks of its start.

    Example:
        >>> graph_of(sys._getframe()) is None
        True
    """
    if frame is None or not frame.f_globals.get("__name__", "").startswith(_PREGEL):
        return None
    return frame if frame.f_code.co_name in {"stream", "astream"} else None


def is_at_breakpoint(graph: FrameType) -> bool:
    """Tell whether a graph that ends has stopped at a breakpoint: ``interrupt_before`` or ``interrupt_after``.

    It then raises nothing, and its last state looks like any other. Behind the last node nothing waits. LangGraph's
    `GraphCallbackHandler` is told, but not under `instrument`: a graph looks for it only in the callbacks of its
    call (langgraph 1.2.22). The status of its loop is the same in all versions.
    """
    loop = graph.f_locals.get("loop")
    status = getattr(loop, "status", None)
    return status == "interrupt_before" or (status == "interrupt_after" and bool(getattr(loop, "tasks", True)))


def _is_a(value: object, where: str, name: str) -> bool:
    module = sys.modules.get(where)
    kind = getattr(module, name, None) if module is not None else None
    return isinstance(kind, type) and isinstance(value, kind)


def step_of(tags: list[str] | None) -> str:
    """Return the tag of a graph's node, which names the step it runs in; "" for another chain.

    Example:
        >>> step_of(["graph:step:2"]), step_of(["seq:step:1"])
        ('graph:step:2', '')
    """
    return next((tag for tag in tags or () if tag.startswith("graph:step:")), "")


Task = tuple[tuple[int, int, str], ...]  # step and place of a node's task, and of the tasks around it


def task_of(step: str, metadata: Mapping[str, object] | None) -> Task:
    """Return the place of a node's task, by which those of one step are ordered as their results are in the state.

    Example:
        >>> task_of("graph:step:2", {"langgraph_path": ("__pregel_push", 1, False)})
        ((2, 1, '__pregel_push'),)
    """
    path = (metadata or {}).get("langgraph_path")
    parts = path if isinstance(path, list | tuple) else ()
    numbers = [part for part in parts if type(part) is int]
    number = step.rpartition(":")[2]
    names = "/".join(part for part in parts if isinstance(part, str))
    return ((int(number) if number.isdigit() else 0, numbers[-1] if numbers else -1, names),)


def is_sent(metadata: Mapping[str, object] | None) -> bool:
    """Tell whether a graph's node was sent what it is given, with ``Send``: a part for one task, and not the state.

    Example:
        >>> is_sent({"langgraph_triggers": ("__pregel_push",)}), is_sent({"langgraph_triggers": ("branch:to:a",)})
        (True, False)
    """
    triggers = (metadata or {}).get("langgraph_triggers")
    return isinstance(triggers, list | tuple) and _SENT in triggers


def payload_of(error: BaseException) -> str:
    """Return what an interrupt asks a person, one a line; a value that is no text as JSON.

    Example:
        >>> payload_of(ValueError())
        ''
    """
    interrupts = error.args[0] if error.args and isinstance(error.args[0], list | tuple) else ()
    return "\n".join(_shown(getattr(interrupt, "value", interrupt)) for interrupt in interrupts)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
