"""One value an hour for each cluster of dependent scores, so that a baseline counts each once."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUR_S = 3_600.0
MOST_OPEN = 10_000


class ClusterMean(NamedTuple):
    """Mean score of one cluster over an hour, its mean weight, and the time of its first score.

    Example:
        >>> ClusterMean(x=0.5, weight=1.0, at=0.0).x
        0.5
    """

    x: float
    weight: float
    at: float


class OpenClusters:
    """Gathers the scores of each cluster for an hour from its first one. Not thread-safe; asks no clock.

    At most `MOST_OPEN` clusters are gathered; beyond them the oldest is closed early. What was gathered is lost
    with the process.

    Example:
        >>> sessions = OpenClusters()
        >>> for x in (1.0, 0.0):
        ...     sessions.add("session", x, 1.0, at=0.0)
        >>> sessions.closed(60.0), sessions.closed(3_600.0)
        ([], [ClusterMean(x=0.5, weight=1.0, at=0.0)])
    """

    def __init__(self) -> None:
        # Each: time of the first score, number of scores, sum of weights, sum of weight times score.
        self._open: OrderedDict[str, tuple[float, int, float, float]] = OrderedDict()

    def add(self, cluster: str, x: float, weight: float, at: float) -> None:
        """Take one score of a cluster with its weight (above 0) and Unix time."""
        first, n, w, wx = self._open.get(cluster, (at, 0, 0.0, 0.0))
        self._open[cluster] = (first, n + 1, w + weight, wx + weight * x)

    def closed(self, now: float) -> list[ClusterMean]:
        """Remove the clusters that began an hour ago or earlier, and return them, the oldest first."""
        done = []
        while self._open:
            first, n, w, wx = next(iter(self._open.values()))
            if first + HOUR_S > now and len(self._open) <= MOST_OPEN:
                break
            self._open.popitem(last=False)
            done.append(ClusterMean(wx / w, w / n, first))
        return done


class RecentClusters:
    """Tells whether a cluster came within the last hour; remembers those, at most `MOST_OPEN`. Not thread-safe.

    Example:
        >>> recent = RecentClusters()
        >>> [recent.is_repeat(["question"], at) for at in (0.0, 60.0, 3_700.0)]
        [False, True, False]
    """

    def __init__(self) -> None:
        self._first: OrderedDict[str, float] = OrderedDict()

    def is_repeat(self, clusters: Sequence[str], at: float) -> bool:
        """Return whether one of the clusters began less than an hour before `at`, and note them if none did."""
        begun = (self._first.get(cluster) for cluster in clusters)
        if any(first is not None and at < first + HOUR_S for first in begun):
            return True
        for cluster in clusters:
            self._first.pop(cluster, None)
            self._first[cluster] = at
        while len(self._first) > MOST_OPEN or (self._first and next(iter(self._first.values())) + HOUR_S <= at):
            self._first.popitem(last=False)
        return False


class Clustered:
    """Makes of scores that are alike one value an hour. Not thread-safe; asks no clock.

    The scores of a party, a session or a user, are gathered for an hour. Of scores without one those that repeat a
    question or a trace of the last hour are left out.

    Example:
        >>> scores = Clustered()
        >>> scores.add(0.5, 1.0, 0.0, party=None, repeats=["a question"])
        [ClusterMean(x=0.5, weight=1.0, at=0.0)]
        >>> scores.add(0.9, 1.0, 60.0, party=None, repeats=["a question"])
        []
        >>> scores.add(0.9, 1.0, 60.0, party="ada", repeats=[]), len(scores.closed(3_660.0))
        ([], 1)
    """

    def __init__(self) -> None:
        self._parties = OpenClusters()
        self._recent = RecentClusters()

    def add(
        self, x: float, weight: float, at: float, *, party: str | None, repeats: Sequence[str]
    ) -> list[ClusterMean]:
        """Take one score with its weight (above 0) and Unix time; return what can be counted now.

        Args:
            x: the score.
            weight: 1 / inclusion probability.
            at: Unix seconds.
            party: whose scores it is gathered with.
            repeats: of which another score may come; not asked of a party's.
        """
        if party is not None:
            self._parties.add(party, x, weight, at)
            return self.closed(at)
        return [] if self._recent.is_repeat(repeats, at) else [ClusterMean(x, weight, at)]

    def closed(self, now: float) -> list[ClusterMean]:
        """Return the means of the parties that began an hour ago or earlier, the oldest first, and forget them."""
        return self._parties.closed(now)
