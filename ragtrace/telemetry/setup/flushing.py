"""Flush within a deadline of our own, and drain the pipeline when the application flushes its tracer provider."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry.sdk.trace import SpanProcessor

from ragtrace.capture import guarded, record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

_SHUTDOWN_MS = 5_000


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


class Drained(Protocol):
    """A pipeline that processes runs after they end."""

    def drain(self, timeout_s: float) -> bool:
        """Process everything that waits; False when the time is over first."""
        ...


class DrainProcessor(SpanProcessor):
    """Writes the spans of finished runs before the provider's other processors are flushed or shut down.

    Attributes:
        pipelines: the pipelines that write to the provider.
    """

    def __init__(self) -> None:
        self.pipelines: WeakSet[Drained] = WeakSet()

    def shutdown(self) -> None:
        """Drain, so that later processors export the spans of finished runs."""
        self.force_flush(_SHUTDOWN_MS)

    @guarded
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Drain; False when the time is over first."""
        drained = [pipeline.drain(timeout_millis / 1_000) for pipeline in list(self.pipelines)]
        return all(drained)


_processors: WeakKeyDictionary[Hashable, DrainProcessor] = WeakKeyDictionary()


def drain_with(provider: Hashable, pipeline: Drained) -> None:
    """Make a provider's ``force_flush`` and ``shutdown`` drain a pipeline first."""
    add = getattr(provider, "add_span_processor", None)
    if add is None:
        return
    found = _processors.get(provider)
    if found is None:
        found = _processors[provider] = DrainProcessor()
        add(found)
        _put_first(provider, found)
    found.pipelines.add(pipeline)


def _put_first(provider: object, processor: SpanProcessor) -> None:
    """Flush and shut a processor down before those that were registered earlier.

    The SDK asks processors in the order of registration, and has no public way to change it. Behind a batch
    processor that is shut down already, drained spans would be lost.
    """
    several = getattr(provider, "_active_span_processor", None)
    registered = getattr(several, "_span_processors", None)
    if several is not None and isinstance(registered, tuple) and processor in registered:
        several._span_processors = (processor, *(it for it in registered if it is not processor))  # noqa: SLF001
