"""Worlds in which the judge, the system, both or nobody changed, beside the anchors and the drift rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragtrace.stats import AnchorPair, JudgeChange, judge_change
from ragtrace_dashboards import Config, arms
from tests.monitoring.culprits import Culprit, Drop, culprit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Kind = Literal["judge", "system", "both", "none"]
Noise = Literal["none", "flips", "temperature"]
Change = Literal["shift", "part", "mixed"]

ATOMS = np.array([0, 0.25, 0.33, 0.5, 0.6, 0.67, 0.75, 0.8, 1.0])
CHANCES = np.array([0.03, 0.02, 0.02, 0.03, 0.02, 0.02, 0.02, 0.02, 0.82])
EDGES = (0.25, 0.5, 0.75, 0.999)
RUNS = 20_000
BASE, BEFORE, AFTER = 14 * 24, 50 * 24, 8 * 24  # hours
WANDER = 0.006  # of the daily mean, AR(1) at .5
S2_FLOOR = 0.02
CONFIG = Config()


@dataclass(frozen=True, kw_only=True)
class World:
    """One service and its judge.

    Attributes:
        kind: what changes, at a random hour of day 50.
        change: how the judge changes: all scores lower; part of the answers judged strictly; that, and low scores
            judged loosely.
        size: by how much each change lowers the mean.
        noise: how one judge's scores of one run differ.
        volume: scores a day.
        anchors: number of anchors.
        repeats: reference scores of each.
    """

    kind: Kind
    seed: int
    change: Change = "shift"
    size: float = 0.07
    noise: Noise = "flips"
    volume: int = 1_000
    anchors: int = 200
    repeats: int = 3


def noisy(rng: np.random.Generator, scores: Array, noise: Noise) -> Array:
    """Score runs once, whose true scores are given."""
    if noise == "flips":
        moved = rng.choice([-0.5, -0.25, 0.25, 0.5], scores.shape) * (rng.random(scores.shape) < 0.08)
        return np.clip(scores + moved, 0.0, 1.0)
    if noise == "temperature":
        return np.clip(scores + 0.1 * rng.standard_normal(scores.shape), 0.0, 1.0)
    return scores.copy()


def judged_anew(scores: Array, keys: Array, change: Change, size: float) -> Array:
    """Score the same runs by the changed judge; `keys` in [0, 1) say which answers it is strict about."""
    if change == "shift":
        return np.clip(scores - size, 0.0, 1.0)
    low = np.where(scores < 0.7, np.minimum(scores + 0.2, 1.0), scores) if change == "mixed" else scores
    share = (size + float((low - scores).mean())) / (0.6 * float(scores.mean()))
    return np.where((keys < share) & ((scores >= 0.7) | (change == "part")), 0.4 * scores, low)


class Anchors:
    """A set drawn over bands of scores, its reference, and its rounds: a day each, and one at once on demand."""

    def __init__(self, rng: np.random.Generator, world: World, runs: Array, keys: Array, changed_h: float) -> None:
        first = np.digitize(noisy(rng, runs, world.noise), EDGES)
        shares = np.bincount(first, minlength=5) / len(runs)
        counts = np.round(world.anchors * (0.75 * shares + 0.25 * (shares > 0) / (shares > 0).sum())).astype(int)
        drawn = [rng.choice(np.flatnonzero(first == band), counts[band], replace=False) for band in range(5)]
        chosen = rng.permutation(np.concatenate(drawn))
        self._bands, self._shares = first[chosen], shares
        self._old = runs[chosen]
        is_judge = world.kind in {"judge", "both"}
        after = judged_anew(runs, keys, world.change, world.size) if is_judge else runs
        self._new = after[chosen]
        self._reference = np.array([noisy(rng, self._old, world.noise) for _ in range(world.repeats)]).T
        self._places = np.arange(len(chosen)) / len(chosen) * 24.0
        self._changed_h, self._noise, self._seed = changed_h, world.noise, world.seed

    def change(self, now_h: float, hurried_h: float | None = None) -> JudgeChange | None:
        """Compare each anchor's latest score with its reference."""
        last = np.floor((now_h - self._places) / 24.0) * 24.0 + self._places
        if hurried_h is not None and now_h >= hurried_h + 1.0:
            last = np.maximum(last, hurried_h)
        rng = np.random.default_rng([self._seed, int(now_h)])
        now = noisy(rng, np.where(last >= self._changed_h, self._new, self._old), self._noise)
        columns = zip(self._bands, self._reference, now, strict=True)
        return judge_change([AnchorPair(int(b), float(self._shares[b]), tuple(r), float(x)) for b, r, x in columns])


class Traffic:
    """Sums of scores by hour, and the drift rule over them."""

    def __init__(self, rng: np.random.Generator, world: World, runs: Array, keys: Array, changed_h: int) -> None:
        bad_share = world.size / (float(runs.mean()) - 0.25)
        bad = np.where(rng.random(RUNS) < bad_share, rng.choice([0.0, 0.25, 0.5], RUNS), runs)
        after = bad if world.kind in {"system", "both"} else runs
        if world.kind in {"judge", "both"}:
            after = judged_anew(after, keys, world.change, world.size)
        scored = [noisy(rng, it, world.noise) for it in (runs, after)]
        hours = np.arange(BEFORE + AFTER)
        is_after = hours >= changed_h
        rate = world.volume / 24.0 * (1.0 + 0.75 * np.sin(2 * np.pi * (hours % 24 - 9) / 24.0))
        n = rng.poisson(rate).astype(float)
        wander = np.zeros(len(hours) // 24)
        for day in range(1, len(wander)):
            wander[day] = 0.5 * wander[day - 1] + rng.normal(0.0, WANDER * np.sqrt(0.75))
        mean = np.where(is_after, scored[1].mean(), scored[0].mean()) + np.repeat(wander, 24)
        spread = np.where(is_after, scored[1].std(), scored[0].std())
        x = n * mean + rng.standard_normal(len(hours)) * spread * np.sqrt(n)
        self.s2 = max(S2_FLOOR, float(scored[0].var()))
        self._n, self._x = (np.concatenate([[0.0], np.cumsum(it)]) for it in (n, x))
        self._wander: dict[int, float] = {}

    def drop(self, now: int) -> Drop:
        """Measure the drop as the recording rules do."""
        (day, day_error), (fast, fast_error) = self._arm(now, 24), self._arm(now, 6)
        late, early = self._window(now, 3), self._window(now - 3, 3)
        error = np.sqrt(self.s2 * (1.0 / late[0] + 1.0 / early[0]) + 1.5 * 0.01**2)
        return Drop(
            day=day,
            day_error=day_error,
            fast=fast,
            fast_error=fast_error,
            rise=early[1] - late[1],
            rise_error=float(error),
        )

    def fires(self, now: int) -> bool:
        """Whether a window of the drift rule fires."""
        for arm in arms(CONFIG):
            hours = arm.window_s // 3_600
            drop, error = self._arm(now, hours)
            n = self._window(now, hours)[0]
            if n >= CONFIG.min_n_eff and drop > max(arm.tolerance, 1.0 / n + arm.z * error):
                return True
        return False

    def _window(self, end: int, hours: int) -> tuple[float, float]:
        n = float(self._n[end] - self._n[end - hours])
        return n, float(self._x[end] - self._x[end - hours]) / max(n, 1.0)

    def _arm(self, now: int, hours: int) -> tuple[float, float]:
        n, mean = self._window(now, hours)
        base_n, base = self._window(now - max(hours, 24), BASE)
        parts = [self._window(hour, 1) for hour in range(now - hours + 1, now + 1)]
        r2 = sum((k * (m - mean)) ** 2 for k, m in parts) / max(n, 1.0) ** 2 + self.s2 / base_n
        s2 = self.s2 * (1.0 / max(n, 1.0) + 1.0 / base_n)
        return base - mean, float(np.sqrt(max(s2, r2) + 1.5 * self._t2(hours)))

    def _t2(self, hours: int) -> float:
        """Measure the wander of 28 days before the change, shrunk and bounded as the rule says."""
        if hours not in self._wander:
            squares, prior = [], min(CONFIG.wander_prior**2, self.s2 / CONFIG.wander_scores)
            for day in range(28):
                end = BEFORE - 4 * 24 - day * 24
                n, mean = self._window(end, hours)
                base_n, base = self._window(end - max(hours, 24), min(BASE, end - max(hours, 24)))
                squares.append((base - mean) ** 2 - self.s2 * (1.0 / max(n, 1.0) + 1.0 / base_n))
            self._wander[hours] = min(max((sum(squares) + 7 * prior) / 35.0, prior), CONFIG.wander_cap**2)
        if hours == 72:
            return max(self._wander[hours], self._t2(24))
        return self._wander[hours]


def named(world: World, most_h: int = 24) -> list[tuple[int, Culprit]]:
    """Return (hours since the change, culprit) from the alert on; nothing where no alert fires.

    Every hour for six hours, and every three then. A drop of 2.5 errors makes the scorer rescore the whole set at once, within the hour.
    """
    return list(_named(world, most_h))


def _named(world: World, most_h: int) -> Iterator[tuple[int, Culprit]]:
    rng = np.random.default_rng(world.seed)
    runs, keys = rng.choice(ATOMS, RUNS, p=CHANCES), rng.random(RUNS)
    changed = BEFORE + int(rng.integers(0, 24))
    traffic = Traffic(rng, world, runs, keys, changed)
    anchors = Anchors(rng, world, runs, keys, changed)
    hurried: int | None = None
    fired: int | None = None
    for now in range(changed + 1, changed + AFTER - 48):
        if fired is None and hurried is None:
            drop = traffic.drop(now)
            if drop.value > max(0.02, 2.5 * drop.error):
                hurried = now
        if fired is None and traffic.fires(now):
            fired = now
        if fired is not None and (now - fired <= 6 or (now - fired) % 3 == 0):
            is_rescoring = hurried is not None and now < hurried + 1
            change = None if is_rescoring else anchors.change(now, hurried)
            yield now - changed, culprit(traffic.drop(now), change)
            if now - fired >= most_h:
                return
