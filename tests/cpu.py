"""CPU that a call takes, and how much slower this machine is now than the quiet one on which the bounds were set.

Other work on its cores takes caches and half a core's units away, so that the same call takes two or three times the
CPU; a loop that is timed beside it takes as much more.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

_QUIET_S = 0.005  # of the loop below, on two quiet cores


def leave_out_what_is_older() -> None:
    """Have the collector look at nothing that earlier tests of this process left; it stays left out."""
    gc.collect()  # garbage that is frozen stays for ever
    gc.freeze()


def seconds(call: Callable[[], object], *, rounds: int = 3) -> float:
    """Return the CPU of a call in this thread, the least of some."""
    taken = []
    leave_out_what_is_older()
    for _ in range(rounds):
        began = time.thread_time()
        call()
        taken.append(time.thread_time() - began)
    return min(taken)


def timed(function: Callable[..., object], taken: list[float]) -> Callable[..., object]:
    """Return a function that adds the CPU of each of its calls, in their threads, to a list."""

    def run(*given: object, **named: object) -> object:
        began = time.thread_time()
        try:
            return function(*given, **named)
        finally:
            taken.append(time.thread_time() - began)

    return run


def slower() -> float:
    """Return by how much a bound grows here and now: 1.0 on a quiet machine, and never less."""
    return max(1.0, median(seconds(_loop, rounds=1) for _ in range(5)) / _QUIET_S)


def _loop() -> None:
    """Make texts, lists and mappings, and forget them."""
    for number in range(100):
        texts = [str(part) for part in range(number, number + 200)]
        lengths = {text: len(text) for text in texts}
        assert sum(lengths.values()) == len("".join(texts).lower().replace("x", "y"))
