"""What a forked child does at once: it has its parent's memory, and of the parent's threads none."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_methods: dict[weakref.WeakMethod[Callable[[], object]], None] = {}


def in_children(method: Callable[[], object]) -> None:
    """Call a bound method in every forked child, while its object lives; it is not kept alive by this.

    Example:
        >>> class Counter:
        ...     def reset(self) -> None:
        ...         self.count = 0
        >>> in_children(Counter().reset)
    """
    _methods[weakref.WeakMethod(method, _forget)] = None


def _forget(method: weakref.WeakMethod[Callable[[], object]]) -> None:
    _methods.pop(method, None)


def _after_fork() -> None:
    for method in list(_methods):
        living = method()
        if living is not None:
            living()


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
