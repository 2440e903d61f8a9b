"""What a sink is: where scored records go besides OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score


class Sink(Protocol):
    """Takes each scored record, in the scorer's thread, one call at a time.

    An exception is counted as a loss of this sink and touches neither the scorer nor other sinks.
    """

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        ...
