"""The combined mean of two judges: unbiased whatever the first judge is worth, and its interval holds the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ragtrace.sampling.second import SecondRates
from ragtrace.stats import JudgedRun, combined_mean, fitted_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    World = Callable[[np.random.Generator], "Day"]

DAYS, TRAFFIC, SAMPLED = 1000, 1600, 0.25
RATES = SecondRates(lows=(0.0, 0.8), rates=(0.4, 0.15), without=0.4)  # those that the documentation gives


@dataclass(frozen=True, slots=True)
class Day:
    """All runs of a day: both judges' scores (NaN where one says that there is nothing to score); how often the second judge fails."""

    first: Array
    second: Array
    fails: Array

    @property
    def truth(self) -> float:
        return float(np.nanmean(self.second))


def plain(rng: np.random.Generator, n: int = TRAFFIC) -> Day:
    """Answers are right or wrong, and wrong ones have lower first scores."""
    first = rng.beta(3.0, 1.2, n)
    second = (rng.random(n) < 1 / (1 + np.exp(2.5 - 7.0 * first))).astype(np.float64)
    return Day(first, second, np.zeros(n))


def claims_and_refusals(rng: np.random.Generator, n: int = TRAFFIC) -> Day:
    """Shares of claims; refusals, which the first judge sees mostly; a second judge that fails on bad answers."""
    first = rng.beta(3.0, 1.2, n)
    made = rng.integers(2, 8, n)
    second = rng.binomial(made, 1 / (1 + np.exp(2.0 - 6.0 * first))) / made
    is_refusal = rng.random(n) < 0.08
    second[is_refusal] = np.nan
    first[is_refusal & (rng.random(n) < 0.8)] = np.nan
    return Day(first, second, np.where(first < 0.6, 0.3, 0.1))


def sessions(rng: np.random.Generator, n: int = TRAFFIC) -> Day:
    """Sessions of four turns, which are all right or all wrong; the first judge errs at the top of its scale."""
    session = np.arange(n) // 4
    level = rng.beta(3.0, 1.2, n // 4 + 1)[session]
    first = np.clip(level + 0.08 * rng.standard_normal(n), 0.0, 1.0)
    chance = np.where(level > 0.65, 0.93, 0.45)
    second = (rng.random(n // 4 + 1)[session] < chance).astype(np.float64)
    return Day(first, second, np.zeros(n))


def flat(rate: float) -> SecondRates:
    return SecondRates(lows=(0.0,), rates=(rate,), without=rate)


def judged(day: Day, rates: SecondRates, rng: np.random.Generator, sampled: float = SAMPLED) -> list[JudgedRun]:
    """Draw a day as the service does: a sample for the first judge, of it a part for the second."""
    chosen = np.flatnonzero(rng.random(len(day.first)) < sampled)
    second_draw, failure = rng.random(len(day.first)), rng.random(len(day.first))
    runs = []
    for place in chosen:
        first = None if np.isnan(day.first[place]) else float(day.first[place])
        rate = rates.of(first)
        run = JudgedRun(weight=1 / sampled, first=first)
        if second_draw[place] < rate:
            is_missing = bool(failure[place] < day.fails[place])
            value = day.second[place]
            second = None if is_missing or np.isnan(value) else float(value)
            run = replace(run, probability=rate, second=second, is_missing=is_missing)
        runs.append(run)
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("world", [plain, claims_and_refusals, sessions], ids=lambda world: world.__name__)
def test_a_thousand_days_are_unbiased_and_covered(world: World) -> None:
    rng = np.random.default_rng(20)
    errors, held = [], []
    for _ in range(DAYS):
        day = world(rng)
        found = combined_mean(judged(day, RATES, rng))
        assert found is not None
        errors.append(found.mean - day.truth)
        held.append(found.low <= day.truth <= found.high)
    assert abs(float(np.mean(errors))) < 0.005
    assert 0.93 <= float(np.mean(held)) <= 0.97


def test_rates_far_apart_leave_an_interval_that_holds_the_truth() -> None:
    rng, hits, days = np.random.default_rng(1), 0, 100
    for _ in range(days):
        level = rng.beta(4.0, 1.0, 600)
        first = np.clip(level + 0.12 * rng.standard_normal(600), 0.0, 1.0)
        second = (rng.random(600) < level).astype(np.float64)
        rates = np.where(first < 0.8, 0.6, 0.02)
        is_drawn = rng.random(600) < rates
        found = combined_mean(
            [
                JudgedRun(weight=1.0, first=x, probability=rate, second=y)
                if drawn
                else JudgedRun(weight=1.0, first=x)
                for x, y, rate, drawn in zip(
                    first.tolist(), second.tolist(), rates.tolist(), is_drawn.tolist(), strict=True
                )
            ]
        )
        assert found is not None
        hits += found.low <= second.mean() <= found.high
    assert hits >= 0.9 * days  # two in three where the few heavy runs counted as many


def test_a_useless_first_judge_leaves_the_mean_of_the_dear_one() -> None:
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(80):
        day = Day(rng.random(1000), (rng.random(1000) < 0.8).astype(np.float64), np.zeros(1000))
        found = combined_mean(judged(day, flat(0.1), rng, sampled=1.0))
        assert found is not None
        errors.append(found.mean - day.truth)
    assert abs(float(np.mean(errors))) < 3 * 0.04 / np.sqrt(80)  # three standard errors
    assert float(np.std(errors)) < 0.044  # of a uniform choice: .038


def width_of(days: Sequence[Sequence[JudgedRun]], past: Sequence[JudgedRun] = ()) -> float:
    found = [combined_mean(runs, past) for runs in days]
    return float(np.mean([one.high - one.low for one in found if one is not None]))


def test_a_good_first_judge_narrows_the_interval() -> None:
    rng = np.random.default_rng(4)
    days = [plain(rng, 2000) for _ in range(15)]
    unsure = [judged(day, RATES, rng, sampled=1.0) for day in days]
    share = float(np.mean([run.probability is not None for runs in unsure for run in runs]))
    uniform = [judged(day, flat(share), rng, sampled=1.0) for day in days]
    blind = width_of([[replace(run, first=None) for run in runs] for runs in uniform])
    assert width_of(unsure) < 0.85 * blind


def test_failures_that_follow_the_first_score_do_not_move_the_mean() -> None:
    rng = np.random.default_rng(5)
    errors, plain_errors = [], []
    for _ in range(60):
        day = replace(plain(rng, 2000), fails=np.zeros(2000))
        day = replace(day, fails=np.where(day.first < 0.6, 0.7, 0.0))
        runs = judged(day, flat(0.3), rng, sampled=1.0)
        found = combined_mean(runs)
        assert found is not None
        errors.append(found.mean - day.truth)
        plain_errors.append(np.mean([run.second for run in runs if run.second is not None]) - day.truth)
    assert float(np.mean(plain_errors)) > 0.04  # those that answered are too good
    assert abs(float(np.mean(errors))) < 0.006


def test_earlier_runs_teach_the_curve() -> None:
    rng = np.random.default_rng(8)
    before = judged(plain(rng), flat(0.5), rng)
    days = [judged(plain(rng), flat(0.04), rng) for _ in range(60)]
    assert width_of(days, before) < width_of(days)


def test_no_mean_below_ten_values() -> None:
    drawn = JudgedRun(weight=2.0, first=0.4, probability=0.5, second=1.0)
    missing = JudgedRun(weight=2.0, first=0.4, probability=0.5, is_missing=True)
    assert combined_mean([]) is None
    assert combined_mean([drawn] * 9 + [missing] * 50) is None
    assert combined_mean([drawn] * 10) is not None


@pytest.mark.parametrize(
    "run",
    [
        JudgedRun(weight=0.5, first=0.5),
        JudgedRun(weight=1.0, first=1.5),
        JudgedRun(weight=1.0, first=0.5, probability=0.0),
        JudgedRun(weight=1.0, first=0.5, probability=0.5, second=float("nan")),
    ],
)
def test_wrong_numbers_are_refused(run: JudgedRun) -> None:
    with pytest.raises(ValueError, match=r"lies|weight"):
        combined_mean([run])


def test_a_curve_of_one_class_stays_inside_the_scale() -> None:
    curve = fitted_curve(np.linspace(0, 1, 50), np.ones(50))
    assert 0.9 < float(curve.at(np.array([0.0]))[0]) < 1.0
