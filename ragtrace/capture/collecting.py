"""Tells whether code runs inside the garbage collector, where a lock taken may be one this thread holds already.

A stream that was left in a reference cycle is finalised by the collector, in whatever thread allocates next and at
whatever point: inside the SDK's locks or ours too, and they are not reentrant. A run that ends there is put aside.
"""

from __future__ import annotations

import gc
import threading
from functools import partial
from operator import methodcaller

_thread = threading.local()


class _Phases:
    """The collector's two phases as attributes: whose thread reads one has noted whether it collects."""

    start = property(methodcaller("note", True))
    stop = property(methodcaller("note", False))

    def __init__(self) -> None:
        self.note = partial(setattr, _thread, "is_collecting")


# What the interpreter calls as (phase, info) runs in C to its end. In a callback in Python it would handle the
# signals that came during a collection, and it discards what a callback raises: 19 of 30 in a loop that allocates.
_note = partial(getattr, _Phases())


def is_collecting() -> bool:
    """Tell whether this thread runs the garbage collector, so that the calling code may be a finaliser of its.

    Other threads that a finaliser lets run meanwhile hold no lock below it.

    Example:
        >>> is_collecting()
        False
    """
    return getattr(_thread, "is_collecting", False)


def watch_collector() -> None:
    """Have the interpreter say when it collects (0.3 us for each of its rounds); a second call does nothing."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)
