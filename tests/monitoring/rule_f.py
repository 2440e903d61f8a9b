"""Rule F in numpy, from sums of slots: an independent reference of the PromQL, many services at once.

D is the drop of a window below its baseline, turned where lower is better. A window fires when

    D > max(tolerance, 1 / n + sqrt(k^2 + 2 ln(watched series)) error), error = sqrt(max(S2, R2) + 1.5 T2).

S2 is the sampling variance, R2 the variance between hours, T2 the variance by which the service's own mean wanders.
A fall pages when the shortest window fires and D exceeds `fall`.
Sums before the first slot are 0, so a young baseline is of the scores that exist, as in Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ragtrace_dashboards import arms
from ragtrace_dashboards.expressions import S2_FLOOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragtrace_dashboards import Config
    from ragtrace_dashboards.drift import Arm

    Array = NDArray[np.float64]
    Ends = NDArray[np.int64]

SLOT_S: Final = 900
"""Length of a slot in seconds; windows and blocks are whole numbers of slots."""
WANDER_FACTOR: Final = 1.5


@dataclass(frozen=True)
class Sums:
    """Cumulative sums at the slots' ends, time last, one more than slots: the first is 0."""

    w: Array
    wx: Array
    w2: Array
    w2x: Array
    w2x2: Array

    @classmethod
    def of_increments(cls, w: Array, wx: Array, w2: Array, w2x: Array, w2x2: Array) -> Sums:
        """Add up what each slot adds to the counters."""
        return cls(*(_running(it) for it in (w, wx, w2, w2x, w2x2)))

    @classmethod
    def of_scores(cls, slots: list[list[tuple[float, float]]]) -> Sums:
        """Add up (score, weight) pairs of each slot, each a cluster of its own."""
        x, w = (np.array([it[part] for slot in slots for it in slot]) for part in (0, 1))
        ends = np.cumsum([0, *map(len, slots)])
        return cls(*(_running(it)[ends] for it in (w, w * x, w**2, w**2 * x, (w * x) ** 2)))

    def ends(self, every: int = 1) -> Ends:
        """Return the places of every so many slots' ends."""
        return np.arange(0, self.w.shape[-1], every)


@dataclass(frozen=True)
class Window:
    """Statistics of a window at some slots' ends: nan where it is empty."""

    w: Array
    mean: Array
    n_eff: Array
    s2: Array

    @classmethod
    def of(cls, sums: Sums, length_s: int, ago_s: int = 0, every: int = 1) -> Window:
        """Look at the window that ended `ago_s` before the ends of the slots."""
        ends = sums.ends(every) - ago_s // SLOT_S
        w, wx, w2, w2x, w2x2 = (
            _increase(it, ends, length_s) for it in (sums.w, sums.wx, sums.w2, sums.w2x, sums.w2x2)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = wx / w
            s2 = np.maximum((w2x2 - 2 * mean * w2x + mean**2 * w2) / w2, S2_FLOOR)
            return cls(w, mean, w**2 / w2, s2)


@dataclass(frozen=True)
class Comparison:
    """A window against its baseline at some slots' ends: nan where one of them holds too few scores."""

    drop: Array
    s2: Array
    r2: Array
    one_score: Array
    """1 / effective number of scores in the window."""
    of_score: Array
    """Variance of one score in the baseline."""

    @classmethod
    def of(cls, sums: Sums, arm: Arm, config: Config, *, is_down: bool = False, every: int = 1) -> Comparison:
        """Compare the window of an arm that ends at the slots' ends."""
        ago_s = config.baseline_ends_s[arm.base]
        window, base = Window.of(sums, arm.window_s, every=every), Window.of(sums, config.baseline_s, ago_s, every)
        with np.errstate(divide="ignore", invalid="ignore"):
            enough = (window.n_eff >= config.min_n_eff) & (base.n_eff >= config.min_baseline_n_eff)
            rest = np.where(enough, 1.0, np.nan)
            drop = (window.mean - base.mean) if is_down else (base.mean - window.mean)
            s2 = base.s2 * (1 / window.n_eff + 1 / base.n_eff)
            r2 = _between_blocks(sums, arm, window, every) + base.s2 / base.n_eff
            return cls(drop * rest, s2 * rest, r2 * rest, rest / window.n_eff, base.s2 * rest)

    def error(self, t2: Array | float) -> Array:
        """Return the standard error of the drop, given the variance of the wander."""
        return np.sqrt(np.fmax(self.s2, self.r2) + WANDER_FACTOR * t2)

    def limit(self, arm: Arm, t2: Array | float, series: Array | float = 1) -> Array:
        """Return the drop at which the window fires, where so many series are watched."""
        errors = np.sqrt(arm.z**2 + 2 * np.log(series))
        return np.maximum(arm.tolerance, self.one_score + errors * self.error(t2))


@dataclass(frozen=True)
class Readings:
    """All windows of rule F at some slots' ends, by the names of their arms."""

    found: dict[str, Comparison]
    t2: dict[str, Array]

    @classmethod
    def of(cls, sums: Sums, config: Config, *, is_down: bool = False, every: int = 1) -> Readings:
        """Compare each window with its baseline, and learn the wander."""
        found = {arm.name: Comparison.of(sums, arm, config, is_down=is_down, every=every) for arm in arms(config)}
        return cls(found, wanders(found, config, every))

    def fires(self, config: Config, series: Array | float = 1) -> NDArray[np.bool_]:
        """Return whether any window fires, where so many series are watched."""
        return np.logical_or.reduce([self._fires(arm, config, series) for arm in arms(config)])

    def falls(self, config: Config, series: Array | float = 1) -> NDArray[np.bool_]:
        """Return whether a fall pages."""
        (fast,) = (arm for arm in arms(config) if arm.name == "fast")
        return self._fires(fast, config, series) & (self.found["fast"].drop > config.fall)

    def _fires(self, arm: Arm, config: Config, series: Array | float) -> NDArray[np.bool_]:
        """Compare one window with its limit; the week is silent once the last day is back."""
        found = self.found[arm.name]
        is_beyond = found.drop > found.limit(arm, self.t2[arm.name], series)
        if arm.window_s <= config.day_window_s:
            return is_beyond
        return is_beyond & ~(self.found["day"].drop < config.tolerance / 2)


def wanders(found: dict[str, Comparison], config: Config, every: int = 1) -> dict[str, Array]:
    """Return T2 of each window, learnt from its own earlier comparisons."""
    return {arm.name: _learnt(found[arm.name], config, arm.wander_cap, every) for arm in arms(config)}


def compared(found: list[dict[str, Comparison]]) -> Array:
    """Return how many series are compared in the windows of a day and a week, at least 1."""
    slow = [[it[name].drop for name in ("day", "week")] for it in found]
    return np.maximum((~np.isnan(slow)).any(axis=1).sum(axis=0), 1)


def _learnt(found: Comparison, config: Config, cap: float, every: int) -> Array:
    """Average D^2 - S2 over the past, shrink it to the prior, and bound it: at least the prior, at most cap or times S2.

    The prior is at most the sampling variance of `wander_scores` scores, so a metric near 0 or 1 has a smaller one.
    """
    readings = found.drop**2 - found.s2
    has = ~np.isnan(readings)
    prior, step_s = np.fmin(found.of_score / config.wander_scores, config.wander_prior**2), every * SLOT_S
    last = np.arange(readings.shape[-1]) - config.wander_rest_s // step_s + 1  # the reading of that moment counts
    first = last - config.wander_s // step_s
    count, total = (_between(_running(it), first, last) for it in (has.astype(float), np.where(has, readings, 0.0)))
    weight = config.wander_weight_s / step_s
    most = np.fmax(cap**2, config.wander_sampling * found.s2)
    return np.fmin(np.fmax((total + weight * prior) / (count + weight), prior), most)


def _between_blocks(sums: Sums, arm: Arm, window: Window, every: int) -> Array:
    """Return the variance of a mean from the spread of whole blocks of the clock, the last ones that ended."""
    length = arm.block_s // SLOT_S
    w, wx = (np.diff(it[..., ::length]) for it in (sums.w, sums.wx))
    last = sums.ends(every) // length
    first = last - arm.window_s // arm.block_s
    w2, wwx, wx2, weight = (_between(_running(it), first, last) for it in (w**2, w * wx, wx**2, w))
    return np.maximum(wx2 - 2 * window.mean * wwx + window.mean**2 * w2, 0) / weight**2


def _running(values: Array) -> Array:
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _increase(running: Array, ends: Ends, length_s: int) -> Array:
    return _between(running, ends - length_s // SLOT_S, ends)


def _between(running: Array, first: Ends, last: Ends) -> Array:
    return running[..., np.maximum(last, 0)] - running[..., np.maximum(first, 0)]
