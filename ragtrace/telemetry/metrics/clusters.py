"""Sums of weights over clusters of scores, as increments that counters can take."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

LIFETIME_S: Final = 4 * 3_600.0
"""Seconds after its first score at which a cluster is forgotten. A later score begins a new one."""

MOST: Final = 20_000
"""Clusters that are remembered, over all series; beyond them the oldest is forgotten. They take 5 MB."""


class Squares(NamedTuple):
    """Increments of the sums of W^2, W WX and WX^2 over clusters.

    Attributes:
        w2: of W^2.
        w2x: of W WX.
        w2x2: of WX^2.
    """

    w2: float
    w2x: float
    w2x2: float


class ClusterSums:
    """Remembers the weights W and weighted scores WX of recent clusters. Thread-safe.

    A series is any hashable value, and so is a cluster. Both are kept as one hash, so that no text stays here.

    Args:
        clock: monotonic seconds.
        lifetime_s: after the first score of a cluster.
        most: clusters that are remembered.

    Example:
        >>> sums = ClusterSums(lambda: 0.0)
        >>> sums.join("faithfulness", "session", 1.0, 2.0)
        Squares(w2=4.0, w2x=4.0, w2x2=4.0)
        >>> sums.join("faithfulness", "session", 0.5, 2.0)
        Squares(w2=12.0, w2x=8.0, w2x2=5.0)
    """

    def __init__(self, clock: Callable[[], float], *, lifetime_s: float = LIFETIME_S, most: int = MOST) -> None:
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[int, tuple[float, float, float]] = {}  # time of the first score, W and WX; oldest first

    def join(self, series: Hashable, cluster: Hashable, x: float, w: float) -> Squares:
        """Add a score x with weight w to its cluster, and return what it adds to the sums over clusters.

        Where x is never negative, no increment is.
        """
        key, now = hash((series, cluster)), self._clock()
        with self._lock:
            self._forget(now)
            born, old_w, old_wx = self._known.get(key, (now, 0.0, 0.0))
            wx = w * x
            self._known[key] = born, old_w + w, old_wx + wx
        return Squares(
            w2=w * (2.0 * old_w + w),
            w2x=old_w * wx + w * old_wx + w * wx,
            w2x2=wx * (2.0 * old_wx + wx),
        )

    def __len__(self) -> int:
        """Number of clusters that are remembered."""
        return len(self._known)

    def _forget(self, now: float) -> None:
        while self._known:
            key = next(iter(self._known))
            if len(self._known) < self._most and self._known[key][0] + self._lifetime_s > now:
                return
            del self._known[key]
