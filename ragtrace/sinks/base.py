"""Sinks: destinations of scored records besides OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ragtrace.errors import ConfigError
from ragtrace.plugins import load_plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score


class Sink(Protocol):
    """Takes each scored record, in the scorer's thread, one call at a time.

    An exception is counted as a loss of this sink and touches neither the scorer nor other sinks. A sink that
    writes to a network queues in `emit` and writes in a thread of its own: see `ragtrace.sinks.outbox`.

    A package offers a sink as an entry point of the group ``ragtrace.sinks``: a class or function without arguments
    that returns one. ``configure(sinks=["name"])`` makes it. `ragtrace.testing.sink.SinkConformance` checks a sink.

    With a store, a sink gets the scores of a process that was killed once more, from the next process.

    Two more methods are optional; both are given seconds, are not waited for beyond them, and return False
    when something was lost. ``flush(timeout_s)`` is called by `ragtrace.flush`; ``close(timeout_s)`` by
    `ragtrace.shutdown`, and by `ragtrace.configure` unless the sink is among the new ones, which only flushes it.
    """

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        ...


def sinks_of(given: Any) -> tuple[Sink, ...]:
    """Return the sinks that an application gave, and make those given by the name of their entry point.

    Args:
        given: sinks, names, or one of either; None = no sink.

    Raises:
        ConfigError: an object has no ``emit``, or no installed package has the name.

    Example:
        >>> sinks_of([5])
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: sinks: an object with emit(record, scores) is wanted, got int
    """
    if given is None:
        return ()
    items = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    sinks = tuple(load_plugin("ragtrace.sinks", item)() if isinstance(item, str) else item for item in items)
    for sink in sinks:
        if not callable(getattr(sink, "emit", None)):
            raise ConfigError(f"sinks: an object with emit(record, scores) is wanted, got {type(sink).__name__}")
    return sinks
