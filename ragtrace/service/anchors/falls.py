"""Has the anchors scored at once where a watched mean seems to fall."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from ragtrace.semconv import SCORE_VARIANCE_FLOOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.model import SeriesKey
    from ragtrace.service.anchors.monitor import AnchorMonitor
    from ragtrace.stats.baselines import Baseline

_SLOT_S = 900.0
_DAY, _FAST = 96, 24  # slots of a day, of six hours
_WANDER = 1.5 * 0.01**2  # variance of a service's mean from day to day, as the alerts assume before they know it
_LEAST = 30.0  # effective scores of a window
_SUSPECT_ERRORS = 2.5
_LEAST_FALL = 0.02
"""A fall that is not worth a round, in score units."""


class RecentScores:
    """Weighted sums of a series in quarters of an hour, for a day. Not thread-safe.

    Example:
        >>> from ragtrace.stats.baselines import Baseline
        >>> recent = RecentScores()
        >>> for second in range(400):
        ...     recent.add(0.8, 1.0, at=1_000.0 + second)
        >>> fall, error = recent.fall(Baseline(mean=0.9, sd=0.2, n=500), now=1_400.0)
        >>> round(fall, 3), fall > 2.5 * error
        (0.1, True)
    """

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: deque[list[float]] = deque(maxlen=_DAY)  # each: slot number, w, wx, w2

    def add(self, x: float, weight: float, at: float) -> None:
        """Take one score, turned so that higher is better; Unix seconds. One far behind the latest is left out."""
        number = at // _SLOT_S
        if not self._slots or number > self._slots[-1][0]:
            self._slots.append([number, 0.0, 0.0, 0.0])
        slot = next((it for it in reversed(self._slots) if it[0] <= number), None)
        if slot is not None:
            slot[1] += weight
            slot[2] += weight * x
            slot[3] += weight * weight

    def fall(self, baseline: Baseline, now: float) -> tuple[float, float] | None:
        """Return baseline mean minus recent mean with its standard error; None with fewer than 30 effective scores.

        The recent mean is that of the last day, or of the last six hours where these lie lower by more than their
        error: the day then holds scores from before the fall.
        """
        day, fast = self._window(now, _DAY), self._window(now, _FAST)
        if _effective(day) < _LEAST:
            return None
        if _effective(fast) < _LEAST:
            fast = day
        s2 = max(baseline.sd**2, SCORE_VARIANCE_FLOOR)
        fell, error = baseline.mean - _mean(fast), _error(fast, s2, baseline)
        fell_day = baseline.mean - _mean(day)
        return (fell, error) if fell - fell_day > error else (fell_day, _error(day, s2, baseline))

    def _window(self, now: float, slots: int) -> list[list[float]]:
        last = now // _SLOT_S
        return [slot for slot in self._slots if last - slots < slot[0] <= last]


class Falls:
    """Watches the last day of each series, and asks for a round of the anchors where a mean seems to fall.

    All belongs to the scorer's thread.

    Args:
        anchors: what the anchors show.
        clock: Unix seconds.
    """

    def __init__(self, anchors: AnchorMonitor, *, clock: Callable[[], float] | None = None) -> None:
        self.anchors = anchors
        self._clock = clock or time.time
        self._recent: defaultdict[SeriesKey, RecentScores] = defaultdict(RecentScores)

    def add(self, key: SeriesKey, x: float, weight: float, at: float) -> None:
        """Take one score, turned so that higher is better."""
        self._recent[key].add(x, weight, at)

    def look(self, baselines: Iterable[tuple[SeriesKey, Baseline]]) -> None:
        """Read the anchors anew, and ask for a round where a mean seems to fall.

        Args:
            baselines: of each series, turned as its scores are.

        Raises:
            sqlite3.Error: the store's file cannot be read or written.
        """
        if self.anchors.refresh() and any(self._seems_to_fall(*it) for it in baselines):
            self.anchors.hurry()

    def _seems_to_fall(self, key: SeriesKey, baseline: Baseline) -> bool:
        recent = self._recent.get(key)
        found = None if recent is None else recent.fall(baseline, self._clock())
        return found is not None and found[0] > max(_LEAST_FALL, _SUSPECT_ERRORS * found[1])


def _mean(slots: list[list[float]]) -> float:
    return math.fsum(slot[2] for slot in slots) / math.fsum(slot[1] for slot in slots)


def _effective(slots: list[list[float]]) -> float:
    return math.fsum(slot[1] for slot in slots) ** 2 / math.fsum(slot[3] for slot in slots) if slots else 0.0


def _error(slots: list[list[float]], s2: float, baseline: Baseline) -> float:
    """Return the standard error of a window's drop, from its scores or from its hours, whichever says more."""
    total, mean = math.fsum(slot[1] for slot in slots), _mean(slots)
    hours: defaultdict[float, float] = defaultdict(float)
    for number, w, wx, _ in slots:
        hours[number // 4] += wx - mean * w
    by_hours = math.fsum(x * x for x in hours.values()) / total**2 if len(hours) > 1 else 0.0
    return math.sqrt(max(s2 / _effective(slots), by_hours) + s2 / baseline.effective + _WANDER)
