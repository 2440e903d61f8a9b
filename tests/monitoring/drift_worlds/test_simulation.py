"""Rule F as shipped, in simulated months of many worlds: how often it is wrong, and how soon it sees a drop.

Bars hold for the upper end of the 95 % interval, so a lucky seed does not pass.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragtrace_dashboards.config import Config
from tests.monitoring.drift_worlds.named_worlds import DOUBLED, USUAL, VOLUMES, WORLDS
from tests.monitoring.drift_worlds.random_worlds import random_world
from tests.monitoring.drift_worlds.simulation import any_of, delays, drawn, false_alarms, wilson
from tests.monitoring.drift_worlds.worlds import DAY
from tests.monitoring.rule_f import Window

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the worlds take 45 s of CPU, and CI shares its cores

MONTHS = 50
STEPS = 100
RANDOM_WORLDS, RANDOM_MONTHS = 40, 15


@pytest.fixture(scope="module")
def months():
    return {name: [false_alarms(world, per_day, MONTHS) for per_day in VOLUMES] for name, world in WORLDS.items()}


def upper(found):
    """The largest share that the months allow."""
    return wilson(np.mean(found), np.size(found))[1]


def test_false_alarms_are_few_on_average_over_the_worlds(months):
    found = [[it.alone for it in of_world] for of_world in months.values()]
    assert upper(found) <= 0.05, f"{np.mean(found):.3f}"


@pytest.mark.parametrize("name", [it for it in WORLDS if it != DOUBLED])
def test_false_alarms_are_few_in_each_world(months, name):
    shares = [float(it.alone.mean()) for it in months[name]]
    assert upper([it.alone for it in months[name]]) <= 0.10, f"{shares} at {VOLUMES} a day"


def test_false_alarms_are_few_in_worlds_at_random():
    """Each world is of its own: some may exceed the bar of a named one, and their mean may not."""
    rng = np.random.default_rng(15)
    worlds = [random_world(rng) for _ in range(RANDOM_WORLDS)]
    found = [
        [false_alarms(world, per_day, RANDOM_MONTHS, seed).alone for per_day in VOLUMES]
        for seed, world in enumerate(worlds)
    ]
    assert upper(found) <= 0.05, f"{np.mean(found):.3f}"


def test_fifty_series_together_have_few_false_alarms(months):
    found = [[it.in_family for it in of_world] for name, of_world in months.items() if name != DOUBLED]
    assert any_of(np.mean(found)) <= 0.05, f"{np.sum(found)} of {np.size(found)}"


@pytest.mark.parametrize(
    ("per_day", "fall_to", "most"),
    [
        (200, 0.85, 2.2),
        (1_000, 0.85, 0.7),
        (5_000, 0.85, 0.3),
        (50, 0.80, 3.0),
        (1_000, 0.80, 0.3),
        (5_000, 0.80, 0.2),
    ],
)
def test_a_drop_at_a_random_hour_is_seen_soon(per_day, fall_to, most):
    found = delays(replace(USUAL, fall_to=fall_to, days=21), per_day, STEPS)
    assert len(found) > 0.95 * STEPS  # few had fired before
    assert np.median(found) <= most
    assert np.isfinite(found).mean() >= 0.97


def test_few_scores_show_a_large_drop_within_a_week():
    found = delays(replace(USUAL, fall_to=0.80, days=21), 20, STEPS)
    assert np.median(found) <= 7


def test_a_slide_over_a_week_is_seen():
    for per_day, share in ((200, 0.85), (1_000, 0.95)):
        found = delays(replace(USUAL, fall_to=0.85, ramp_days=7, days=28), per_day, STEPS)
        assert np.isfinite(found).mean() >= share


def test_without_the_learnt_wander_it_would_be_an_alarm():
    deaf = replace(Config(), wander_prior=0.0, wander_cap=0.0, fast_wander_cap=0.0, wander_sampling=0.0)
    found = false_alarms(WORLDS["by .015"], 5_000, MONTHS, config=deaf)
    assert found.alone.mean() > 0.9


def test_sessions_that_nobody_declares_are_taken_for_wander():
    """Five turns with one score, over hours: with the fixed cap alone, a third of months have a false alarm."""
    world = replace(USUAL, turns=5, lags=(4, 8, 12), is_clustered=False)
    before, after = (
        np.mean([false_alarms(world, it, 2 * MONTHS, config=config).alone for it in (50, 200)])
        for config in (replace(Config(), wander_sampling=0.0), Config())
    )
    assert after <= 0.6 * before, f"{before:.2f} to {after:.2f}"


def test_a_threshold_on_the_hourly_mean_fires_on_most_days():
    """Why no such alert is shipped: at 200 a day an hour holds a handful of scores."""
    ((sums, _drops),) = drawn(USUAL, 200, MONTHS, seed=1)
    hour = Window.of(sums, 3_600)
    low = ((hour.mean < 0.85) & (hour.n_eff >= 5))[:, USUAL.history * DAY + 1 :]
    days = low.reshape(MONTHS, USUAL.days, DAY).any(axis=2).sum(axis=1)
    assert np.median(days) >= 27, f"on {np.median(days)} days of 30"


def test_the_documented_rate_is_the_measured_one(months):
    (record,) = (Path(__file__).parents[3] / "docs/decisions").glob("*-the-drift-rule-learns-the-wander.md")
    told = re.search(r"without the last topic: ([\d.]+) %", record.read_text(encoding="utf-8"))
    found = [[it.alone for it in of_world] for name, of_world in months.items() if name != DOUBLED]
    low, high = wilson(np.mean(found), np.size(found))
    assert low <= float(told[1]) / 100 <= high
