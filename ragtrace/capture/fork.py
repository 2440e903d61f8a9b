"""Reset locks, threads and counts in forked children, from one hook of the process."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Not `weakref.WeakMethod`, which prints an error when both are gone at the interpreter's end.
_resets: dict[object, tuple[Callable[[], Any], Callable[..., object]]] = {}


def after_fork_in_child(reset: Callable[[], object]) -> None:
    """Call a function or bound method in every forked child, in the order of registration.

    A bound method does not keep its object alive.

    Example:
        >>> class Counter:
        ...     def reset(self) -> None:
        ...         self.count = 0
        >>> after_fork_in_child(Counter().reset)
    """
    for key, (owner, _) in _resets.copy().items():
        if owner() is None:
            _resets.pop(key, None)
    bound: Any = reset
    if hasattr(bound, "__self__"):
        _resets[object()] = weakref.ref(bound.__self__), bound.__func__
    else:
        _resets[object()] = lambda: reset, _call


def _call(reset: Callable[[], object]) -> None:
    reset()


def _after_fork() -> None:
    for owner, reset in _resets.copy().values():
        living = owner()
        if living is not None:
            reset(living)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)  # once: nothing takes it back
