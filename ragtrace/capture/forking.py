"""What a forked child does at once: it has its parent's memory, and of the parent's threads none."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Not `weakref.WeakMethod`, which prints an error when both are gone at the interpreter's end.
_methods: dict[object, tuple[weakref.ref[Any], Callable[[Any], object]]] = {}


def in_children(method: Callable[[], object]) -> None:
    """Call a bound method in every forked child, while its object lives; it is not kept alive by this.

    Example:
        >>> class Counter:
        ...     def reset(self) -> None:
        ...         self.count = 0
        >>> in_children(Counter().reset)
    """
    for key, (found, _) in _methods.copy().items():
        if found() is None:
            _methods.pop(key, None)
    bound: Any = method
    _methods[object()] = weakref.ref(bound.__self__), bound.__func__


def _after_fork() -> None:
    for found, function in _methods.copy().values():
        living = found()
        if living is not None:
            function(living)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)  # once: nothing takes it back


class ForkSafeLock:
    """A reentrant lock that a forked child finds free: the thread that may have held it does not live there.

    Example:
        >>> lock = ForkSafeLock()
        >>> with lock:
        ...     "held"
        'held'
    """

    def __init__(self) -> None:
        self._renew()
        in_children(self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
