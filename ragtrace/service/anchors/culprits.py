"""Names the culprit of a drop in the process: the last day of each series beside the judge's anchors."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from ragtrace.semconv import SCORE_VARIANCE_FLOOR
from ragtrace.stats.culprit import Drop, culprit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.model import SeriesKey
    from ragtrace.service.anchors.monitor import AnchorMonitor
    from ragtrace.stats.culprit import Culprit
    from ragtrace.stats.drift import Baseline

_log = logging.getLogger("ragtrace")
_SLOT_S = 900.0
_DAY, _FAST, _HALF = 96, 24, 12  # slots of a day, of six hours, of three
_WANDER = 1.5 * 0.01**2  # variance of a service's mean from day to day, as the alerts assume before they know it
_LEAST = 30.0  # effective scores of a window
_SUSPECT_ERRORS = 2.5


class RecentScores:
    """Weighted sums of a series in quarters of an hour, for a day. Not thread-safe.

    Example:
        >>> from ragtrace.stats.drift import Baseline
        >>> recent = RecentScores()
        >>> for second in range(400):
        ...     recent.add(0.8, 1.0, at=1_000.0 + second)
        >>> found = recent.drop(Baseline(mean=0.9, sd=0.2, n=500), now=1_400.0)
        >>> round(found.day, 3), found.is_young
        (0.1, False)
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

    def drop(self, baseline: Baseline, now: float) -> Drop | None:
        """Return the drop from a baseline; None with fewer than 30 effective scores in the day."""
        day, fast = self._window(now, _DAY), self._window(now, _FAST)
        if _effective(day) < _LEAST:
            return None
        s2 = max(baseline.sd**2, SCORE_VARIANCE_FLOOR)
        day_error = _error(day, s2, baseline)
        if _effective(fast) < _LEAST:
            fast = day
        late, early = self._window(now, _HALF), self._window(now, _HALF, ago=_HALF)
        has_halves = bool(late) and bool(early)
        return Drop(
            day=baseline.mean - _mean(day),
            day_error=day_error,
            fast=baseline.mean - _mean(fast),
            fast_error=_error(fast, s2, baseline),
            rise=_mean(early) - _mean(late) if has_halves else 0.0,
            rise_error=math.sqrt(s2 / _effective(late) + s2 / _effective(early) + _WANDER)
            if has_halves
            else math.inf,
        )

    def _window(self, now: float, slots: int, ago: int = 0) -> list[list[float]]:
        last = now // _SLOT_S - ago
        return [slot for slot in self._slots if last - slots < slot[0] <= last]


class Culprits:
    """Watches the last day of each series, asks for a round of the anchors, and names culprits of alarms.

    All belongs to the scorer's thread.

    Args:
        anchors: what the anchors show.
        tolerance: the drop that is not worth a round, in score units.
        clock: Unix seconds.
    """

    def __init__(
        self, anchors: AnchorMonitor, *, tolerance: float, clock: Callable[[], float] | None = None
    ) -> None:
        self.anchors = anchors
        self._tolerance = tolerance
        self._clock = clock or time.time
        self._recent: defaultdict[SeriesKey, RecentScores] = defaultdict(RecentScores)
        self._named: dict[SeriesKey, Culprit] = {}

    def add(self, key: SeriesKey, x: float, weight: float, at: float) -> None:
        """Take one score, turned so that higher is better."""
        self._recent[key].add(x, weight, at)

    def of(self, key: SeriesKey, baseline: Baseline | None, *, is_down: bool) -> Culprit:
        """Return the culprit of a series that fell below its baseline, which is turned as its scores are."""
        drop = self._drop(key, baseline)
        return "unknown" if drop is None else culprit(drop, self.anchors.change_of(key), is_down=is_down)

    def look(self, watches: Iterable[tuple[SeriesKey, Baseline, bool, bool]]) -> None:
        """Read the anchors anew, ask for a round where a mean seems to fall, and log culprits that changed.

        Args:
            watches: key of the series, turned baseline, whether lower is better, and whether it alarms.

        Raises:
            sqlite3.Error: the store's file cannot be read or written.
        """
        if not self.anchors.refresh():
            return
        is_falling = False
        for key, baseline, is_down, is_alarm in watches:
            drop = self._drop(key, baseline)
            if drop is None:
                continue
            is_falling |= is_alarm or drop.value > max(self._tolerance, _SUSPECT_ERRORS * drop.error)
            self._name(key, drop, is_down=is_down, is_alarm=is_alarm)
        if is_falling:
            self.anchors.hurry()

    def _name(self, key: SeriesKey, drop: Drop, *, is_down: bool, is_alarm: bool) -> None:
        if not is_alarm:
            self._named.pop(key, None)
            return
        change = self.anchors.change_of(key)
        word = culprit(drop, change, is_down=is_down)
        if change is None or word == self._named.get(key, "unknown"):
            return
        self._named[key] = word
        _log.warning(
            "drift culprit: %s of %s: %s; its mean fell by %.3f, and the judge's scores of the same %d runs changed"
            " by %+.3f (%.3f to %.3f)",
            key.metric,
            key.workflow,
            word,
            drop.value,
            change.n,
            change.mean,
            change.low,
            change.high,
        )

    def _drop(self, key: SeriesKey, baseline: Baseline | None) -> Drop | None:
        recent = self._recent.get(key)
        return None if recent is None or baseline is None else recent.drop(baseline, self._clock())


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
