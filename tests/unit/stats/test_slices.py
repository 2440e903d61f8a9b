"""The search for slices, in simulated worlds: what it names, and that it names nothing where nothing stands out."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats import Slice, TwoPeriods, adjusted, change_place, mean_change
from ragtrace.stats.change.slices import explain
from tests.unit.stats.slices_worlds import World

WORLDS = 200


def worlds(kind, n=WORLDS, **options):
    rng = np.random.default_rng(7)
    for _ in range(n):
        world = World(rng, kind, **options)
        yield world, explain(world.scores, world.members)


def scores(values, is_window, *, weights=None, clusters=None):
    n = len(values)
    return TwoPeriods(
        values=np.asarray(values, dtype=float),
        weights=np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        clusters=np.arange(n) if clusters is None else np.asarray(clusters),
        is_window=np.asarray(is_window, dtype=bool),
    )


@pytest.mark.slow
def test_a_drop_in_one_slice_names_this_slice_first():
    found = [(world.slice, result.slices) for world, result in worlds("slice")]
    first = sum(bool(named) and named[0].slice == wanted for wanted, named in found)
    assert first >= 0.95 * len(found), f"{first} of {len(found)}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "everywhere"])
def test_nothing_is_named_where_no_slice_falls(kind):
    named = sum(bool(result.slices) for _, result in worlds(kind))
    assert named <= 0.05 * WORLDS, f"{named} of {WORLDS}"


def test_the_parts_of_a_slice_add_up():
    for _, result in worlds("slice", 10):
        for it in result.slices:
            assert it.by_mean + it.by_share == pytest.approx(it.explained)
            assert it.explained == pytest.approx(result.change.value - it.outside.value)
            assert it.low < it.explained < it.high < 0.0


def test_a_topic_that_grows_is_explained_by_its_share():
    rng = np.random.default_rng(1)
    is_window = np.arange(3_000) >= 2_000
    is_topic = rng.random(3_000) < np.where(is_window, 0.5, 0.1)
    values = np.clip(np.where(is_topic, 0.5, 0.9) + 0.1 * rng.standard_normal(3_000), 0.0, 1.0)
    found = explain(
        scores(values, is_window), {Slice("tag", "hot"): is_topic, Slice("k", "4"): rng.random(3_000) < 0.5}
    )
    [hot] = found.slices
    assert hot.slice.value == "hot"
    assert hot.by_share / hot.explained == pytest.approx(1.0, abs=0.1)
    assert hot.explained / found.change.value == pytest.approx(1.0, abs=0.1)
    assert found.rest is not None
    assert found.rest.low < 0.0 < found.rest.high


def test_the_same_runs_are_named_once():
    rng = np.random.default_rng(2)
    is_window, is_beta = np.arange(2_000) >= 1_000, rng.random(2_000) < 0.3
    values = rng.normal(0.8, 0.1, 2_000) - 0.2 * (is_window & is_beta)
    nearly = is_beta & (rng.random(2_000) < 0.9)
    found = explain(
        scores(values, is_window),
        {Slice("tag", "beta"): is_beta, Slice("model", "new"): is_beta.copy(), Slice("corpus", "b"): nearly},
    )
    assert len(found.slices) == 1
    assert found.slices[0].slice.value in {"beta", "new"}


def test_two_slices_that_fall_are_both_named_and_the_rest_is_not_shown_to_change():
    rng = np.random.default_rng(3)
    is_window = np.arange(4_000) >= 2_000
    one, other = rng.random(4_000) < 0.2, rng.random(4_000) < 0.2
    values = rng.normal(0.8, 0.1, 4_000) - 0.2 * (is_window & (one | other))
    found = explain(scores(values, is_window), {Slice("tag", "one"): one, Slice("corpus", "other"): other})
    assert {it.slice.value for it in found.slices} == {"one", "other"}
    assert found.rest.low < 0.0 < found.rest.high


def test_a_slice_that_is_shown_to_be_worse_is_named_first():
    """Another slice has the stronger evidence, and nearly the same runs."""
    rng = np.random.default_rng(3)
    is_window, is_app = np.arange(800) >= 400, rng.random(800) < 0.5
    is_bad = is_window & is_app & (rng.random(800) < 0.9)
    values = rng.normal(0.9, 0.05, 800) - 0.5 * is_bad
    app, long = Slice("tag", "app"), Slice("query_length", "over 71")
    given = scores(values, is_window), {app: is_app, long: is_bad | (rng.random(800) < 0.2)}
    assert explain(*given).slices[0].slice == long
    assert [it.slice for it in explain(*given, shown=app).slices] == [app]
    assert explain(*given, shown=Slice("tag", "unknown")) == explain(*given)


def test_the_wander_of_such_periods_widens_the_interval_of_the_change_alone():
    rng = np.random.default_rng(3)
    is_window, is_beta = np.arange(800) >= 400, rng.random(800) < 0.3
    values = rng.normal(0.8, 0.1, 800) - 0.2 * (is_window & is_beta)
    given = scores(values, is_window), {Slice("tag", "beta"): is_beta}
    calm, wild = explain(*given), explain(*given, wander=0.01)
    assert wild.change.value == calm.change.value
    half = [(it.change.high - it.change.low) / 2.0 for it in (calm, wild)]
    assert half[1] == pytest.approx(np.hypot(half[0], 1.96 * 0.1), rel=0.02)
    assert wild.change.p > calm.change.p
    assert wild.slices == calm.slices


def test_where_higher_is_worse_a_rise_is_explained():
    rng = np.random.default_rng(4)
    is_window, is_beta = np.arange(2_000) >= 1_000, rng.random(2_000) < 0.3
    values = rng.normal(0.2, 0.1, 2_000) + 0.2 * (is_window & is_beta)
    given = scores(values, is_window), {Slice("tag", "beta"): is_beta}
    assert explain(*given, worse=-1).slices == ()
    assert [it.slice.value for it in explain(*given, worse=1).slices] == ["beta"]


def test_a_slice_of_few_sessions_is_not_tested():
    rng = np.random.default_rng(5)
    clusters = np.arange(2_000) // 20
    is_beta = clusters % 10 == 0  # 200 runs, of five sessions before and five in the window
    values = rng.normal(0.8, 0.1, 2_000)
    found = explain(scores(values, np.arange(2_000) >= 1_000, clusters=clusters), {Slice("tag", "b"): is_beta})
    assert found.tested == 0


def test_no_scores_in_a_period_change_nothing():
    empty = scores([0.5] * 30, [False] * 30)
    found = explain(empty, {Slice("tag", "b"): np.arange(30) < 15})
    assert (found.change.value, found.change.low, found.change.p, found.slices) == (0.0, None, 1.0, ())


def test_the_interval_of_a_change_holds_the_truth_also_for_sessions():
    rng, held, n = np.random.default_rng(6), 0, 400
    for _ in range(n):
        shared = np.repeat(rng.random(100), 3)
        uniform = np.where(rng.random(300) < 0.6, shared, rng.random(300))
        is_window = np.arange(300) >= 150
        values = (uniform < np.where(is_window, 0.7, 0.8)).astype(float)
        found = mean_change(scores(values, is_window, clusters=np.arange(300) // 3))
        held += found.low <= -0.1 <= found.high
    assert 0.93 <= held / n <= 0.99, held / n


def test_perfect_scores_before_do_not_make_one_bad_answer_certain():
    found = mean_change(scores([1.0] * 20 + [1.0] * 19 + [0.0], [False] * 20 + [True] * 20))
    assert found.p > 0.1


def test_a_step_is_placed_where_it_is():
    rng = np.random.default_rng(8)
    values = rng.normal(0.9, 0.05, 300) - 0.2 * (np.arange(300) >= 200)
    assert abs(change_place(values, np.ones(300)) - 200) <= 2
    assert change_place(values, np.ones(300), worse=1) not in range(195, 206)
    assert change_place(values[:15], np.ones(15)) is None
    assert change_place(values, np.ones(300), places=np.arange(230, 300)) in range(230, 291)
    assert change_place(values, np.ones(300), places=np.arange(291, 300)) is None


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    p = np.array([0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205])
    by_hand = [min(*(p[j] * 8 / (j + 1) for j in range(i, 8)), 1.0) for i in range(8)]
    assert adjusted(p) == pytest.approx(by_hand)
    assert adjusted(p[::-1]) == pytest.approx(by_hand[::-1])
    assert len(adjusted(np.array([]))) == 0
