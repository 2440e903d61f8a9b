"""The step of a mean: found at its onset whatever its age, and not found where a mean wanders or too few tell."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from ragtrace.stats import Slice
from ragtrace.stats.change.step import (
    CERTAIN_P,
    LENGTHS_S,
    PART_P,
    Timeline,
    find_step,
    step_since,
    surest_step,
)

HOUR = 3_600.0
DAY = 24 * HOUR
NOW = 1_800_000_000.0
BETA = Slice("tag", "beta")


def traffic(values, *, days=None, at=None, weights=None, clusters=None, ends=(0.0, 1.0)):
    """Return scores that came evenly over some days until now."""
    n = len(values)
    return Timeline(
        at=NOW - days * DAY * (1.0 - (np.arange(n) + 1.0) / n) if at is None else np.asarray(at, dtype=float),
        values=np.asarray(values, dtype=float),
        weights=np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        clusters=np.arange(n) if clusters is None else np.asarray(clusters),
        ends=ends,
    )


def ages(n, days):
    """Return the hours before now of as many scores, as `traffic` places them."""
    return days * 24.0 * (1.0 - (np.arange(n) + 1.0) / n)


def coins(rng, mean):
    return (rng.random(len(mean)) < mean).astype(float)


def hours_ago(step):
    return (NOW - step.since) / HOUR


@pytest.mark.parametrize("hours", [length / HOUR for length in LENGTHS_S])
def test_a_step_is_found_with_its_size_at_its_onset_however_old_it_is(hours):
    n, days = 16_000, 28.0
    scores = traffic(coins(np.random.default_rng(1), 0.93 - 0.5 * (ages(n, days) < hours)), days=days)
    step = find_step(scores)
    assert step.is_shown
    assert step.part is None
    assert hours_ago(step) == pytest.approx(hours, rel=0.15, abs=0.5)
    assert step.worsening == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("hours", [2.2, 9.0, 36.0, 130.0])
def test_an_onset_between_two_lengths_is_found(hours):
    n, days = 16_000, 28.0
    scores = traffic(coins(np.random.default_rng(2), 0.93 - 0.3 * (ages(n, days) < hours)), days=days)
    assert hours_ago(find_step(scores)) == pytest.approx(hours, rel=0.15, abs=0.5)


def test_a_mean_that_is_worse_again_since_two_onsets_is_split_near_the_window_that_is_surest():
    n, days = 8_000, 14.0
    age = ages(n, days)
    scores = traffic(coins(np.random.default_rng(3), 0.95 - 0.1 * (age < 100.0) - 0.4 * (age < 5.0)), days=days)
    assert hours_ago(find_step(scores)) == pytest.approx(5.0, abs=1.0)


@pytest.mark.parametrize(("fall", "is_shown"), [(0.015, False), (0.05, True)])
def test_a_fall_within_the_tolerance_is_none_however_many_scores_show_it(fall, is_shown):
    n, days = 40_000, 14.0
    values = np.random.default_rng(4).normal(0.8, 0.05, n) - fall * (ages(n, days) < 24.0)
    assert find_step(traffic(values, days=days)).is_shown == is_shown


@pytest.mark.parametrize(("ends", "is_shown"), [((0.0, 1.0), True), ((0.0, 10.0), False), (None, True)])
def test_the_tolerance_is_a_part_of_the_scale(ends, is_shown):
    n, days = 4_000, 14.0
    values = np.random.default_rng(4).normal(0.8, 0.05, n) - 0.1 * (ages(n, days) < 24.0)
    assert find_step(traffic(values, days=days, ends=ends)).is_shown == is_shown


def test_a_mean_needs_standard_errors_beyond_the_tolerance_and_a_part_needs_more():
    step = find_step(traffic(coins(np.random.default_rng(5), np.full(2_000, 0.9)), days=14.0))
    assert type(step)(since=0.0, worsening=1.0, surety=3.25, wander=0.0).p == pytest.approx(CERTAIN_P, rel=0.01)
    assert type(step)(since=0.0, worsening=1.0, surety=4.5, wander=0.0).p == pytest.approx(PART_P, rel=0.01)
    for surety, part, is_shown in ((3.24, None, False), (3.26, None, True), (4.4, BETA, False), (4.6, BETA, True)):
        assert type(step)(since=0.0, worsening=1.0, surety=surety, wander=0.0, part=part).is_shown == is_shown


# -- what a mean does at any time --


def wandering(rng, days, each, spread):
    """Return a mean that is another one every day, for so many scores a day."""
    return np.repeat(0.85 + spread * rng.standard_normal(days), each)


def test_a_mean_that_wanders_needs_a_larger_change():
    rng, days, each, fall = np.random.default_rng(6), 28, 400, 0.12
    age = ages(days * each, days)
    steady, wild = (
        find_step(
            traffic(coins(rng, np.clip(wandering(rng, days, each, spread) - fall * (age < 24), 0, 1)), days=days)
        )
        for spread in (0.0, 0.06)
    )
    assert (steady.is_shown, wild.is_shown) == (True, False)
    assert wild.wander > 10.0 * steady.wander


def test_a_mean_that_only_wanders_is_hardly_ever_called_worse():
    rng, days, each = np.random.default_rng(7), 14, 300
    shown = [
        find_step(traffic(coins(rng, np.clip(wandering(rng, days, each, 0.02), 0, 1)), days=days)).is_shown
        for _ in range(200)
    ]
    assert sum(shown) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("each", [200, 1_000])
def test_a_daily_look_at_a_mean_that_only_wanders_finds_a_fall_in_at_most_a_twentieth_of_the_months(each):
    """As case 06 of ../shared/cases/investigate, by the search itself: two weeks of history at each look."""
    rng, months, told = np.random.default_rng(4), 100, 0
    for _ in range(months):
        level, values = 0.0, []
        for _ in range(44):
            level = 0.7 * level + 0.0043 * rng.standard_normal()
            values.append(coins(rng, np.full(each, 0.92 + level)))
        looks = (np.concatenate(values[day - 13 : day + 1]) for day in range(14, 44))
        told += any(find_step(traffic(look, days=14.0)).is_shown for look in looks)
    assert told <= 0.05 * months, f"{told} of {months}"


def test_a_bad_hour_of_each_day_is_no_step():
    n, days = 14 * 2_400, 14.0
    age = ages(n, days)
    scores = traffic(coins(np.random.default_rng(8), 0.9 - 0.15 * (age % 24.0 < 2.0)), days=days)
    assert not find_step(scores).is_shown


def test_scores_that_stay_are_no_step_and_equal_ones_have_no_error():
    assert not find_step(traffic(np.full(500, 1.0), days=14.0)).is_shown
    assert find_step(traffic(np.where(ages(500, 14.0) < 48.0, 0.5, 1.0), days=14.0)).is_shown


# -- how many scores --


@pytest.mark.parametrize("n", [0, 1, 19, 39])
def test_too_few_scores_tell_nothing(n):
    assert find_step(traffic(np.full(n, 0.5), days=14.0)) is None
    assert surest_step(traffic(np.full(n, 0.5), days=14.0), {BETA: np.ones(n, dtype=bool)}) is None


def test_twenty_scores_in_the_window_and_before_it_are_enough():
    at = NOW - np.r_[np.linspace(13 * DAY, 2 * DAY, 20), np.linspace(HOUR, 0.0, 20)]
    values = np.r_[np.full(20, 0.9), np.full(20, 0.1)] + np.tile([0.0, 0.05], 20)
    assert find_step(traffic(values, at=at)).is_shown
    assert find_step(traffic(values[1:], at=at[1:])) is None
    assert find_step(traffic(values[:-1], at=at[:-1])) is None


def test_a_young_store_of_two_hours_shows_its_fall():
    n, days = 300, 2.0 / 24.0
    values = np.clip(np.random.default_rng(9).normal(0.9, 0.15, n) - 0.18 * (ages(n, days) < 0.7), 0.0, 1.0)
    step = find_step(traffic(values, days=days))
    assert step.is_shown
    assert hours_ago(step) == pytest.approx(0.7, abs=0.1)


def test_a_session_is_one_piece_of_evidence():
    n, days = 600, 14.0
    age = ages(n, days)
    values = coins(np.random.default_rng(10), 0.9 - 0.25 * (age < 48.0))
    assert find_step(traffic(values, days=days)).is_shown
    sessions = np.where(age < 48.0, 10_000, np.arange(n))
    assert not find_step(traffic(values, days=days, clusters=sessions)).is_shown
    assert step_since(traffic(values, days=days, clusters=sessions), NOW - 2 * DAY) is None
    once, often = (
        find_step(
            traffic(
                np.repeat(values, turns),
                at=np.repeat(NOW - age * HOUR, turns),
                clusters=np.repeat(np.arange(n), turns),
            )
        )
        for turns in (1, 3)
    )
    assert 0.75 * once.surety < often.surety < 1.05 * once.surety, "not the root of three times as sure"


def test_one_heavy_score_is_no_window():
    weights = np.ones(400)
    weights[-1] = 400.0
    assert step_since(traffic(np.full(400, 0.5), days=14.0, weights=weights), NOW - DAY) is None


# -- the direction --


def test_both_directions_are_the_same_turned_round():
    n, days = 4_000, 14.0
    values = coins(np.random.default_rng(11), 0.93 - 0.3 * (ages(n, days) < 12.0))
    fall, rise = find_step(traffic(values, days=days)), find_step(traffic(1.0 - values, days=days), worse=1)
    assert fall.is_shown
    assert (rise.since, rise.is_shown) == (fall.since, True)
    assert (rise.worsening, rise.surety) == pytest.approx((fall.worsening, fall.surety))
    for better, worse in ((1.0 - values, -1), (values, 1)):
        assert not find_step(traffic(better, days=days), worse=worse).is_shown


# -- parts of the traffic --


def of_a_part(rng, n, days, *, share, fall, hours=24.0):
    is_beta = rng.random(n) < share
    scores = traffic(coins(rng, 0.93 - fall * (is_beta & (ages(n, days) < hours))), days=days)
    return scores, {BETA: is_beta, Slice("tag", "web"): rng.random(n) < 0.5}


def test_a_part_that_fell_alone_is_found_where_the_mean_of_all_hardly_moved():
    scores, parts = of_a_part(np.random.default_rng(12), 8_000, 14.0, share=0.08, fall=0.5)
    assert not find_step(scores).is_shown
    step = surest_step(scores, parts)
    assert (step.part, step.is_shown) == (BETA, True)
    assert step.worsening == pytest.approx(0.5, abs=0.15)
    assert hours_ago(step) == pytest.approx(24.0, abs=4.0)


def test_where_all_fell_no_part_is_looked_at():
    scores, parts = of_a_part(np.random.default_rng(12), 8_000, 14.0, share=0.5, fall=0.5)
    step = surest_step(scores, parts)
    assert (step.part, step.is_shown) == (None, True)


def test_a_part_of_less_than_a_twentieth_of_the_scores_and_one_of_all_are_not_looked_at():
    scores, parts = of_a_part(np.random.default_rng(13), 8_000, 14.0, share=0.04, fall=0.6)
    assert find_step(scores.only(parts[BETA])).surety > 4.5
    assert surest_step(scores, parts) == find_step(scores)
    assert surest_step(scores, {BETA: np.ones(len(scores), dtype=bool)}) == find_step(scores)


def test_a_part_needs_more_than_all():
    scores, parts = of_a_part(np.random.default_rng(24), 3_000, 14.0, share=0.08, fall=0.5)
    assert 3.0 < find_step(scores.only(parts[BETA])).surety < 4.5
    assert not surest_step(scores, parts).is_shown


# -- a time that a person names --


def test_a_step_at_a_named_time_is_that_of_the_scores_since_then():
    n, days = 4_000, 14.0
    scores = traffic(coins(np.random.default_rng(14), 0.93 - 0.3 * (ages(n, days) < 12.0)), days=days)
    step = step_since(scores, NOW - 12 * HOUR)
    assert (step.since, step.is_shown) == (NOW - 12 * HOUR, True)
    assert step_since(scores, NOW + 1.0) is None
    assert step_since(scores, NOW - 15 * DAY) is None


# -- times --


@pytest.mark.parametrize("n", [1, 40, 500])
def test_scores_of_one_moment_have_no_before(n):
    scores = traffic(np.linspace(1.0, 0.0, n), at=np.full(n, NOW))
    assert find_step(scores) is None
    assert step_since(scores, NOW) is None


@pytest.mark.parametrize("length", [0.0, 1e-6, 0.01])
def test_a_window_of_no_length_is_compared_in_no_time(length):
    """A burst of runs that ended together, after two weeks of traffic."""
    at = np.r_[NOW - np.linspace(14 * DAY, HOUR, 2_000), NOW - np.linspace(length, 0.0, 60)]
    values = coins(np.random.default_rng(15), np.r_[np.full(2_000, 0.95), np.full(60, 0.4)])
    tracemalloc.start()
    step = step_since(traffic(values, at=at), NOW - length)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert step.is_shown
    assert most < 10_000_000, "no part of a second is a window of its own"


def test_runs_that_ended_in_groups_of_one_time_are_split_between_two_groups():
    n = 2_000
    at = NOW - np.repeat(np.arange(99.0, -1.0, -1.0), 20) * HOUR
    scores = traffic(coins(np.random.default_rng(16), 0.93 - 0.4 * (NOW - at < 9.5 * HOUR)), at=at)
    step = find_step(scores)
    assert step.is_shown
    assert step.since == NOW - 9 * HOUR
    assert int(scores.split(step.since).is_window.sum()) == n // 10


def test_the_work_grows_with_the_scores_and_not_with_their_square():
    def work_s(n):
        scores, parts = of_a_part(np.random.default_rng(17), n, 14.0, share=0.3, fall=0.0)
        taken = []
        for _ in range(5):
            began = time.process_time()
            surest_step(scores, parts)
            taken.append(time.process_time() - began)
        return min(taken)

    assert work_s(160_000) < 24.0 * work_s(20_000)


# -- what is over, what is gone, and what comes again and again --


@pytest.mark.parametrize(("begun", "over", "low"), [(32.0, 24.0, 0.33), (120.0, 72.0, 0.63), (168.0, 120.0, 0.63)])
def test_a_fall_that_is_over_is_told_with_its_end_and_is_none(begun, over, low):
    n, days = 8_000, 14.0
    age = ages(n, days)
    was_bad = (age < begun) & (age >= over)
    step = find_step(traffic(coins(np.random.default_rng(20), np.where(was_bad, low, 0.93)), days=days))
    assert step.is_sure
    assert not step.is_shown
    assert hours_ago(step) == pytest.approx(begun, abs=2.0)
    assert (NOW - step.ended) / HOUR == pytest.approx(over, abs=2.0)


def test_a_fall_that_lasts_is_told_before_one_that_is_over():
    n, days = 16_000, 14.0
    age = ages(n, days)
    mean = np.select([age < 8.0, (age < 90.0) & (age >= 80.0)], [0.6, 0.5], 0.93)
    step = find_step(traffic(coins(np.random.default_rng(21), mean), days=days))
    assert step.is_shown
    assert hours_ago(step) == pytest.approx(8.0, abs=1.0)


def test_a_question_that_is_asked_all_the_time_hides_nothing():
    rng, n, days = np.random.default_rng(22), 8_000, 14.0
    age, is_probe = ages(n, days), np.random.default_rng(23).random(8_000) < 0.2
    values = coins(rng, np.where(is_probe, 0.93, 0.93 - 0.38 * (age < 48.0)))
    step = find_step(traffic(values, days=days, clusters=np.where(is_probe, n, np.arange(n))))
    assert step.is_shown
    assert hours_ago(step) == pytest.approx(48.0, abs=3.0)


@pytest.mark.parametrize("share", [0.6, 0.3, 0.15])
def test_weekends_with_less_traffic_are_no_fall(share):
    rng, shown = np.random.default_rng(24), 0
    for first in range(12):  # the looks of twelve days, each at 14 days before
        day = np.arange(14) + first
        weekend = day % 7 >= 5
        each = np.where(weekend, int(1_000 * share), 1_000)
        mean = np.repeat(0.92 - 0.1 * weekend, each)
        at = np.concatenate([NOW - (14 - i) * DAY + DAY * (np.arange(n) + 1) / n for i, n in enumerate(each)])
        step = find_step(traffic(coins(rng, mean), at=at))
        shown += step.is_shown
    assert shown <= 2, "weekends of every week"


def test_a_part_that_is_gone_is_not_looked_at_as_if_its_last_day_were_today():
    rng, n, days = np.random.default_rng(25), 10_000, 14.0
    age = ages(n, days)
    is_old = (age > 160.0) & (rng.random(n) < 0.3)
    values = coins(rng, 0.93 - 0.5 * (is_old & (age < 172.0)))
    scores = traffic(values, days=days)
    assert not surest_step(scores, {BETA: is_old}).is_shown


def test_a_part_counts_only_where_all_runs_together_are_worse():
    rng, n, days = np.random.default_rng(26), 10_000, 14.0
    age, is_beta = ages(n, days), rng.random(n) < 0.1
    values = coins(rng, np.where(is_beta, 0.9 - 0.5 * (age < 24.0), 0.7 + 0.25 * (age < 24.0)))
    assert not surest_step(traffic(values, days=days), {BETA: is_beta}).is_shown


def test_an_onset_is_never_placed_among_scores_of_one_time():
    nights = 14
    at = np.repeat(NOW - DAY * np.arange(nights - 1, -1, -1), 300)
    for seed in range(20):
        values = coins(np.random.default_rng(seed), np.where(at > NOW - 2.5 * DAY, 0.6, 0.93))
        step = find_step(traffic(values, at=at))
        assert step.is_shown
        assert hours_ago(step) == 48.0
