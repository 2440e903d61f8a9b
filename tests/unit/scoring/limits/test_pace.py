"""A budget that lasts its day: the units a minute that its rest pays for."""

from __future__ import annotations

import math
import random

import pytest

from ragtrace.sampling import Load, Pressure
from ragtrace.sampling.pressure import FLOOR
from ragtrace.scoring import Budget, Caps, JudgeLimiter, Pace, Purse, Reservation
from ragtrace.scoring.limits.pace import UNHELD_SHARE
from tests.unit.scoring.limits.clocks import NOON, HandClock

MIDNIGHT = NOON - 43_200.0
DAY_S = 86_400.0
COST = 1_000


def paced(*purses, served=4, waiting=0, left_s=60.0, pace=None):
    pace = pace or Pace()
    pace.units_per_minute([purse._replace(today=0, ever=0) for purse in purses], served=0, waiting=0, left_s=left_s)
    return pace.units_per_minute(purses, served=served, waiting=waiting, left_s=left_s)


def test_the_tighter_of_two_budgets_counts():
    tokens, dollars = Purse(10_000, 4_000, 4_000), Purse(10.0, 9.0, 9.0)
    assert paced(tokens) == pytest.approx(6.0)
    assert paced(dollars) == pytest.approx(1 / 2.25)
    assert paced(tokens, dollars) == paced(dollars)


def test_what_waits_is_paid_for_first():
    purse = Purse(10_000, 4_000, 4_000)
    assert paced(purse, waiting=2) == pytest.approx(4.0)
    assert paced(purse, waiting=20) == 0.0


def test_a_spent_budget_pays_for_nothing_also_where_no_cost_is_known():
    assert paced(Purse(10_000, 10_000, 10_000), served=0) == 0.0


def test_what_is_not_known_holds_nothing_back():
    assert paced() == math.inf
    assert paced(Purse(10_000, 4_000, 4_000), served=0) == math.inf
    assert paced(Purse(10_000, 0, 0)) == math.inf  # a price that is not known: nothing is spent of the dollars
    assert paced(Purse(10_000, UNHELD_SHARE * 10_000 - 1, 99)) == math.inf


def test_books_or_a_queue_that_were_replaced_tell_nothing_of_the_cost():
    pace = Pace()
    assert paced(Purse(10_000, 4_000, 4_000), pace=pace) == pytest.approx(6.0)
    assert pace.units_per_minute([Purse(10_000, 1_000, 1_000)], served=0, waiting=0, left_s=60.0) == 9.0


def test_a_unit_costs_what_it_cost_lately():
    pace, spent, served = Pace(), 0, 0
    for cost in [1_000] * 600 + [3_000] * 600:
        spent, served = spent + 5 * cost, served + 5
        pace.units_per_minute([Purse(10**9, spent, spent)], served=served, waiting=0, left_s=60.0)
    left = 10**9 - spent
    assert pace.units_per_minute([Purse(10**9, spent, spent)], served=served, waiting=0, left_s=60.0) == (
        pytest.approx(left / 3_000, rel=0.01)
    )


def spend(budget, tokens):
    granted = budget.reserve(usd=None, tokens=tokens)
    if not isinstance(granted, Reservation):
        return False
    return budget.settle(granted, usd=None, tokens=tokens)


def test_processes_that_share_a_file_see_what_the_others_spent(tmp_path):
    clock = HandClock()
    caps = Caps(usd_per_day=None, tokens_per_day=100_000, requests_per_minute=None, tokens_per_minute=None)
    limiters = [JudgeLimiter(host="judge", caps=caps, path=tmp_path / "limits", clock=clock) for _ in range(2)]
    assert [one.affordable(served=0, waiting=0) for one in limiters] == [math.inf] * 2
    other = Budget(tmp_path / "limits", host="judge", caps=caps, clock=clock)
    for _ in range(40):
        assert spend(other, COST)
    minutes = (DAY_S - NOON % DAY_S) / 60
    assert [one.affordable(served=40, waiting=0) for one in limiters] == [pytest.approx(60 / minutes)] * 2
    for one in (*limiters, other):
        one.close()


class Day:
    """A service whose judge asks `COST` tokens a unit and answers at once, over days of `runs` a minute."""

    def __init__(self, tokens_per_day, wall_at=MIDNIGHT):
        self.clock = HandClock(wall_at=wall_at)
        caps = Caps(
            usd_per_day=None, tokens_per_day=tokens_per_day, requests_per_minute=None, tokens_per_minute=None
        )
        self.limiter = JudgeLimiter(host="judge", caps=caps, clock=self.clock)
        self.budget = self.limiter._budget
        self.served, self.chance = 0, random.Random(4)
        self.pressure = Pressure(self.load, clock=lambda: self.clock.at)

    def load(self):
        affordable = self.limiter.affordable(served=self.served, waiting=0)
        return Load(size=0, capacity=10**6, served=self.served, affordable=affordable)

    def hour(self, runs):
        """Return the share that is scored of an hour's runs a minute, and the sum of their weights by run."""
        scored, weight, undrawn = 0, 0.0, 0
        for _ in range(60):
            for _ in range(runs):
                self.clock.at += 60.0 / runs
                self.clock.wall_at += 60.0 / runs
                factor = self.pressure.factor(1.0)
                if factor < FLOOR:
                    undrawn += 1
                elif self.chance.random() < factor and spend(self.budget, COST):
                    self.served += 1
                    scored, weight = scored + 1, weight + 1 / factor
        return scored / (60 * runs), (weight + undrawn) / (60 * runs)


def test_a_budget_for_half_of_the_runs_gives_half_of_them_at_any_hour_with_weights():
    day = Day(tokens_per_day=COST * 20 * 1_440 // 2)
    hours = [day.hour(20) for _ in range(24)]
    shares, weights = zip(*hours, strict=True)
    assert shares[0] == pytest.approx(0.56, abs=0.04)  # the first hundredth of the budget is spent as it comes
    assert all(share == pytest.approx(0.5, abs=0.05) for share in shares[1:]), shares
    assert all(weight == pytest.approx(1.0, abs=0.1) for weight in weights), weights
    assert sum(shares) / 24 == pytest.approx(0.5, abs=0.01)  # and it is spent to its end


def test_an_evening_of_more_runs_gets_what_the_morning_left():
    day = Day(tokens_per_day=COST * 20 * 1_440 // 2)
    morning = [day.hour(20)[0] for _ in range(12)]
    evening = [day.hour(60) for _ in range(12)]
    assert all(share == pytest.approx(0.5, abs=0.07) for share in morning[1:]), morning
    assert all(share == pytest.approx(1 / 6, abs=0.05) for share, _ in evening[1:]), evening
    assert all(weight == pytest.approx(1.0, abs=0.2) for _, weight in evening), evening


def test_a_budget_below_the_floor_scores_its_first_hundredth_and_draws_no_more():
    day = Day(tokens_per_day=COST * 20)
    share, weight = day.hour(100)
    assert share < 0.02
    assert weight == pytest.approx(1.0, abs=0.05)
    assert day.pressure.cause == "budget_exceeded"


def test_the_next_day_begins_anew():
    day = Day(tokens_per_day=COST * 20 * 1_440 // 2)
    for _ in range(23):
        day.hour(20)
    others = 20 * 1_440  # of another process that shares the books: all of the budget
    day.budget.settle(day.budget.reserve(usd=None, tokens=1), usd=None, tokens=COST * others)
    day.served += others
    assert day.hour(20)[0] < 0.02
    assert [day.hour(20)[0] for _ in range(4)] == [pytest.approx(0.5, abs=0.1)] * 4
