"""What a queue is, and the unit that stands in it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.model import RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record to score, complete in itself.

    Attributes:
        record: what to score.
        decision: ``random`` or ``forced``.
        probability: inclusion probability of the draw; the weight is 1 / (head probability * this).
        is_recorded: whether the root span was sampled for export; without it no evaluation span is written.
        root: the process's own handle of the root span, None for a unit from elsewhere.
        offered_at: monotonic seconds.
    """

    record: RagRecord
    decision: Literal["random", "forced"] = "random"
    probability: float = 1.0
    is_recorded: bool = True
    root: Any = None
    offered_at: float = field(default_factory=time.monotonic)

    @property
    def size_bytes(self) -> int:
        """About how much text it holds, at one byte a character."""
        record = self.record
        texts = {id(p.text): len(p.text) for pool in record.pools for p in pool.passages}
        return 1_024 + sum(texts.values()) + len(record.answer) + len(record.query)


class Queue(Protocol):
    """Takes units from any thread, gives them to one scorer; never blocks the giver."""

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return those that had to go to make room (evicted, oldest first)."""
        ...

    def take(self) -> Unit | None:
        """Return the oldest unit, None when empty."""
        ...

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called after a put, from the giver's thread."""
        ...

    @property
    def size(self) -> int:
        """Units waiting."""
        ...

    @property
    def oldest_s(self) -> float:
        """Age of the oldest unit in seconds, 0.0 when empty."""
        ...
