"""Rule F as shipped, in a thousand simulated months: how often it is wrong, and how soon it sees a drop.

Measured: a false alarm in 7.2 % of months at 200 scores a day (95 % interval 5.8 to 9.0) and 1.4 % (.8 to 2.3) at
5,000; to .85 in .86 d and .25 d, to .80 in .29 d and .12 d (medians of 400 steps).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ragtrace_dashboards.config import Config
from tests.monitoring.rule_f import Sums, Window, fires
from tests.monitoring.worlds import ATOMS, BAD, DAY, GOOD, HOUR, World, alarms, bad_share, delays

pytestmark = pytest.mark.slow

MONTHS = 1_000
STEPS = 400
RULE_F = partial(fires, config=Config())


def interval(share, trials):
    """Wilson's 95 % interval of a share."""
    square = 1.96**2 / trials
    half = 1.96 * np.sqrt(share * (1 - share) / trials + square / trials / 4)
    return (share + square / 2 - half) / (1 + square), (share + square / 2 + half) / (1 + square)


@pytest.mark.parametrize(("per_day", "most"), [(200, 0.10), (5_000, 0.03)])
def test_false_alarms_in_30_days_are_few(per_day, most):
    share = alarms(World(per_day=per_day), RULE_F, MONTHS, seed=per_day).any(axis=1).mean()
    low, high = interval(share, MONTHS)
    assert high <= most, f"{per_day} a day: {share:.3f}, 95 % interval {low:.3f} to {high:.3f}, at most {most}"


@pytest.mark.parametrize(
    ("per_day", "fall_to", "most"), [(200, 0.85, 1.5), (5_000, 0.85, 0.4), (200, 0.80, 0.8), (5_000, 0.80, 0.2)]
)
def test_a_drop_is_found_soon(per_day, fall_to, most):
    world = World(per_day=per_day, fall_to=fall_to, days=25)
    found = delays(world, RULE_F, STEPS, seed=per_day)
    median, late = np.median(found), np.quantile(found, 0.9)
    told = f"{per_day} a day to {fall_to}: median {median:.2f} d, nine of ten {late:.2f} d, of {len(found)} steps"
    assert len(found) > 0.95 * STEPS  # few were at fault before the step
    assert median <= most, told
    assert np.isfinite(found).mean() > 0.97, told


def test_a_threshold_on_the_hourly_mean_fires_on_most_days():
    """Why no such alert is shipped: at 200 a day an hour holds a handful of scores."""

    def low_hour(sums):
        hour = Window.of(sums, 3_600)
        return (hour.mean < 0.85) & (hour.n_eff >= 5)

    found = alarms(World(per_day=200), low_hour, 100, seed=1)
    days = found.reshape(100, 30, DAY).any(axis=2).sum(axis=1)
    assert np.median(days) >= 27, f"on {np.median(days)} days of 30"


def test_without_a_tolerance_every_wander_is_an_alarm():
    eager = partial(fires, config=replace(Config(), tolerance=0.0, fast_tolerance=0.0))
    share = alarms(World(per_day=5_000), eager, 100, seed=1).any(axis=1).mean()
    assert share > 0.9, share


def test_the_world_is_the_one_described():
    mean = GOOD @ ATOMS
    assert mean == pytest.approx(0.920, abs=0.0005)
    assert np.sqrt(GOOD @ ATOMS**2 - mean**2) == pytest.approx(0.197, abs=0.001)
    assert GOOD[ATOMS < 0.8].sum() == pytest.approx(0.151)
    for level, low in ((0.85, 0.25), (0.80, 0.32)):
        mixed = GOOD + bad_share(level) * (BAD - GOOD)
        assert mixed @ ATOMS == pytest.approx(level)
        assert mixed[ATOMS < 0.8].sum() == pytest.approx(low, abs=0.006)


def test_its_days_differ_as_described():
    world = World(per_day=100_000, days=70, topic_traffic=0.0)
    counts = world.draw(np.random.default_rng(1), 10)
    by_day = counts.reshape(10, 70, DAY, ATOMS.size)
    volume = by_day.sum(axis=(2, 3))
    assert volume.mean() == pytest.approx(100_000, rel=0.01)
    assert volume.min() / volume.max() == pytest.approx(0.37, abs=0.02)
    of_day = by_day.sum(axis=(0, 1, 3)).reshape(24, HOUR).sum(axis=1)
    assert of_day.max() / of_day.mean() == pytest.approx(1.75, abs=0.02)
    assert of_day.min() / of_day.mean() == pytest.approx(0.25, abs=0.02)
    means = Window.of(Sums.of_atoms(counts, ATOMS), 86_400).mean[:, DAY::DAY]
    assert means.std() == pytest.approx(0.006, abs=0.0012)
    assert np.corrcoef(means[:, :-1].ravel(), means[:, 1:].ravel())[0, 1] == pytest.approx(0.7, abs=0.12)
