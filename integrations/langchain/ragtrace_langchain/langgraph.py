"""LangGraph's commands, interrupts and other exceptions that steer a graph."""

from __future__ import annotations

import json
import sys
from typing import Protocol, TypeGuard

_ERRORS = "langgraph.errors"
_TYPES = "langgraph.types"


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


def _is_a(value: object, where: str, name: str) -> bool:
    module = sys.modules.get(where)
    kind = getattr(module, name, None) if module is not None else None
    return isinstance(kind, type) and isinstance(value, kind)


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
