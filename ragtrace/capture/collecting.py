"""Tells whether code runs inside the garbage collector, where a lock taken may be one this thread holds already.

A stream that was left in a reference cycle is finalised by the collector, in whatever thread allocates next and at
whatever point: inside the SDK's locks or ours too, and they are not reentrant. A run that ends there is put aside.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

_collector = 0  # ident of the thread that collects now; the interpreter collects once at a time


def _note(phase: str, _info: dict[str, Any]) -> None:
    global _collector  # noqa: PLW0603 - one interpreter has one collector
    _collector = threading.get_ident() if phase == "start" else 0


def is_collecting() -> bool:
    """Tell whether the calling code runs in a finaliser that the garbage collector called.

    Example:
        >>> is_collecting()
        False
    """
    return _collector != 0 and _collector == threading.get_ident()


def watch_collector() -> None:
    """Have the interpreter say when it collects (0.3 us for each of its rounds); a second call does nothing."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)
