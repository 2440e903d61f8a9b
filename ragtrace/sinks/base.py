"""What a sink is: where scored records go besides OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score


class Sink(Protocol):
    """Takes each scored record, in the scorer's thread, one call at a time.

    An exception is counted as a loss of this sink and touches neither the scorer nor other sinks. A sink that
    writes to a network queues in `emit` and writes in a thread of its own: see `ragtrace.sinks.outbox`.

    Two more methods are optional; both are given seconds, are not waited for beyond them, and return False
    when something was lost. ``flush(timeout_s)`` is called by `ragtrace.flush`; ``close(timeout_s)`` by
    `ragtrace.shutdown`, and by `ragtrace.configure` unless the sink is among the new ones, which only flushes it.
    """

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        ...
