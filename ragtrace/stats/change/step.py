"""The step of a mean: whether it is worse of late than it was, how surely, and since when."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragtrace.stats.change.mean import TwoPeriods, change_place
from ragtrace.stats.change.slices import LEAST_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.stats.change.mean import Array, Mask, Worse
    from ragtrace.stats.change.slices import Slice
    from ragtrace.stats.intervals import Ends

_HOUR_S = 3_600.0
LENGTHS_S = tuple(hours * _HOUR_S for hours in (1.5, 3, 6, 12, 24, 48, 96, 168))
"""Lengths of the windows that are looked at; each ends with the last score."""
TOLERANCE = 0.02
"""Part of a metric's scale by which its mean may be worse without being called so."""
CERTAIN_P = 0.000577
"""One-sided p-value at which a mean is called worse: 3.25 standard errors beyond the tolerance."""
PART_P = 3.4e-6
"""The same for the mean of one part of the traffic, of which there are many: 4.5 standard errors."""
LEAST_OF_ALL = 0.05
"""Part of the scores from which on a part of the traffic is looked at by itself."""
_YOUNG = 8  # a history of fewer shortest windows is cut into parts instead
_LEAST_BLOCKS = 8
_LEAST_BEHIND = 10  # independent scores after an onset
_SURE = 3.0  # standard errors
_ROUNDS = 3
_LEAST_ERROR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Scores of one series in the order of their times, as arrays of one length.

    Attributes:
        at: Unix seconds.
        values: in any unit.
        weights: above 0.
        clusters: number of the cluster of each score, from 0.
        ends: lowest and highest score that there can be; None where there are no such.
    """

    at: Array
    values: Array
    weights: Array
    clusters: NDArray[np.intp]
    ends: Ends | None

    def __len__(self) -> int:
        """Return the number of scores."""
        return len(self.at)

    def only(self, mask: Mask) -> Timeline:
        """Return the scores where the mask is True."""
        return Timeline(
            at=self.at[mask],
            values=self.values[mask],
            weights=self.weights[mask],
            clusters=self.clusters[mask],
            ends=self.ends,
        )

    def split(self, since: float) -> TwoPeriods:
        """Return the scores before a time and those since then."""
        return TwoPeriods(
            values=self.values,
            weights=self.weights,
            clusters=self.clusters,
            is_window=self.at >= since,
            ends=self.ends,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of a mean.

    Attributes:
        since: Unix seconds of its onset: of the first score behind it.
        worsening: how much worse the mean of the surest window is than that before it.
        surety: standard errors by which it is worse than the tolerance; compares steps that are beyond any doubt.
        wander: variance by which means of such windows differ at any time.
        part: the part of the traffic whose mean this is; None = all.
        ended: Unix seconds of its end, where the mean is as before since; None for a change that lasts.
    """

    since: float
    worsening: float
    surety: float
    wander: float
    part: Slice | None = None
    ended: float | None = None

    @property
    def p(self) -> float:
        """One-sided p-value of "it is not worse by more than the tolerance"."""
        return 0.5 * math.erfc(self.surety / math.sqrt(2.0))

    @property
    def is_shown(self) -> bool:
        """Whether a change for the worse is shown that lasts."""
        return self.ended is None and self.is_sure

    @property
    def is_sure(self) -> bool:
        """Whether a change for the worse is shown, be it over or not."""
        return self.p <= (CERTAIN_P if self.part is None else PART_P)

    @property
    def rank(self) -> tuple[bool, float]:
        """Order of steps: one that is shown above one that is not, and the surer above the less sure."""
        return self.is_shown, self.surety


def surest_step(scores: Timeline, parts: Mapping[Slice, Mask], *, worse: Worse = -1) -> Step | None:
    """Return the step of all scores; where none is shown, the surest that is shown of a larger part of the traffic.

    Args:
        scores: of one series.
        parts: the scores of each part, True or False for each; those with less than `LEAST_OF_ALL` are left out.
        worse: sign of a change for the worse.

    Returns:
        The step of all scores where none is shown at all; None where there are too few, as `find_step`.
    """
    whole = find_step(scores, worse=worse)
    if whole is None or whole.is_shown:
        return whole
    everything, found = _Sums.of(scores, worse), []
    for part, mask in parts.items():
        if LEAST_OF_ALL * len(scores) <= mask.sum() < len(scores):
            step = find_step(scores.only(mask), worse=worse, last=everything.last)
            if step is not None:
                step = replace(step, part=part, wander=everything.wander(step.since))
                found += [step] if step.is_shown and everything.worsening(step.since) > 0.0 else []
    return max(found, key=lambda it: it.surety, default=whole)


def find_step(scores: Timeline, *, worse: Worse = -1, last: float | None = None) -> Step | None:
    """Return the likeliest step for the worse.

    Windows of 1.5 hours to 7 days that end with the last score are compared with all that is older, and the surest
    is taken. Two errors count: that of both means, and that by which the means of windows of this length differ in
    the time before. So a mean that wanders, or has weekends and bad hours, needs a larger change to count as worse.
    The onset is the likeliest place within twice the window. A change whose last quarter is as before is over, and
    gives way to one that lasts.

    Args:
        scores: of one series, or of a part of it.
        worse: sign of a change for the worse.
        last: Unix seconds of the last score of the series; None = that of the last one here.

    Returns:
        None where no window has 20 independent scores in it and before it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> at = np.arange(0.0, 10 * 86_400.0, 600.0)
        >>> scores = Timeline(
        ...     at=at,
        ...     values=rng.normal(0.8, 0.1, len(at)) - 0.1 * (at >= 9.5 * 86_400.0),
        ...     weights=np.ones(len(at)),
        ...     clusters=np.arange(len(at)),
        ...     ends=(0.0, 1.0),
        ... )
        >>> step = find_step(scores)
        >>> step.is_shown, round(step.since / 86_400.0, 1)
        (True, 9.5)
    """
    if not len(scores):
        return None
    sums = _Sums.of(scores, worse, last)
    found = [window for length in _lengths(sums) if (window := sums.window(sums.last - length)) is not None]
    if not found:
        return None
    steps = [sums.step(it) for it in sorted(found, key=lambda it: -it.surety)]
    lasting = next((it for it in steps if it.ended is None), steps[0])
    return steps[0] if steps[0].is_sure and not lasting.is_shown else lasting


def step_since(scores: Timeline, since: float, *, worse: Worse = -1) -> Step | None:
    """Return the step at a time that a person named; None without 20 independent scores on either side."""
    window = _Sums.of(scores, worse).window(since) if len(scores) else None
    if window is None:
        return None
    return Step(since=since, worsening=window.worsening, surety=window.surety, wander=window.wander)


def _lengths(sums: _Sums) -> Sequence[float]:
    """Return the lengths of the windows: those of `LENGTHS_S`, or parts of a history of a few hours."""
    history = sums.last - float(sums.scores.at[0])
    return LENGTHS_S if history >= _YOUNG * LENGTHS_S[0] else [history / 2**k for k in (4, 3, 2, 1)]


class _Window(NamedTuple):
    """A window that ends with the last score: how much worse its mean is than that of all before."""

    since: float
    worsening: float
    surety: float  # standard errors beyond the tolerance
    wander: float


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Running sums of a timeline that is looked at until a time, one row for each figure of `_Sample`."""

    scores: Timeline
    worse: Worse
    last: float
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, scores: Timeline, worse: Worse, last: float | None = None) -> _Sums:
        w, x = scores.weights, scores.values
        rows = np.stack([np.ones_like(w), w, w * w, w * x, w * x * x])
        sums = np.concatenate([np.zeros((5, 1)), np.cumsum(rows, axis=1)], axis=1)
        return cls(scores, worse, float(scores.at[-1]) if last is None else last, sums)

    def window(self, since: float) -> _Window | None:
        """Return the window since a time, None with too few scores in it or before it."""
        place = int(np.searchsorted(self.scores.at, since))
        sides = [self._error(side) for side in (slice(place), slice(place, None))]
        if min(clusters for _, clusters in sides) < LEAST_CLUSTERS:
            return None
        before, _ = self._sides(since)
        usual = self.wander(since)
        error = sides[0][0] + max(sides[1][0], before.variance / sides[1][1]) + usual
        ends = self.scores.ends
        tolerance = TOLERANCE * (1.0 if ends is None else ends[1] - ends[0])
        worsening = self.worsening(since)
        return _Window(since, worsening, (worsening - tolerance) / max(math.sqrt(error), _LEAST_ERROR), usual)

    def worsening(self, since: float) -> float:
        """Return how much worse the mean since a time is than that before it; there are scores on both sides."""
        before, window = self._sides(since)
        return self.worse * float(window.mean - before.mean)

    def step(self, window: _Window) -> Step:
        """Return the step of a window with its onset, and its end where it is over."""
        onset = self._change(self.last - 2.0 * (self.last - window.since), self.worse)
        since = window.since if onset is None else onset
        ended = None
        if not self._lasts(window):
            recovered = self._change(since, -self.worse)
            ended = float(self.scores.at[-1]) if recovered is None else recovered
        return Step(
            since=since, worsening=window.worsening, surety=window.surety, wander=window.wander, ended=ended
        )

    def _change(self, earliest: float, worse: Worse) -> float | None:
        """Return the likeliest time of a change since a time; None with too few independent scores after it."""
        at = self.scores.at
        first = int(np.searchsorted(at, earliest)) if worse != self.worse else 0
        values, weights = self.scores.values[first:], self.scores.weights[first:]
        places = np.flatnonzero(np.diff(at[first:]) > 0.0) + 1  # not among scores of one time
        places = places[at[first + places] >= earliest]
        place = change_place(values, weights, worse=worse, places=places)
        if place is None or self._error(slice(first + place, None))[1] < _LEAST_BEHIND:
            return None
        return float(at[first + place])

    def _lasts(self, window: _Window) -> bool:
        """Return whether the last quarter of a window is about as much worse as all of it, as far as it tells."""
        since = self.last - (self.last - window.since) / 4.0
        error, clusters = self._error(slice(int(np.searchsorted(self.scores.at, since)), None))
        if not clusters:  # a part that is gone
            return False
        if clusters < LEAST_CLUSTERS:
            return True
        before, _ = self._sides(window.since)
        _, tail = self._sides(since)
        left = self.worse * float(tail.mean - before.mean)
        error = max(error, before.variance / clusters)
        return left >= window.worsening / 2.0 or window.worsening - left <= _SURE * math.sqrt(error)

    def _sides(self, since: float) -> tuple[_Sample, _Sample]:
        place = int(np.searchsorted(self.scores.at, since))
        return _sample(self.sums[:, place]), _sample(self.sums[:, -1] - self.sums[:, place])

    def _error(self, side: slice) -> tuple[float, float]:
        """Return the variance of a mean, robust to clusters, and their number, less where weights differ."""
        w, x, clusters = self.scores.weights[side], self.scores.values[side], self.scores.clusters[side]
        n = float(np.count_nonzero(np.bincount(clusters)))
        if n < 2.0:
            return math.inf, n
        total = float(w.sum())
        sums = np.bincount(clusters, weights=w * (x - float((w * x).sum()) / total))
        variance = float((sums * sums).sum()) / total**2 * n / (n - 1.0)
        return variance, min(n, total**2 / float((w * w).sum()))

    def wander(self, since: float) -> float:
        """Return the variance by which means of windows as long as that since a time differed before it.

        That of chance is taken off. Blocks count by their precision. Where fewer than eight fit, blocks of half the
        length stand for them; for a window that a person named, and is shorter than all that are looked at, the
        shortest of those.
        """
        history, length_s = since - float(self.scores.at[0]), self.last - since
        if history <= 0.0:
            return 0.0
        while history < _LEAST_BLOCKS * length_s:
            length_s /= 2.0
        length_s = max(length_s, min(LENGTHS_S[0], history / (2 * _LEAST_BLOCKS)))
        before, _ = self._sides(since)
        edges = since - length_s * np.arange(int(history / length_s), -1, -1)
        blocks = _sample(np.diff(self.sums[:, np.searchsorted(self.scores.at, edges)], axis=1))
        own = blocks.n >= 2.0
        if not own.any():
            return 0.0
        within = before.variance / blocks.n_eff[own]
        beyond = (blocks.mean[own] - before.mean) ** 2 - within
        between, weights = 0.0, within**-2.0 if before.variance > 0.0 else np.ones_like(within)
        for _ in range(_ROUNDS):  # the more the blocks differ, the more alike they count
            between = max(float((weights * beyond).sum() / weights.sum()), 0.0)
            weights = (between + within + _LEAST_ERROR) ** -2.0
        blocks_eff = float(weights.sum()) ** 2 / float((weights * weights).sum())
        return between * (1.0 + 1.0 / blocks_eff)  # of one more window, and of the mean of the blocks


class _Sample(NamedTuple):
    """Number, effective number, mean and variance of some scores, or of many such samples at once."""

    n: Any
    n_eff: Any
    mean: Any
    variance: Any


def _sample(sums: NDArray[np.float64]) -> _Sample:
    n, w, w2, wx, wxx = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = wx / w
        return _Sample(n, w * w / w2, mean, np.maximum(wxx / w - mean * mean, 0.0))
