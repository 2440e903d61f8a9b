"""Memory of a process for its runs: ids and roots that were met, and hashes of answers and prompts; no text."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.capture.follows import Before
    from ragtrace.capture.residue import Memory

MOST_WORKFLOWS = 1_024  # names that are remembered; of twice as many the oldest are forgotten
MOST_ROOTS = 8  # an application with more names them anew for each request


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


class PastRuns:
    """Memory of a recorder's earlier runs; no text of them is kept.

    Attributes:
        answering: names of the workflows that have had an answer.
        lock: held while the others are used: runs may end in several threads, and in one thread inside another
            run's end, when a collection finds a stream that nobody read.
        answers: hashes of the last answers, see `ragtrace.capture.follows`; None until it is asked for.
        prompts: hashes of the last prompts, see `ragtrace.capture.residue`; None until it is asked for.
        roots: names of the roots of runs; one more than `MOST_ROOTS` at most.
    """

    def __init__(self) -> None:
        self.answering = RecentIds(MOST_WORKFLOWS)
        self.lock = threading.RLock()
        self.answers: Before | None = None
        self.prompts: Memory | None = None
        self.roots: set[str] = set()
