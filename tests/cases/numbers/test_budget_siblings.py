"""A budget that pays for a part of the runs moves neither the mean nor its bounds off the truth."""

from __future__ import annotations

import pytest

from tests.cases.numbers.reading import sees

pytestmark = pytest.mark.slow


@sees(*(f"{unit}, {evening} evening" for evening in ("worse", "better") for unit in ("dollars", "tokens")))
def test_a_budget_that_ends_before_another_evening(seen):
    seen.check(due_within=0.15, is_mean_enough=True)


@sees("tokens, same evening")
def test_a_budget_that_ends_on_an_even_day(seen):
    seen.check(due_within=0.15)


@sees("day, steady")
def test_a_budget_for_half_of_the_runs_gives_half_of_them_at_any_hour(seen):
    """A day in 26 s: budgets read `Clock.wall`, and windows the clock of `Pressure`."""
    assert all(0.3 <= share <= 0.7 for share in seen.more["shares"][1:]), seen
    assert seen.more["shares"][0] >= 0.3, (
        seen
    )  # its first window, longer on a busy machine, draws at the sample rate
    assert seen.more["judged"] <= 0.5 * seen.runs, seen  # the budget holds
    assert seen.mean == pytest.approx(seen.truth, abs=0.05)
    seen.check(due_within=0.12, is_mean_enough=True)


@sees("day, worse evening")
def test_a_worse_evening_of_a_spread_budget_moves_the_mean(seen):
    assert min(seen.more["shares"]) >= 0.2, seen
    assert seen.mean == pytest.approx(seen.truth, abs=0.06)
    seen.check(due_within=0.12, is_mean_enough=True)


@sees("day, busier and worse evening")
def test_a_busier_and_worse_evening_has_its_weight(seen):
    """Three times the rate: the share falls and the weights rise, and no hour is without scores."""
    assert min(seen.more["shares"]) >= 0.1, seen
    assert seen.mean == pytest.approx(seen.truth, abs=0.06)
    seen.check(due_within=0.15, is_mean_enough=True)


@sees("never, budget below a call", "never, dollars below a call", "never, nobody listens")
def test_bounds_without_any_score_are_exported_and_hold_everything(seen):
    assert seen.mean is None
    assert seen.bounds == (0.0, 1.0)
    seen.check(due_within=0.15)
    assert seen.part == pytest.approx(1.0, abs=0.01)


@sees("never, budget and spool")
def test_bounds_without_any_score_over_a_spool(seen):
    assert seen.bounds == (0.0, 1.0)
    seen.check(due_within=0.15)
    assert seen.part == pytest.approx(1.0, abs=0.01)


@sees("two judges, tokens", "two judges, dollars")
def test_two_judges_under_a_budget(seen):
    # The second judge's part is half of the runs, each with weight 2.
    seen.check(due_within=0.2, is_mean_enough=True)


@sees("limited, requests", "limited, tokens")
def test_a_rate_far_below_the_traffic(seen):
    """Runs that wait in the queue are not due yet, and some 100 scores say what the mean is within .1."""
    seen.check(due_within=0.9, is_mean_enough=True, tolerance=0.12)
