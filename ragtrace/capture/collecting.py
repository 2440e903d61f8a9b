"""Tells whether code runs inside the garbage collector, where a lock taken may be one this thread holds already.

A stream that was left in a reference cycle is finalised by the collector, in whatever thread allocates next and at
whatever point: inside the SDK's locks or ours too, and they are not reentrant. A run that ends there is put aside.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import Any

_phases: OrderedDict[str, None] = OrderedDict(start=None, stop=None)
_COLLECTING: OrderedDict[str, None] = OrderedDict(stop=None, start=None)
# What the interpreter calls as (phase, info) is written in C. In a callback in Python it would handle the signals
# that came during a collection, and it discards what a callback raises: 19 of 30 in a loop that allocates.
_note: Any = _phases.move_to_end


def is_collecting() -> bool:
    """Tell whether the garbage collector runs, so that the calling code may be a finaliser that it called.

    In another thread, which a finaliser in Python lets run beside it, this is true as well.

    Example:
        >>> is_collecting()
        False
    """
    # One call in C, the order included: an iterator raises where another thread collects between its two steps
    # (1 of 15,000 runs of the soak was lost to that).
    return _phases == _COLLECTING


def watch_collector() -> None:
    """Have the interpreter say when it collects (0.1 us for each of its rounds); a second call does nothing."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)
