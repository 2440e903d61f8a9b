"""A world of scores in which rule F is tried: the "real" regime.

Traffic by hour of day (+-75 %), weekends with .37 of a weekday's, a true daily mean that wanders (AR(1), sd .006),
an effect of the time of day (.005), and hot topics: two hours, every four days, 30 % of their answers bad. None of
these is the drop, so an alarm at one of them is false.

Three sizes are not stated there: the wander's correlation from day to day, how much traffic a topic adds, and the
weekday of the step. They are .7, .3 of the usual and any. With them the table's textbook rules come out (chance of
a false alarm in 30 days, 500 worlds here against the table): z 24 h against 7 d > 3 at 200 a day .64 (.64), > 4 .15
(.15), mean[24h] < .88 .88 (.84); at 5,000 a day 1.00 (1.00), .94 (.97) and 0 (0).

The sizes matter: rule F's promise is one for such a world. With 200 to 500 worlds at 200 and 5,000 a day, an alarm comes
in .07 and .02 of months here; in .07 and .01 at a correlation of .5 and .03 and .01 at .9; in .10 and .12 with a
wander of .009; in .10 and .15 where a topic adds .5 of the traffic, which the textbook rules hardly tell from .3; in
.24 and .73 where it doubles it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tests.monitoring.rule_f import SLOT_S, Sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ATOMS: Final = np.array([0, 0.25, 0.33, 0.5, 0.6, 0.67, 0.75, 0.8, 1])
GOOD: Final = np.array([0.013, 0.016, 0.018, 0.022, 0.025, 0.027, 0.03, 0.029, 0.82])
BAD: Final = np.array([0.27, 0.22, 0.18, 0.2, 0.06, 0.04, 0.03, 0, 0])
GOOD_MEAN, BAD_MEAN = float(GOOD @ ATOMS), float(BAD @ ATOMS)
HOUR: Final = 3_600 // SLOT_S
DAY: Final = 24 * HOUR
LEARNING: Final = 17
"""Days before the first look: the baseline's fourteen and the longest window's three."""
AT_ONCE: Final = 100  # worlds in memory


@dataclass(frozen=True, kw_only=True)
class World:
    """What scores come from.

    Attributes:
        per_day: scores a day, mean of a week.
        days: length in days.
        fall_to: mean after a step at 9 am of the first day after the learning ones; None = no step.
    """

    per_day: float
    days: int = LEARNING + 30
    fall_to: float | None = None
    wander: float = 0.006
    correlation: float = 0.7
    topic_traffic: float = 0.3
    topic_bad: float = 0.3

    @property
    def step(self) -> int:
        """Slot at whose beginning the mean falls."""
        return LEARNING * DAY + 9 * HOUR

    def draw(self, rng: np.random.Generator, worlds: int) -> NDArray[np.int64]:
        """Return how often each atom comes: worlds by slots by atoms."""
        rate, bad = self._traffic(rng, worlds), self._bad(rng, worlds)
        self._topics(rng, rate, bad)
        if self.fall_to is not None:
            bad[:, self.step :] += (1 - bad[:, self.step :]) * bad_share(self.fall_to)
        chances = np.clip(GOOD + bad[..., None] * (BAD - GOOD), 0, None)  # a very good day has less bad than none
        chances /= chances.sum(axis=-1, keepdims=True)
        return rng.multinomial(rng.poisson(rate), chances)

    def _traffic(self, rng: np.random.Generator, worlds: int) -> Array:
        """Return the scores to expect in each slot."""
        slots = np.arange(self.days * DAY)
        weekday = (slots // DAY + rng.integers(7, size=(worlds, 1))) % 7
        of_day = 1 - 0.75 * np.cos(2 * np.pi * (slots / DAY - 2 / 24))  # quietest at 2 am
        return self.per_day / DAY * of_day * np.where(weekday < 5, 1.0, 0.37) * 7 / 5.74

    def _bad(self, rng: np.random.Generator, worlds: int) -> Array:
        """Return the share of bad answers beyond the usual, by day and by time of day."""
        level = rng.normal(0, self.wander, (worlds, self.days))
        level[:, 1:] *= np.sqrt(1 - self.correlation**2)
        for day in range(1, self.days):
            level[:, day] += self.correlation * level[:, day - 1]
        of_day = 0.005 * np.sin(2 * np.pi * np.arange(self.days * DAY) / DAY)
        return bad_share(GOOD_MEAN + np.repeat(level, DAY, axis=1) + of_day)

    def _topics(self, rng: np.random.Generator, rate: Array, bad: Array) -> None:
        share = self.topic_traffic / (1 + self.topic_traffic) * self.topic_bad
        for world, begin in np.argwhere(rng.random(rate.shape) < 1 / (4 * DAY)):
            burst = (world, slice(begin, begin + 2 * HOUR))
            rate[burst] *= 1 + self.topic_traffic
            bad[burst] += share


def alarms(world: World, rule: Callable[[Sums], NDArray[np.bool_]], worlds: int, seed: int) -> NDArray[np.bool_]:
    """Return whether a rule fires at the end of each slot after the learning days: worlds by slots."""
    rng = np.random.default_rng(seed)
    parts = []
    for begin in range(0, worlds, AT_ONCE):
        counts = world.draw(rng, min(AT_ONCE, worlds - begin))
        parts.append(rule(Sums.of_atoms(counts, ATOMS))[:, LEARNING * DAY + 1 :])
    return np.concatenate(parts)


def delays(world: World, rule: Callable[[Sums], NDArray[np.bool_]], worlds: int, seed: int) -> Array:
    """Return days from the step to the first alarm, inf = none; worlds with an alarm before it are left out."""
    found = alarms(world, rule, worlds, seed)
    step = world.step - LEARNING * DAY
    after = found[~found[:, :step].any(axis=1), step:]
    return np.where(after.any(axis=1), (after.argmax(axis=1) + 1) / DAY, np.inf)


def bad_share(mean: float | Array) -> float | Array:
    """Return the share of the bad component at which the mean is so; below 0 for a better one."""
    return (GOOD_MEAN - mean) / (GOOD_MEAN - BAD_MEAN)
