"""A budget that pays for a part of the runs moves neither the mean nor its bounds off the truth."""

from __future__ import annotations

import pytest

from tests.cases.numbers.reading import world

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("unit", ["dollars", "tokens"])
@pytest.mark.parametrize("evening", ["worse", "better"])
def test_a_budget_that_ends_before_another_evening(unit, evening):
    world(f"{unit}, {evening} evening").check(due_within=0.15, is_mean_enough=True)


def test_a_budget_that_ends_on_an_even_day():
    world("tokens, same evening").check(due_within=0.15)


def test_a_budget_for_half_of_the_runs_gives_half_of_them_at_any_hour():
    """A day in 26 s: budgets read `Clock.wall`, and windows the clock of `Pressure`."""
    seen = world("day, steady")
    assert all(0.3 <= share <= 0.7 for share in seen.more["shares"][1:]), seen
    assert seen.more["shares"][0] >= 0.3, (
        seen
    )  # its first window, longer on a busy machine, draws at the sample rate
    assert seen.more["judged"] <= 0.5 * seen.runs, seen  # the budget holds
    assert seen.mean == pytest.approx(seen.truth, abs=0.05)
    seen.check(due_within=0.12, is_mean_enough=True)


def test_a_worse_evening_of_a_spread_budget_moves_the_mean():
    seen = world("day, worse evening")
    assert min(seen.more["shares"]) >= 0.2, seen
    assert seen.mean == pytest.approx(seen.truth, abs=0.06)
    seen.check(due_within=0.12, is_mean_enough=True)


def test_a_busier_and_worse_evening_has_its_weight():
    """Three times the rate: the share falls and the weights rise, and no hour is without scores."""
    seen = world("day, busier and worse evening")
    assert min(seen.more["shares"]) >= 0.1, seen
    assert seen.mean == pytest.approx(seen.truth, abs=0.06)
    seen.check(due_within=0.15, is_mean_enough=True)


@pytest.mark.parametrize("why", ["budget below a call", "dollars below a call", "nobody listens"])
def test_bounds_without_any_score_are_exported_and_hold_everything(why):
    seen = world(f"never, {why}")
    assert seen.mean is None
    assert seen.bounds == (0.0, 1.0)
    seen.check(due_within=0.15)
    assert seen.part == pytest.approx(1.0, abs=0.01)


def test_bounds_without_any_score_over_a_spool(tmp_path):
    seen = world("never, budget and spool", WORLD_SPOOL=str(tmp_path / "spool.sqlite"))
    assert seen.bounds == (0.0, 1.0)
    seen.check(due_within=0.15)
    assert seen.part == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("unit", ["tokens", "dollars"])
def test_two_judges_under_a_budget(unit):
    # The second judge's part is half of the runs, each with weight 2.
    world(f"two judges, {unit}").check(due_within=0.2, is_mean_enough=True)


@pytest.mark.parametrize("unit", ["requests", "tokens"])
def test_a_rate_far_below_the_traffic(unit):
    """Runs that wait in the queue are not due yet, and some 100 scores say what the mean is within .1."""
    world(f"limited, {unit}").check(due_within=0.9, is_mean_enough=True, tolerance=0.12)
