"""Run calls with a deadline of our own, since the SDK does not keep its timeouts."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def all_within(calls: Sequence[Callable[[], bool]], timeout_s: float) -> bool:
    """Run calls in daemon threads; return whether all returned True in time.

    The SDK's force_flush(100 ms) took 8.3 s and returned True, and its shutdown with a dead endpoint 10 to 30 s
    (measured with opentelemetry-sdk 1.45.2). A call that is late goes on in its thread and holds nothing up.
    A call that raises counts as False. Where no thread begins, as in ``atexit`` from Python 3.12 on, they are made
    here, one after another, until the time is over.

    Example:
        >>> all_within([lambda: True], 1.0)
        True
        >>> all_within([lambda: 1 / 0 > 1], 1.0)
        False
    """
    outcomes = [False] * len(calls)

    def run(place: int) -> None:
        try:
            outcomes[place] = calls[place]()
        except Exception as error:
            record_internal_error("ragtrace.telemetry.deadline", error)

    deadline = time.monotonic() + timeout_s
    threads = []
    for place in range(len(calls)):
        thread = threading.Thread(target=run, args=(place,), name="ragtrace-deadline", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if time.monotonic() < deadline:
                run(place)
        else:
            threads.append(thread)
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return all(outcomes) and not any(thread.is_alive() for thread in threads)
