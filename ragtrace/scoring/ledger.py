"""Counts the end of every trace that was offered to the scorer."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from ragtrace.model import ENDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import End


class Ledger:
    """Counts every offered trace exactly once at its end: offered = the sum of the ends + pending.

    ``skipped`` was not drawn, or drawn for metrics that its scorer has not (``no_metric``); ``scored`` has its
    scores; ``invalid`` got no usable verdict; ``dead`` was tried too often; ``dropped`` was drawn and lost (its
    reason says where); ``failed`` met an internal error; ``spooled`` was handed to the spool, which counts it from
    there on. Thread-safe.

    Example:
        >>> ledger = Ledger()
        >>> ledger.offer(); ledger.offer(); ledger.end("scored")
        >>> ledger.pending, ledger.snapshot()["scored"]
        (1, 1)
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offered = 0
        self._passed = 0
        self._ends: Counter[tuple[End, str]] = Counter()

    def offer(self) -> None:
        """Count an offered trace."""
        with self._changed:
            self._offered += 1

    def end(self, state: End, reason: str = "") -> None:
        """Count the end of a trace."""
        with self._changed:
            self._ends[state, reason] += 1
            self._changed.notify_all()

    def passed(self, state: End, reason: str = "", count: int = 1) -> None:
        """Record traces that end immediately; `wait_settled` ignores them."""
        with self._changed:
            self._offered += count
            self._passed += count
            self._ends[state, reason] += count

    @property
    def offered(self) -> int:
        """Traces offered so far."""
        return self._offered

    @property
    def pending(self) -> int:
        """Traces offered and not ended."""
        return self.read()[1]

    def counts(self) -> Mapping[tuple[End, str], int]:
        """Return the number of ended traces by (state, reason)."""
        return self.read()[0]

    def read(self) -> tuple[Mapping[tuple[End, str], int], int]:
        """Return counts and pending of one moment, which sum up to `offered`."""
        with self._changed:
            return dict(self._ends), self._offered - sum(self._ends.values())

    def snapshot(self) -> dict[str, int]:
        """Return offered, pending, and the ends by ``state`` and ``state:reason``, all of one moment."""
        with self._changed:
            shown = {"offered": self._offered, "pending": self._offered - sum(self._ends.values())}
            shown |= dict.fromkeys(ENDS, 0)
            for (state, reason), count in self._ends.items():
                shown[state] += count
                if reason:
                    shown[f"{state}:{reason}"] = count
            return shown

    def wait_settled(self, timeout_s: float) -> bool:
        """Block until as many traces ended as were offered before this call; False after the timeout.

        A queue gives out the oldest trace first, so a later one seldom counts for an earlier one.
        """
        with self._changed:
            goal = self._offered - self._passed
            return self._changed.wait_for(lambda: sum(self._ends.values()) - self._passed >= goal, timeout_s)
