"""Rule F in numpy, from sums of slots: an independent reference of the PromQL, many services at once.

D is the drop of a window below its baseline, turned where lower is better. A window fires when D exceeds its tolerance and

    z = (D - 1 / n) / sqrt(max(S2, R2) + 1.5 T2) > sqrt(k^2 + 2 ln(watched series)).

S2 is the sampling variance, R2 the variance between hours, T2 the variance by which the service's own mean wanders.
Sums before the first slot are 0, so a young baseline is of the scores that exist, as in Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.expressions import S2_FLOOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragtrace_dashboards.config import Config
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

    @classmethod
    def of(cls, sums: Sums, arm: Arm, config: Config, *, is_down: bool = False, every: int = 1) -> Comparison:
        """Compare the window of an arm that ends at the slots' ends."""
        ago_s = config.day_window_s if arm.base == "day" else arm.window_s
        window, base = Window.of(sums, arm.window_s, every=every), Window.of(sums, config.baseline_s, ago_s, every)
        with np.errstate(divide="ignore", invalid="ignore"):
            enough = (window.n_eff >= config.min_n_eff) & (base.n_eff >= config.min_baseline_n_eff)
            rest = np.where(enough, 1.0, np.nan)
            drop = (window.mean - base.mean) if is_down else (base.mean - window.mean)
            s2 = base.s2 * (1 / window.n_eff + 1 / base.n_eff)
            r2 = _between_blocks(sums, arm, window, every) + base.s2 / base.n_eff
            return cls(drop * rest, s2 * rest, r2 * rest, rest / window.n_eff)

    def z(self, t2: Array | float) -> Array:
        """Return z, given the variance of the wander."""
        return (self.drop - self.one_score) / np.sqrt(np.fmax(self.s2, self.r2) + WANDER_FACTOR * t2)


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

    def fires(self, config: Config, series: int = 1) -> NDArray[np.bool_]:
        """Return whether any window fires, where so many series are watched."""
        return np.logical_or.reduce([self._fires(arm, config, series) for arm in arms(config)])

    def _fires(self, arm: Arm, config: Config, series: int) -> NDArray[np.bool_]:
        """Compare one window with its limit; a window of several days is silent once the last day is back."""
        found, limit = self.found[arm.name], np.sqrt(arm.z**2 + 2 * np.log(series))
        is_beyond = (found.drop > arm.tolerance) & (found.z(self.t2[arm.name]) > limit)
        if arm.window_s <= config.day_window_s:
            return is_beyond
        return is_beyond & ~(self.found["day"].drop < config.tolerance / 2)


def wanders(found: dict[str, Comparison], config: Config, every: int = 1) -> dict[str, Array]:
    """Return T2 of each window, learnt from its earlier comparisons; long windows take at least the day's, capped."""
    own = {arm.name: _learnt(found[arm.name], config, arm.wander_cap, every) for arm in arms(config)}
    of_day = np.minimum(own["day"], config.wander_cap**2)
    return own | {name: np.maximum(own[name], of_day) for name in ("days", "week")}


def limits(z_of_series: list[dict[str, Array]], config: Config) -> dict[str, Array]:
    """Return the z at which each window fires: the series that are compared in a slow window are counted."""
    slow = [[it[name] for name in ("day", "days", "week")] for it in z_of_series]
    compared = (~np.isnan(slow)).any(axis=1).sum(axis=0)
    return {arm.name: np.sqrt(arm.z**2 + 2 * np.log(np.maximum(compared, 1))) for arm in arms(config)}


def _learnt(found: Comparison, config: Config, cap: float, every: int) -> Array:
    """Average D^2 - S2 over the past, shrink it to the prior, and bound it: half of the prior, cap or times S2."""
    readings = found.drop**2 - found.s2
    has = ~np.isnan(readings)
    prior, step_s = config.wander_prior**2, every * SLOT_S
    last = np.arange(readings.shape[-1]) - config.wander_rest_s // step_s + 1  # the reading of that moment counts
    first = last - config.wander_s // step_s
    count, total = (_between(_running(it), first, last) for it in (has.astype(float), np.where(has, readings, 0.0)))
    weight = config.wander_weight_s / step_s
    most = np.fmax(cap**2, config.wander_sampling * found.s2)
    return np.clip((total + weight * prior) / (count + weight), config.wander_floor * prior, most)


def _between_blocks(sums: Sums, arm: Arm, window: Window, every: int) -> Array:
    """Return the variance of a mean from the spread of whole blocks of the clock, the last ones that ended."""
    length = arm.block_s // SLOT_S
    w, wx = (np.diff(it[..., ::length]) for it in (sums.w, sums.wx))
    last = sums.ends(every) // length
    first = last - arm.window_s // arm.block_s
    w2, wwx, wx2, weight = (_between(_running(it), first, last) for it in (w**2, w * wx, wx**2, w))
    squares = np.maximum(wx2 - 2 * window.mean * wwx + window.mean**2 * w2, 0)
    return squares / (window.w * weight)


def _running(values: Array) -> Array:
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _increase(running: Array, ends: Ends, length_s: int) -> Array:
    return _between(running, ends - length_s // SLOT_S, ends)


def _between(running: Array, first: Ends, last: Ends) -> Array:
    return running[..., np.maximum(last, 0)] - running[..., np.maximum(first, 0)]
