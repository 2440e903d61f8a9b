"""Worlds of scores in which rule F is tried: a service's traffic, its level, and how its scores hang together.

Every world has traffic by hour of day and weekday. The rest is off by default: a mean that wanders from day to day
and within the day, weekends, releases, topics, sessions. None of these is a drop, so an alarm at one of them is
false. A drop is a share of bad answers that begins at a random time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ragtrace.telemetry import LIFETIME_S
from tests.monitoring.rule_f import SLOT_S, Sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HOUR: Final = 3_600 // SLOT_S
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
CLUSTER: Final = int(LIFETIME_S) // SLOT_S
"""Slots for which the counters know a question or a session."""
LEARNT: Final = 49
"""Days before the first look, of which the wander of the slow windows is learnt in full."""


@dataclass(frozen=True)
class Shape:
    """Values that a score takes, and how likely they are for a good and for a bad answer."""

    atoms: Array
    good: Array
    bad: Array

    @classmethod
    def of(cls, atoms: list[float], good: list[float], bad: list[float]) -> Shape:
        """Scale the chances to 1."""
        return cls(np.array(atoms), np.array(good) / sum(good), np.array(bad) / sum(bad))

    @property
    def good_mean(self) -> float:
        """Mean of good answers' scores."""
        return float(self.good @ self.atoms)

    def bad_share(self, below: float | Array) -> float | Array:
        """Return the share of bad answers at which the mean is so far below that of good ones."""
        return below / (self.good_mean - float(self.bad @ self.atoms))


def _beta(a: float, b: float, atoms: Array) -> list[float]:
    chances = atoms ** (a - 1) * (1 - atoms) ** (b - 1)
    return [float(it) for it in chances]


_TWENTY = (np.arange(20) + 0.5) / 20
NINE: Final = Shape.of(
    [0, 0.25, 0.33, 0.5, 0.6, 0.67, 0.75, 0.8, 1],
    [0.013, 0.016, 0.018, 0.022, 0.025, 0.027, 0.03, 0.029, 0.82],
    [0.27, 0.22, 0.18, 0.2, 0.06, 0.04, 0.03, 0, 0],
)
FIVE: Final = Shape.of([0, 0.25, 0.5, 0.67, 1], [0.025, 0.025, 0.04, 0.05, 0.86], [0.35, 0.25, 0.25, 0.1, 0.05])
BINARY: Final = Shape.of([0, 1], [0.08, 0.92], [0.7, 0.3])
NEAR_PERFECT: Final = Shape.of([0, 0.5, 0.8, 1], [0.005, 0.008, 0.005, 0.982], [0.4, 0.4, 0.1, 0.1])
SMOOTH: Final = Shape.of([float(it) for it in _TWENTY], _beta(11.5, 1, _TWENTY), _beta(4, 5, _TWENTY))
UNINVENTED: Final = Shape.of([0, 0.5, 0.67, 0.75, 1], [0.015, 0.016, 0.012, 0.012, 0.945], [0.3, 0.3, 0.2, 0.2, 0])
"""1 less the share of invented specifics: one answer of twenty has some. With them in another tenth it is .06 lower."""
MIDDLING: Final = Shape.of([0, 0.25, 0.5, 0.75, 1], [0.1, 0.1, 0.15, 0.15, 0.5], [0.4, 0.3, 0.2, 0.1, 0])


@dataclass(frozen=True)
class Scores:
    """Single scores of one metric of a service, in the order of their times.

    Attributes:
        at: seconds since the first slot began.
        values: the scores.
        weights: of each.
        clusters: number of the session or the question of each.
    """

    at: Array
    values: Array
    weights: Array
    clusters: NDArray[np.intp]


@dataclass(frozen=True)
class _Runs:
    """Runs that are scored, and the answers that they have: the runs of a session have one.

    Attributes:
        at: seconds since the first slot began.
        weights: of each run.
        clusters: number of the session or the question of each run.
        answers: number of the answer of each run.
        bad: how likely each answer is a bad one.
    """

    at: Array
    weights: Array
    clusters: NDArray[np.intp]
    answers: NDArray[np.intp]
    bad: Array


@dataclass(frozen=True, kw_only=True)
class World:
    """The process that scores come from.

    Attributes:
        shape: values of the scores.
        history: days before the first look.
        days: days of looking.
        wander: standard deviation of the true daily mean, AR(1).
        correlation: of the means of two following days.
        within: standard deviation of a mean that wanders from hour to hour, AR(1).
        within_hours: hours after which the correlation of that is 1 / e.
        of_day: amplitude of the mean's rhythm of the day.
        weekend: fall of the mean on weekends.
        release: change of the mean at a release, once a week, up or down.
        is_walk: releases add up; otherwise each sets the level anew.
        deploy: fall of the mean in the hour after a release.
        growth: factor of the traffic from a random time of the month on.
        topic_traffic: what a hot topic adds to the usual traffic, every four days.
        topic_bad: share of bad answers to it.
        topic_hours: how long it lasts.
        turns: runs of a session, all with one score.
        lags: slots between two turns; each session has one of them.
        is_clustered: whether the counters know sessions.
        questions: of which the traffic consists, by Zipf's law; 0 = each run asks another. The answers to a question
            have one score for as long as the counters know it as one cluster.
        strata: (share of scored runs, weight, fall of the mean) of each stratum.
        bad_day: (chance, fall of the mean) of a day.
        batch: (share of the traffic, fall of the mean) of the hour from 3 am.
        holiday: (factor of the traffic, fall of the mean) of a week that begins within the first 14 days of looking.
        month_end: the same of the last two days of each month.
        season: amplitude of a rhythm of 30 days.
        fall_to: the mean after the drop; None = no drop.
        ramp_days: days that the drop takes.
    """

    shape: Shape = NINE
    history: int = LEARNT
    days: int = 30
    wander: float = 0.0
    correlation: float = 0.7
    within: float = 0.0
    within_hours: float = 4.0
    of_day: float = 0.005
    weekend: float = 0.0
    release: float = 0.0
    is_walk: bool = False
    deploy: float = 0.0
    growth: float = 1.0
    topic_traffic: float = 0.0
    topic_bad: float = 0.3
    topic_hours: int = 2
    turns: int = 1
    lags: tuple[int, ...] = (0,)
    is_clustered: bool = True
    questions: int = 0
    strata: tuple[tuple[float, float, float], ...] = ((1.0, 1.0, 0.0),)
    bad_day: tuple[float, float] = (0.0, 0.0)
    batch: tuple[float, float] = (0.0, 0.0)
    holiday: tuple[float, float] = (1.0, 0.0)
    month_end: tuple[float, float] = (1.0, 0.0)
    season: float = 0.0
    fall_to: float | None = None
    ramp_days: float = 0.0

    @property
    def slots(self) -> NDArray[np.int64]:
        """Numbers of the slots."""
        return np.arange((self.history + self.days) * DAY)

    def draw(self, rng: np.random.Generator, months: int, per_day: float) -> tuple[Sums, NDArray[np.int64]]:
        """Return the sums of so many services, and the slots at whose beginning their drops begin."""
        return next(self.draw_metrics(rng, months, per_day))

    def draw_metrics(
        self, rng: np.random.Generator, months: int, per_day: float
    ) -> Iterator[tuple[Sums, NDArray[np.int64]]]:
        """Yield the same of one metric after another: they have the traffic and the level of the service."""
        rate, bad, begins = self._service(rng, months, per_day)
        increments = self._of_questions if self.questions else self._increments
        while True:
            yield Sums.of_increments(*increments(rng, rate / self.turns, bad)), begins

    def draw_scores(self, rng: np.random.Generator, per_day: float) -> Iterator[tuple[Scores, float]]:
        """Yield the single scores of one service, and the second at which its drop begins.

        One metric comes after another: they have the runs and the level of the service. A question is one cluster
        however long ago it was asked before, as in a store.
        """
        rate, bad, begins = self._service(rng, 1, per_day)
        runs = (self._asked if self.questions else self._turns)(rng, rate[0] / self.turns, bad[0])
        below = np.cumsum(self._chances(runs.bad), axis=-1)[:, :-1]
        while True:
            answers = self.shape.atoms[(rng.random((len(below), 1)) > below).sum(axis=-1)]
            values = answers[runs.answers]
            yield Scores(runs.at, values, runs.weights, runs.clusters), float(begins[0]) * SLOT_S

    def _service(
        self, rng: np.random.Generator, months: int, per_day: float
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return the scores to expect and the share of bad answers in each slot, and the slots of the drops."""
        is_weekend = (self.slots // DAY + rng.integers(7, size=(months, 1))) % 7 >= 5
        rate = self._traffic(rng, is_weekend, per_day)
        level = self._level(rng, is_weekend)
        for is_then, (traffic, fall) in self._seasons(rng, months):
            rate *= np.where(is_then, traffic, 1.0)
            level -= fall * is_then
        bad = np.asarray(self.shape.bad_share(-level))
        self._add_topics(rng, rate, bad)
        begins = self.history * DAY + rng.integers(WEEK, size=months)
        if self.fall_to is not None:
            bad += (1 - bad) * self.shape.bad_share(self.shape.good_mean - self.fall_to) * self._fallen(begins)
        return rate, bad, begins

    def _traffic(self, rng: np.random.Generator, is_weekend: NDArray[np.bool_], per_day: float) -> Array:
        """Return the scores to expect in each slot; the quietest time is 2 am, weekends have .37 of a weekday's."""
        of_day = 1 - 0.75 * np.cos(2 * np.pi * (self.slots / DAY - 2 / 24))
        share, _fall = self.batch
        of_day = (1 - share) * of_day + share * 24 * self._is_batch
        rate = per_day / DAY * of_day * np.where(is_weekend, 0.37, 1.0) * 7 / 5.74
        if self.growth != 1:
            begins = self.history * DAY + rng.integers(self.days * DAY, size=(len(rate), 1))
            rate *= np.where(self.slots >= begins, self.growth, 1.0)
        return rate

    @property
    def _is_batch(self) -> NDArray[np.bool_]:
        return self.slots % DAY // HOUR == 3

    def _seasons(
        self, rng: np.random.Generator, months: int
    ) -> Iterator[tuple[NDArray[np.bool_], tuple[float, float]]]:
        """Yield when there are holidays and ends of a month, with what they do to traffic and mean."""
        if self.holiday != (1.0, 0.0):
            since = self.slots - self.history * DAY - rng.integers(14, size=(months, 1)) * DAY
            yield (since >= 0) & (since < WEEK), self.holiday
        if self.month_end != (1.0, 0.0):
            yield (self.slots // DAY + rng.integers(30, size=(months, 1))) % 30 >= 28, self.month_end

    def _level(self, rng: np.random.Generator, is_weekend: NDArray[np.bool_]) -> Array:
        """Return how far the mean lies above its usual level in each slot."""
        months, days = len(is_weekend), self.history + self.days
        level = self.of_day * np.sin(2 * np.pi * self.slots / DAY) - self.weekend * is_weekend
        level -= self.batch[1] * self._is_batch
        if self.season:
            level += self.season * np.sin(2 * np.pi * (self.slots / (30 * DAY) + rng.random((months, 1))))
        of_days = self.wander * _ar(rng, (months, days), self.correlation)
        of_days -= self.bad_day[1] * (rng.random((months, days)) < self.bad_day[0])
        level += np.repeat(of_days, DAY, axis=1)
        if self.within:
            wander = _ar(rng, (months, days * 24), np.exp(-1 / self.within_hours))
            level += np.repeat(self.within * wander, HOUR, axis=1)
        return level + self._releases(rng, months)

    def _releases(self, rng: np.random.Generator, months: int) -> Array:
        """Return the level that the releases have set; the first week ends at a random time."""
        changes = self.release * rng.choice([-1.0, 1.0], (months, self.slots.size // WEEK + 2))
        levels = np.cumsum(changes, axis=1) if self.is_walk else changes
        since = self.slots + rng.integers(WEEK, size=(months, 1))
        return np.take_along_axis(levels, since // WEEK, axis=1) - self.deploy * (since % WEEK < HOUR)

    def _add_topics(self, rng: np.random.Generator, rate: Array, bad: Array) -> None:
        if self.topic_traffic:
            share = self.topic_traffic / (1 + self.topic_traffic) * self.topic_bad
            for world, begin in np.argwhere(rng.random(rate.shape) < 1 / (4 * DAY)):
                burst = (world, slice(begin, begin + self.topic_hours * HOUR))
                rate[burst] *= 1 + self.topic_traffic
                bad[burst] += share

    def _fallen(self, begins: NDArray[np.int64]) -> Array:
        """Return the part of the drop that has happened."""
        since = self.slots - begins[:, None]
        return np.clip(since / (self.ramp_days * DAY), 0, 1) if self.ramp_days else (since >= 0).astype(float)

    def _increments(
        self, rng: np.random.Generator, rate: Array, bad: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return what each slot adds to w, wx, w2, w2x and w2x2: the turns of a session join one by one."""
        w, wx, w2, w2x, w2x2 = (np.zeros(rate.shape) for _ in range(5))
        for share, weight, fall in self.strata:
            chances = self._chances(bad + self.shape.bad_share(fall))
            for lag in self.lags:
                part = share / len(self.lags) * rate
                n, x, x2 = self._moments(rng.poisson(part[..., None] * chances))
                for turn in range(self.turns):
                    grows = 2 * turn + 1 if self.is_clustered else 1
                    later, sooner = slice(turn * lag, None), slice(rate.shape[1] - turn * lag)
                    w[:, later] += weight * n[:, sooner]
                    wx[:, later] += weight * x[:, sooner]
                    w2[:, later] += grows * weight**2 * n[:, sooner]
                    w2x[:, later] += grows * weight**2 * x[:, sooner]
                    w2x2[:, later] += grows * weight**2 * x2[:, sooner]
        return w, wx, w2, w2x, w2x2

    def _of_questions(
        self, rng: np.random.Generator, rate: Array, bad: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return the same of questions that are asked again: each is a cluster for `CLUSTER` slots, of one score."""
        blocks = (len(rate), rate.shape[1] // CLUSTER, CLUSTER)
        popular = 1 / np.arange(1, self.questions + 1)
        below = np.cumsum(self._chances(bad[:, ::CLUSTER]), axis=-1)[..., :-1]
        w, wx, w2, w2x, w2x2 = (np.zeros(blocks) for _ in range(5))
        for share in popular / popular.sum():
            luck = rng.random((*blocks[:2], 1))
            x = self.shape.atoms[(luck > below).sum(axis=-1)][..., None]
            n = rng.poisson(share * rate).reshape(blocks)
            grows = n * (2 * np.cumsum(n, axis=-1) - n)  # W^2 of the cluster, of the W that it had and has
            w += n
            wx += n * x
            w2 += grows
            w2x += grows * x
            w2x2 += grows * x**2
        w, wx, w2, w2x, w2x2 = (it.reshape(rate.shape) for it in (w, wx, w2, w2x, w2x2))
        return w, wx, w2, w2x, w2x2

    def _turns(self, rng: np.random.Generator, rate: Array, bad: Array) -> _Runs:
        """Return the runs of sessions, whose turns have the answer of the first; later turns than the last slot go."""
        kinds = [(stratum, lag) for stratum in self.strata for lag in self.lags]
        counts = [rng.poisson(share / len(self.lags) * rate) for (share, _, _), _ in kinds]
        begins = np.concatenate([np.repeat(self.slots, it) for it in counts])
        weights, falls, lags = (
            np.repeat(of_kind, [it.sum() for it in counts])
            for of_kind in np.array([(weight, fall, lag) for (_, weight, fall), lag in kinds]).T
        )
        answers = np.repeat(np.arange(len(begins)), self.turns)
        slots = begins[answers] + np.tile(np.arange(self.turns), len(begins)) * lags[answers]
        at = (slots + rng.random(len(slots))) * SLOT_S
        order = np.argsort(at)[: int((slots < len(self.slots)).sum())]
        clusters = answers if self.is_clustered else np.arange(len(answers))
        return _Runs(
            at=at[order],
            weights=weights[answers][order],
            clusters=clusters[order],
            answers=answers[order],
            bad=bad[begins] + self.shape.bad_share(falls),
        )

    def _asked(self, rng: np.random.Generator, rate: Array, bad: Array) -> _Runs:
        """Return the runs of questions that are asked again: each has one answer for `CLUSTER` slots."""
        slots = np.repeat(self.slots, rng.poisson(rate))
        popular = 1 / np.arange(1, self.questions + 1)
        asked = rng.choice(self.questions, len(slots), p=popular / popular.sum())
        at = np.sort((slots + rng.random(len(slots))) * SLOT_S)
        return _Runs(
            at=at,
            weights=np.ones(len(slots)),
            clusters=asked,
            answers=slots // CLUSTER * self.questions + asked,
            bad=np.repeat(bad[::CLUSTER], self.questions),
        )

    def _chances(self, bad: Array) -> Array:
        """Return how likely each value is in each slot; a very good day has less bad than none."""
        shape = self.shape
        chances = np.minimum(bad, 1)[..., None] * (shape.bad - shape.good)
        chances += shape.good
        np.maximum(chances, 0, out=chances)
        chances /= (chances @ np.ones(shape.atoms.size))[..., None]
        return chances

    def _moments(self, counts: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        powers = np.stack([self.shape.atoms**power for power in (0, 1, 2)], axis=1)
        n, x, x2 = np.moveaxis(counts @ powers, -1, 0)
        return n, x, x2


def _ar(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> Array:
    """Return rows of a stationary AR(1) of variance 1."""
    values = rng.normal(size=shape)
    fresh = np.sqrt(1 - correlation**2)
    for at in range(1, shape[1]):
        values[:, at] = correlation * values[:, at - 1] + fresh * values[:, at]
    return values
