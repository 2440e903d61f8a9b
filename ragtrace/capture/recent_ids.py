"""Ids of what has ended: an event that comes late from inside it opens no run of its own."""

from __future__ import annotations


class RecentIds:
    """The ids added last, at least `limit` and at most twice as many; by their hashes, so that none is held.

    There is no lock: every change is one set operation, and a forked child can therefore never inherit a held one.

    Example:
        >>> ended = RecentIds(100)
        >>> ended.add("span-7")
        >>> "span-7" in ended, "span-8" in ended
        (True, False)
    """

    __slots__ = ("_before", "_now", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._now: set[int] = set()
        self._before: set[int] = set()

    def __len__(self) -> int:
        return len(self._now) + len(self._before)

    def __contains__(self, name: object) -> bool:
        number = hash(name)
        return number in self._now or number in self._before

    def add(self, name: object) -> None:
        """Remember an id."""
        now = self._now
        now.add(hash(name))
        # Of two threads that both come here, neither drops an empty set.
        if len(now) > self.limit and now is self._now:
            self._before, self._now = now, set()
