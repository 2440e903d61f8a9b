"""The zero-configuration queue: a bounded deque in memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.queues.base import Unit


class MemoryQueue:
    """First in, first out, bounded in units and in bytes; a full queue evicts its oldest units and returns them.

    Thread-safe; `put` holds a lock for a few operations on a deque and does no I/O.

    Args:
        capacity: most units.
        capacity_bytes: most bytes of text.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from ragtrace.queues.base import Unit
        >>> queue = MemoryQueue(capacity=1)
        >>> queue.put(Unit(record=RagRecord(id="1")))
        []
        >>> [unit.record.id for unit in queue.put(Unit(record=RagRecord(id="2")))]
        ['1']
    """

    def __init__(self, capacity: int = 2_048, capacity_bytes: int = 33_554_432) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._units: deque[tuple[Unit, int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None

    @property
    def size(self) -> int:
        """Units waiting."""
        return len(self._units)

    @property
    def oldest_s(self) -> float:
        """Age of the oldest unit in seconds, 0.0 when empty."""
        with self._lock:
            return time.monotonic() - self._units[0][0].offered_at if self._units else 0.0

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set what is called after a put, from the giver's thread."""
        self._wake = wake

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return the oldest ones that had to go. A unit over the byte bound is returned itself."""
        size = unit.size_bytes
        if size > self.capacity_bytes:
            return [unit]
        evicted = []
        with self._lock:
            self._units.append((unit, size))
            self._bytes += size
            while len(self._units) > self.capacity or self._bytes > self.capacity_bytes:
                old, old_size = self._units.popleft()
                self._bytes -= old_size
                evicted.append(old)
        if self._wake is not None:
            self._wake()
        return evicted

    def take(self) -> Unit | None:
        """Return the oldest unit, None when empty."""
        with self._lock:
            if not self._units:
                return None
            unit, size = self._units.popleft()
            self._bytes -= size
            return unit

    def clear(self) -> list[Unit]:
        """Empty the queue and return what was in it."""
        with self._lock:
            units = [unit for unit, _ in self._units]
            self._units.clear()
            self._bytes = 0
        return units
