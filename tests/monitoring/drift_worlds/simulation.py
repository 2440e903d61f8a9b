"""Measure rule F in a world: how often it is wrong and how often it pages, and how soon it sees a drop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from ragtrace_dashboards import Config
from tests.monitoring.drift_worlds.worlds import DAY, HOUR
from tests.monitoring.rule_f import Readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tests.monitoring.drift_worlds.worlds import World
    from tests.monitoring.rule_f import Sums

    Array = NDArray[np.float64]

WORKFLOW: Final = 12
"""Metrics of one workflow, about as many as are watched."""
FAMILY: Final = 50
"""Series of about four workflows."""
SEED: Final = 15
_AT_ONCE = 50  # services in memory


@dataclass(frozen=True)
class Months:
    """Simulated months of one world and volume: whether any alarm fired in each.

    Attributes:
        alone: where one series is watched.
        in_family: where it is one of `FAMILY`.
    """

    alone: NDArray[np.bool_]
    in_family: NDArray[np.bool_]


def drawn(world: World, per_day: int, months: int, seed: int) -> Iterator[tuple[Sums, NDArray[np.int64]]]:
    """Yield services of a world, some at once, with the slots of their drops."""
    rng = np.random.default_rng([seed, per_day])
    for begin in range(0, months, _AT_ONCE):
        yield world.draw(rng, min(_AT_ONCE, months - begin), per_day)


def false_alarms(world: World, per_day: int, months: int, seed: int = SEED, config: Config | None = None) -> Months:
    """Look every hour of 30 days, without a drop."""
    config = config or Config()
    alone, in_family = [], []
    for sums, _drops in drawn(world, per_day, months, seed):
        readings = Readings.of(sums, config, every=HOUR)
        for series, found in ((1, alone), (FAMILY, in_family)):
            found.append(readings.fires(config, series)[:, world.history * DAY // HOUR + 1 :].any(axis=1))
    return Months(np.concatenate(alone), np.concatenate(in_family))


def of_workflow(world: World, per_day: int, months: int, seed: int = SEED) -> NDArray[np.bool_]:
    """Return whether any of a workflow's metrics had a false alarm: they share its traffic and its level."""
    config, found = Config(), []
    rng = np.random.default_rng([seed, per_day])
    for begin in range(0, months, _AT_ONCE):
        metrics = world.draw_metrics(rng, min(_AT_ONCE, months - begin), per_day)
        fired = [
            Readings.of(sums, config, every=HOUR).fires(config, WORKFLOW) for sums, _ in islice(metrics, WORKFLOW)
        ]
        found.append(np.any(fired, axis=0)[:, world.history * DAY // HOUR + 1 :].any(axis=1))
    return np.concatenate(found)


def delays(world: World, per_day: int, steps: int, seed: int = SEED, series: int = 1) -> Array:
    """Return days from each drop to its alarm, inf = none in the world's days; one that fired before is left out."""
    return _delays(world, per_day, steps, seed, HOUR, lambda it, config: it.fires(config, series))


def page_delays(world: World, per_day: int, steps: int, seed: int = SEED, series: int = 1) -> Array:
    """Return the same of pages."""
    return _delays(world, per_day, steps, seed, 1, lambda it, config: it.falls(config, series))


def pages(world: World, per_day: int, services: int, seed: int = SEED, series: int = 1) -> Array:
    """Return how often each service pages in 90 days without a drop; a page ends after a quiet hour."""
    config, found = Config(), []
    world = replace(world, days=90)
    for sums, _drops in drawn(world, per_day, services, seed):
        falls = Readings.of(sums, config).falls(config, series)[:, world.history * DAY + 1 :]
        before = np.concatenate([np.zeros_like(falls[:, : HOUR + 1]), falls], axis=1)
        quiet = ~np.any([before[:, at : at + falls.shape[1]] for at in range(HOUR + 1)], axis=0)
        found.append((falls & quiet).sum(axis=1))
    return np.concatenate(found)


def _delays(
    world: World,
    per_day: int,
    steps: int,
    seed: int,
    every: int,
    fires: Callable[[Readings, Config], NDArray[np.bool_]],
) -> Array:
    config, found = Config(), []
    for sums, begins in drawn(world, per_day, steps, seed):
        fired, ends = fires(Readings.of(sums, config, every=every), config), sums.ends(every)
        is_after = ends > begins[:, None]
        before = (fired & ~is_after & (ends > world.history * DAY)).any(axis=1)
        after = fired & is_after
        days = np.where(after.any(axis=1), (ends[after.argmax(axis=1)] - begins) / DAY, np.inf)
        found.append(days[~before])
    return np.concatenate(found)


def any_of(share: float, series: int = FAMILY) -> float:
    """Return the chance of any alarm in a family of independent series, from the share of one."""
    return float(1 - (1 - share) ** series)


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    square = 1.96**2 / trials
    half = 1.96 * np.sqrt(share * (1 - share) / trials + square / trials / 4)
    return (share + square / 2 - half) / (1 + square), (share + square / 2 + half) / (1 + square)
