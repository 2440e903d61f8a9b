"""Weighted sums of scores over a sliding window, in plain Python and bounded memory."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from ragtrace.semconv import SCORE_VARIANCE_FLOOR

_SLOTS = 60
_Z95 = 1.96
_WIDE = 2.0  # the range of a cosine


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMean:
    """Weighted mean, its 95 % bounds, and the weighted share that passes (None without a threshold).

    Example:
        >>> WindowMean(mean=0.9, low=0.8, high=1.0, passed=None).mean
        0.9
    """

    mean: float
    low: float
    high: float
    passed: float | None


class Window:
    """One series of scores over the last `length_s` seconds, kept as sums in 60 slots.

    A score leaves between 59 and 60 sixtieths of the window after it came. Not thread-safe.

    Args:
        length_s: seconds.
        low: lowest value a score can have.
        high: highest value.

    Example:
        >>> window = Window(3_600.0, 0.0, 1.0)
        >>> window.add(0.0, 1.0, 2.0, is_pass=True)
        >>> window.add(1.0, 0.4, 2.0, is_pass=False)
        >>> window.read(2.0).mean
        0.7
        >>> window.read(4_000.0) is None
        True
    """

    __slots__ = ("_high", "_low", "_slot_s", "_slots")

    def __init__(self, length_s: float, low: float, high: float) -> None:
        self._slot_s = length_s / _SLOTS
        self._low = low
        self._high = high
        # Each: slot number, w, wx, w2, w2x, w2x2, w with a threshold, w that pass.
        self._slots: deque[list[float]] = deque(maxlen=_SLOTS)

    def add(self, now: float, value: float, weight: float, *, is_pass: bool | None) -> None:
        """Add one score at `now` (monotonic seconds); `is_pass` None for a metric without a threshold."""
        number = now // self._slot_s
        if not self._slots or self._slots[-1][0] < number:
            self._slots.append([number, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        slot = self._slots[-1]
        square = weight * weight
        parts = (
            weight, weight * value, square, square * value, square * value * value,
            0.0 if is_pass is None else weight, weight if is_pass else 0.0,
        )  # fmt: skip
        for place, part in enumerate(parts, start=1):
            slot[place] += part

    def read(self, now: float) -> WindowMean | None:
        """Return mean and bounds at `now`, None when the window is empty.

        The variance of the mean is (W2X2 - 2 m W2X + m^2 W2) / W^2, with sums of w, w x, w^2, w^2 x and w^2 x^2 and
        their mean m. The variance of one score is floored at .02 of the squared range, since a few equal scores
        prove little. A range wider than 2 says nothing of the values: of (0, 2000) a mean of 3 would have bounds of
        0 and 557. There the mean square of the scores takes its place, where it is less.
        """
        oldest = now // self._slot_s - _SLOTS + 1
        while self._slots and self._slots[0][0] < oldest:
            self._slots.popleft()
        if not self._slots:
            return None
        w, wx, w2, w2x, w2x2, w_rated, w_passed = (
            sum(column) for column in list(zip(*self._slots, strict=True))[1:]
        )
        mean = wx / w
        effective_n = w * w / w2
        spread = effective_n * max(w2x2 - 2.0 * mean * w2x + mean * mean * w2, 0.0) / (w * w)
        square = (self._high - self._low) ** 2
        if self._high - self._low > _WIDE:
            square = min(square, w2x2 / w2)
        floor = SCORE_VARIANCE_FLOOR * square
        half = _Z95 * math.sqrt(max(spread, floor) / effective_n)
        return WindowMean(
            mean=mean,
            low=max(mean - half, self._low),
            high=min(mean + half, self._high),
            passed=w_passed / w_rated if w_rated else None,
        )
