"""The worlds of the simulation are as they are described, and the reference of the rule measures what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ragtrace_dashboards import Config
from tests.monitoring.drift_worlds.named_worlds import UNSEEN, USUAL, WORLDS
from tests.monitoring.drift_worlds.worlds import (
    BINARY,
    CLUSTER,
    DAY,
    FIVE,
    HOUR,
    MIDDLING,
    NEAR_PERFECT,
    NINE,
    SMOOTH,
    UNINVENTED,
    WEEK,
    World,
)
from tests.monitoring.rule_f import SLOT_S, Readings, Sums, Window

CONFIG = Config()
STILL = World(of_day=0.0, history=10, days=4)


def drawn(world, per_day=50_000, months=10):
    sums, _drops = world.draw(np.random.default_rng(1), months, per_day)
    return sums


def means(sums, length=DAY):
    w, wx = (np.diff(it[:, ::length], axis=1) for it in (sums.w, sums.wx))
    return wx / w


@pytest.mark.parametrize(
    ("shape", "mean", "sd"),
    [(NINE, 0.92, 0.197), (FIVE, 0.92, 0.222), (BINARY, 0.92, 0.271), (NEAR_PERFECT, 0.99, 0.085),
     (SMOOTH, 0.92, 0.075), (MIDDLING, 0.71, 0.34)],
)  # fmt: skip
def test_the_shapes_have_their_means_and_spreads(shape, mean, sd):
    spread = np.sqrt(shape.good @ shape.atoms**2 - shape.good_mean**2)
    assert (shape.good_mean, spread) == (pytest.approx(mean, abs=0.01), pytest.approx(sd, abs=0.01))
    assert shape.bad @ shape.atoms < 0.5


def test_traffic_has_a_rhythm_of_day_and_week():
    traffic = np.diff(drawn(World(history=10, days=60)).w, axis=1)
    of_day = traffic.reshape(10, 70, DAY).sum(axis=(0, 1)).reshape(24, HOUR).sum(axis=1)
    assert of_day.max() / of_day.mean() == pytest.approx(1.75, abs=0.02)
    days = traffic.reshape(10, 70, DAY).sum(axis=2)
    assert days.mean() == pytest.approx(50_000, rel=0.01)
    assert days.min() / days.max() == pytest.approx(0.37, abs=0.02)


def test_the_daily_mean_wanders():
    by_day = means(drawn(World(history=10, days=60, wander=0.009, of_day=0.0)))
    assert by_day.std() == pytest.approx(0.009, rel=0.1)
    assert np.corrcoef(by_day[:, :-1].ravel(), by_day[:, 1:].ravel())[0, 1] == pytest.approx(0.7, abs=0.1)


def test_the_mean_wanders_within_the_day():
    by_hour = means(drawn(World(history=10, days=10, within=0.02, of_day=0.0), per_day=500_000), HOUR)
    near, far = (np.corrcoef(by_hour[:, :-lag].ravel(), by_hour[:, lag:].ravel())[0, 1] for lag in (4, 24))
    assert near == pytest.approx(np.exp(-1), abs=0.1)
    assert abs(far) < 0.1


def test_weekends_and_releases_move_the_level():
    by_day = means(drawn(World(history=10, days=60, weekend=0.03, of_day=0.0)))
    assert np.sort(by_day, axis=1)[:, :18].mean() == pytest.approx(0.89, abs=0.002)
    by_day = means(drawn(World(history=10, days=60, release=0.01, is_walk=True, of_day=0.0)))
    steps = np.abs(np.diff(by_day[:, ::7], axis=1))
    assert steps.mean() == pytest.approx(0.01, abs=0.003)


def test_a_drop_begins_at_a_random_hour_and_a_slide_takes_its_days():
    sums, begins = replace(STILL, fall_to=0.85, days=9).draw(np.random.default_rng(1), 200, 50_000)
    assert len({begin % DAY // HOUR for begin in begins}) == 24
    assert (begins >= STILL.history * DAY).all()
    assert (begins < STILL.history * DAY + WEEK).all()
    assert means(sums)[:, -1].mean() == pytest.approx(0.85, abs=0.002)
    assert means(sums)[:, : STILL.history].mean() == pytest.approx(0.92, abs=0.002)
    slide, begins = replace(STILL, fall_to=0.80, ramp_days=4, days=12).draw(np.random.default_rng(1), 50, 50_000)
    half = [means(slide, HOUR)[at, (begin + 2 * DAY) // HOUR] for at, begin in enumerate(begins)]
    assert np.mean(half) == pytest.approx(0.86, abs=0.005)


def test_a_topic_adds_traffic_and_bad_answers():
    usual, topic = (drawn(replace(STILL, history=60, topic_traffic=it), 500_000) for it in (0.0, 1.0))
    assert topic.w[:, -1].mean() / usual.w[:, -1].mean() == pytest.approx(1 + 2 / 96, abs=0.01)
    assert np.diff(means(topic, HOUR), axis=1).min() < -0.05 < np.diff(means(usual, HOUR), axis=1).min()


def test_a_topic_lasts_for_its_hours():
    short, long = (
        drawn(replace(STILL, history=60, topic_traffic=1.0, topic_hours=it), 500_000).w[:, -1].mean()
        for it in (2, 6)
    )
    assert (long - 64 * 500_000) / (short - 64 * 500_000) == pytest.approx(3, abs=0.4)


def test_a_holiday_is_a_quiet_week_of_lower_scores():
    world = replace(STILL, history=10, days=30, holiday=(0.25, 0.02))
    usual, holiday = (drawn(it) for it in (replace(world, holiday=(1.0, 0.0)), world))
    days = [np.diff(it.w[:, ::DAY], axis=1) for it in (usual, holiday)]
    is_holiday = days[1] / days[0] < 0.5
    assert (is_holiday.sum(axis=1) == 7).all()
    assert not is_holiday[:, :10].any()
    assert (days[1] / days[0])[is_holiday].mean() == pytest.approx(0.25, abs=0.01)
    assert (means(usual) - means(holiday))[is_holiday].mean() == pytest.approx(0.02, abs=0.002)


def test_a_month_ends_with_two_busy_days_of_lower_scores():
    world = replace(STILL, history=60, days=30, month_end=(1.5, 0.015))
    usual, ends = (drawn(it) for it in (replace(world, month_end=(1.0, 0.0)), world))
    more = np.diff(ends.w[:, ::DAY], axis=1) / np.diff(usual.w[:, ::DAY], axis=1)
    is_end = more > 1.25
    assert (is_end.sum(axis=1) == 6).all()
    assert more[is_end].mean() == pytest.approx(1.5, abs=0.02)
    assert (means(usual) - means(ends))[is_end].mean() == pytest.approx(0.015, abs=0.002)


def test_the_hour_after_a_deploy_is_lower():
    usual, deploys = (means(drawn(replace(STILL, history=60, deploy=it), 2_000_000), HOUR) for it in (0.0, 0.1))
    assert np.sum(usual - deploys, axis=1).mean() == pytest.approx(0.1 * 64 / 7, rel=0.1)
    assert (deploys < 0.89).mean() == pytest.approx(1.5 / 168, rel=0.4)  # an hour of the clock holds one, or a part


def test_repeated_questions_are_few_clusters():
    """Of 50 questions by Zipf's law, however often they are asked: four hours have at most 12 effective scores."""
    few, many = (drawn(World(questions=50, history=10, days=4), per_day=it) for it in (1_000, 20_000))
    n = [np.nanmean(Window.of(it, 86_400).n_eff[:, 2 * DAY :: DAY]) for it in (few, many)]
    assert 50 <= n[0] <= n[1] <= 75
    world = World(of_day=0.0, questions=50, history=10, days=4)
    sums = drawn(world, per_day=1_000, months=200)
    day = Window.of(sums, 86_400, every=DAY)
    assert (day.s2 / day.n_eff)[:, 1:].mean() == pytest.approx(means(sums).var(axis=0).mean(), rel=0.15)


def test_inventions_are_rare_and_another_tenth_of_them_is_a_fall():
    assert UNINVENTED.good[-1] == pytest.approx(0.945)
    assert UNINVENTED.good_mean == pytest.approx(0.97, abs=0.001)
    assert UNINVENTED.bad_share(0.06) == pytest.approx(0.11, abs=0.005)


@pytest.mark.parametrize(
    ("name", "effect"),
    [("sessions of three turns", 3), ("sessions of twelve turns", 12), ("every question twice within hours", 2)],
)
def test_clusters_are_counted_as_one(name, effect):
    for world, share in ((WORLDS[name], 1 / effect), (replace(WORLDS[name], is_clustered=False), 1)):
        sums = drawn(replace(world, history=10, days=10, growth=1.0), per_day=1_000)
        assert (sums.w[:, -1] ** 2 / sums.w2[:, -1] / sums.w[:, -1]).mean() == pytest.approx(share, abs=0.02)


def test_turns_of_a_session_share_their_score():
    """The variance of a mean from clusters is that of the means over many services; from scores it is too small."""
    world = replace(STILL, turns=3, lags=(0,))
    sums = drawn(world, per_day=200, months=400)
    true = means(sums).var(axis=0).mean()
    known, unknown = (Window.of(it, 86_400) for it in (sums, drawn(replace(world, is_clustered=False), 200, 400)))
    assert np.nanmean((known.s2 / known.n_eff)[:, DAY::DAY]) == pytest.approx(true, rel=0.15)
    assert np.nanmean((unknown.s2 / unknown.n_eff)[:, DAY::DAY]) < 0.5 * true


def test_the_reference_measures_the_three_variances():
    """S2 is the variance of the drop without wander, R2 that of sessions, and T2 that of the wander."""
    still = Readings.of(drawn(World(of_day=0.0, days=1), 1_000, 100), CONFIG, every=HOUR)
    day = still.found["day"]
    assert np.nanvar(day.drop[:, -1]) == pytest.approx(np.nanmean(day.s2[:, -1]), rel=0.35)
    assert np.nanmean(day.r2[:, -1]) == pytest.approx(np.nanmean(day.s2[:, -1]), rel=0.15)
    turns = World(of_day=0.0, days=1, turns=3, is_clustered=False)
    told = Readings.of(drawn(turns, 1_000, 100), CONFIG, every=HOUR).found["day"]
    assert np.nanmean(told.r2[:, -1]) > 2 * np.nanmean(told.s2[:, -1])
    calm, rough = (
        Readings.of(drawn(World(of_day=0.0, days=1, wander=it), 5_000, 50), CONFIG, every=HOUR).t2["day"][:, -1]
        for it in (0.0, 0.02)
    )
    assert calm == pytest.approx(0.197**2 / CONFIG.wander_scores, rel=0.05)  # a little less than the prior
    assert np.median(rough) == pytest.approx(CONFIG.wander_cap**2)


def test_a_young_service_is_compared_once_its_baseline_holds_enough():
    sums = drawn(replace(USUAL, history=1, days=9), per_day=200, months=5)
    drop = Readings.of(sums, CONFIG, every=HOUR).found["day"].drop
    assert np.isnan(drop[:, :24]).all()
    assert not np.isnan(drop[:, -24:]).any()


def test_looking_every_hour_sees_the_same_at_that_hour():
    sums = drawn(replace(USUAL, days=2), per_day=500, months=3)
    often, hourly = (Readings.of(sums, CONFIG, every=it) for it in (1, HOUR))
    for name, found in hourly.found.items():
        assert np.allclose(often.found[name].drop[:, ::HOUR], found.drop, equal_nan=True)
        assert np.allclose(often.found[name].r2[:, ::HOUR], found.r2, equal_nan=True)
        assert often.t2[name][:, ::HOUR].mean() == pytest.approx(hourly.t2[name].mean(), rel=0.05)


def test_sums_of_scores_with_weights():
    sums = Sums.of_scores([[(0.5, 2.0), (1.0, 1.0)], [], [(0.0, 1.0)]])
    assert [list(it) for it in (sums.w, sums.wx)] == [[0, 3, 3, 4], [0, 2, 2, 2]]
    assert [float(it[-1]) for it in (sums.w2, sums.w2x, sums.w2x2)] == [6, 3, 2]


def totals(world, scores):
    """Return the five sums over all scores, as the counters have them."""
    blocks = scores.at // (CLUSTER * SLOT_S) if world.questions else np.zeros_like(scores.at)
    _, clusters = np.unique(np.stack([scores.clusters, blocks]), axis=1, return_inverse=True)
    w, wx = (np.bincount(clusters.ravel(), weights=it) for it in (scores.weights, scores.weights * scores.values))
    return [it.sum() for it in (w, wx, w * w, w * wx, wx * wx)]


def daily_means(scores, days):
    day = (scores.at // 86_400).astype(int)
    w, wx = (
        np.bincount(day, weights=it, minlength=days) for it in (scores.weights, scores.weights * scores.values)
    )
    return wx / w


@pytest.mark.parametrize(
    "world",
    [
        WORLDS["sessions of three turns"],
        WORLDS["the same, not known as sessions"],
        WORLDS["50 questions, asked again and again"],
        UNSEEN["strata of weights 1 and 10"],
        UNSEEN["wander, weekends, topics and sessions"],
        replace(USUAL, fall_to=0.7),
    ],
)
def test_single_scores_have_the_moments_of_the_sums(world):
    world, services = replace(world, history=7, days=7), 80
    sums = drawn(world, per_day=400, months=services)
    rng = np.random.default_rng(2)
    single = [next(world.draw_scores(rng, 400))[0] for _ in range(services)]
    expected = np.stack([it[:, -1] for it in (sums.w, sums.wx, sums.w2, sums.w2x, sums.w2x2)], axis=1)
    found = np.array([totals(world, it) for it in single])
    error = np.sqrt((expected.var(axis=0) + found.var(axis=0)) / services)
    assert (np.abs(expected.mean(axis=0) - found.mean(axis=0)) < 4 * error).all()
    by_day = np.array([daily_means(it, 14) for it in single])
    assert by_day.var(axis=1).mean() == pytest.approx(means(sums).var(axis=1).mean(), rel=0.25)


def test_metrics_of_single_scores_have_the_runs_of_their_service():
    world = replace(WORLDS["sessions of three turns"], history=7, days=7, fall_to=0.8)
    drawing = world.draw_scores(np.random.default_rng(3), 500)
    (first, begins), (second, also) = next(drawing), next(drawing)
    assert (first.at, first.clusters, begins) == (pytest.approx(second.at), pytest.approx(second.clusters), also)
    assert (np.diff(first.at) >= 0).all()
    assert first.at[-1] < 14 * 86_400
    assert (first.values != second.values).any()
    by_session = {}
    for session, value in zip(first.clusters, first.values, strict=True):
        assert by_session.setdefault(session, value) == value
