"""Places for calls under way: first come, first served, on any number of event loops."""

from __future__ import annotations

import asyncio
import threading
from collections import deque


class Slots:
    """Counts calls under way against a number that may change between them. Coroutine-safe and thread-safe.

    A coroutine that its loop left behind gives its place back when it is collected, which may be anywhere: so the
    lock may be taken twice by one thread, and nothing is half counted where something is made under it.

    Example:
        >>> async def one():
        ...     slots = Slots(1)
        ...     await slots.enter()
        ...     second = asyncio.create_task(slots.enter())
        ...     await asyncio.sleep(0)
        ...     slots.leave(allowed=1)
        ...     await second
        ...     return slots.under_way
        >>> asyncio.run(one())
        1
    """

    def __init__(self, allowed: int, lock: threading.RLock | None = None) -> None:
        self.under_way = 0
        self._allowed = allowed
        self._lock = lock or threading.RLock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._given: set[int] = set()  # ids of places given to who waited: themselves they would keep it alive

    async def enter(self) -> None:
        """Wait for a place and take it."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self.under_way < self._allowed and not self._waiting:
                self.under_way += 1
                return
            self._waiting.append(place)
        try:
            await place
        except BaseException:  # cancelled, or left behind by its loop
            with self._lock:
                if place in self._waiting:
                    self._waiting.remove(place)
                elif id(place) in self._given:  # in the same moment
                    self.leave()
            raise
        finally:
            self._given.discard(id(place))

    def leave(self, *, allowed: int | None = None) -> None:
        """Give a place back, and let in who waits; from any thread.

        Args:
            allowed: calls that may be under way from now on; None = as before.
        """
        with self._lock:
            self._allowed = self._allowed if allowed is None else allowed
            self.under_way -= 1
            while self._waiting and self.under_way < self._allowed:
                place = self._waiting.popleft()
                self.under_way += 1
                self._given.add(id(place))
                if not _told(place):
                    self.under_way -= 1
                    self._given.discard(id(place))


def _told(place: asyncio.Future[None]) -> bool:
    """Tell who waits for a place that it is there; False when its loop has ended."""
    try:
        place.get_loop().call_soon_threadsafe(_set, place)
    except RuntimeError:
        return False
    return True


def _set(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)
