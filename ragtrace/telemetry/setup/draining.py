"""Drain the pipeline when the application flushes or shuts down its own tracer provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry.sdk.trace import SpanProcessor

from ragtrace.capture import guarded

if TYPE_CHECKING:
    from collections.abc import Hashable

_SHUTDOWN_S = 5.0


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
        self.pipelines: WeakSet[Any] = WeakSet()

    def shutdown(self) -> None:
        """Drain, so that later processors export the spans of finished runs."""
        self._drain(_SHUTDOWN_S)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Drain; False when the time is over first."""
        return bool(self._drain(timeout_millis / 1_000))

    @guarded
    def _drain(self, timeout_s: float) -> bool:
        drained = [pipeline.drain(timeout_s) for pipeline in list(self.pipelines)]
        return all(drained)


_processors: WeakKeyDictionary[Hashable, DrainProcessor] = WeakKeyDictionary()


def drain_with(provider: Any, pipeline: Drained) -> None:
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


def _put_first(provider: Any, processor: SpanProcessor) -> None:
    """Flush and shut a processor down before those that were registered earlier.

    The SDK asks processors in the order of registration, and has no public way to change it. Behind a batch
    processor that is shut down already, drained spans would be lost.
    """
    several: Any = getattr(provider, "_active_span_processor", None)
    registered = getattr(several, "_span_processors", None)
    if isinstance(registered, tuple) and processor in registered:
        several._span_processors = (processor, *(one for one in registered if one is not processor))  # noqa: SLF001
