"""Flush within a deadline of our own, and drain the pipeline when the application flushes its tracer provider."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry.sdk.trace import SpanProcessor

from ragtrace.capture import guarded, kind_of, record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

_SHUTDOWN_MS = 5_000


def unended(calls: Mapping[str, Callable[[], bool]], timeout_s: float) -> list[str]:
    """Run calls in daemon threads; return the names of those that did not return True in time.

    The SDK's force_flush(100 ms) took 8.3 s and returned True, and its shutdown with a dead endpoint 10 to 30 s
    (measured with opentelemetry-sdk 1.45.2). A call that is late goes on in its thread and holds nothing up.
    A call that raises is one of them, and the log names it. Where no thread begins, as in ``atexit`` from Python
    3.12 on, they are made here, one after another, until the time is over.

    Args:
        calls: by the name of what they flush or end, as a person reads it.
        timeout_s: of all together.

    Example:
        >>> unended({"spans": lambda: True, "metrics": lambda: 1 / 0 > 1}, 1.0)
        ['metrics']
    """
    done: set[str] = set()

    def run(name: str) -> None:
        try:
            if calls[name]():
                done.add(name)
        except Exception as error:
            said = f"{name} could not be flushed or ended within {timeout_s:.1f} s: {kind_of(error)}"
            site = f"ragtrace.telemetry.deadline.{name}"
            record_internal_error(site, error, line=f"ragtrace: {said}; the application is not affected")

    deadline = time.monotonic() + timeout_s
    threads = []
    for name in calls:
        thread = threading.Thread(target=run, args=(name,), name="ragtrace-deadline", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if time.monotonic() < deadline:
                run(name)
        else:
            threads.append(thread)
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    in_time = done.copy()
    return [name for name in calls if name not in in_time]


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

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Drain; False when the time is over first, since older SDKs leave out the processors behind it then."""
        return self._drained(timeout_millis / 1_000) is not False

    @guarded
    def _drained(self, timeout_s: float) -> bool:
        drained = [pipeline.drain(timeout_s) for pipeline in list(self.pipelines)]
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
