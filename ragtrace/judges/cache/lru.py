"""A bounded dictionary that forgets the least recently used value."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Lru(Generic[ValueT]):
    """Keeps the last values by key.

    It has no lock, since a lost race costs one call of the judge at most.

    Example:
        >>> cache = Lru[int](1)
        >>> cache.put("a", 1)
        >>> cache.put("b", 2)
        >>> cache.get("a"), cache.get("b"), len(cache)
        (None, 2, 1)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[str, ValueT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> ValueT | None:
        """Return the value of a key, None without one. The value counts as used now."""
        value = self._kept.get(key)
        with suppress(KeyError):  # unknown, or forgotten by another thread
            self._kept.move_to_end(key)
        return value

    def put(self, key: str, value: ValueT) -> None:
        """Keep a value, and forget the oldest ones beyond the size."""
        self._kept.pop(key, None)
        self._kept[key] = value
        with suppress(KeyError):
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
