"""Rule F in numpy, from sums of slots: an independent reference of the PromQL, many worlds at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.expressions import S2_FLOOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

    Array = NDArray[np.float64]

SLOT_S = 900
"""Length of a slot; a window is a whole number of them."""


@dataclass(frozen=True)
class Sums:
    """Cumulative sums at the slots' ends, time last, one more than slots: the first is 0."""

    w: Array
    wx: Array
    w2: Array
    w2x: Array
    w2x2: Array

    @classmethod
    def of_atoms(cls, counts: NDArray[np.int64], atoms: Array) -> Sums:
        """Add up scores of weight 1, given as counts of each atom: time, then atom last."""
        n, x, x2 = (_running(counts @ power) for power in (np.ones_like(atoms), atoms, atoms**2))
        return cls(w=n, wx=x, w2=n, w2x=x, w2x2=x2)

    @classmethod
    def of_scores(cls, slots: list[list[tuple[float, float]]]) -> Sums:
        """Add up (score, weight) pairs of each slot."""
        x, w = (np.array([it[part] for slot in slots for it in slot]) for part in (0, 1))
        ends = np.cumsum([0, *map(len, slots)])
        return cls(*(_running(it)[ends] for it in (w, w * x, w**2, w**2 * x, (w * x) ** 2)))


@dataclass(frozen=True)
class Window:
    """Statistics of a window at each slot's end: nan where it is empty or has not begun."""

    mean: Array
    n_eff: Array
    s2: Array

    @classmethod
    def of(cls, sums: Sums, length_s: int, ago_s: int = 0) -> Window:
        """Look at the window that ended `ago_s` before each end of a slot."""
        w, wx, w2, w2x, w2x2 = (
            _increase(it, length_s, ago_s) for it in (sums.w, sums.wx, sums.w2, sums.w2x, sums.w2x2)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = wx / w
            s2 = np.maximum((w2x2 - 2 * mean * w2x + mean**2 * w2) / w2, S2_FLOOR)
            return cls(mean, w**2 / w2, s2)


def z_score(sums: Sums, arm: Arm, config: Config, *, is_down: bool = False) -> Array:
    """Return z of one arm at each slot's end, nan where a window holds too few."""
    now = Window.of(sums, arm.window_s)
    base = Window.of(sums, config.baseline_s, max(config.day_window_s, arm.window_s if arm.base != "day" else 0))
    fall = (now.mean - base.mean) if is_down else (base.mean - now.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (fall - arm.tolerance) / np.sqrt(base.s2 * (1 / now.n_eff + 1 / base.n_eff))
        enough = (now.n_eff >= config.min_n_eff) & (base.n_eff >= config.min_baseline_n_eff)
    return np.where(enough, z, np.nan)


def fires(sums: Sums, config: Config, *, is_down: bool = False) -> NDArray[np.bool_]:
    """Return whether any arm of rule F is beyond its z at each slot's end."""
    found = np.zeros(sums.w.shape, dtype=bool)
    for arm in arms(config):
        found |= z_score(sums, arm, config, is_down=is_down) > arm.z
    return found


def _running(values: Array) -> Array:
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _increase(running: Array, length_s: int, ago_s: int) -> Array:
    length, ago = length_s // SLOT_S, ago_s // SLOT_S
    found = np.full_like(running, np.nan, dtype=float)
    size = running.shape[-1]
    found[..., ago + length :] = running[..., length : size - ago] - running[..., : size - ago - length]
    return found
