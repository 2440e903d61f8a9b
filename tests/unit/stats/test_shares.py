"""Shares, their changes and the bounds of a mean: against simulation, and against what the bounds promise."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats import Interval, WeightSums, mean_whatever_is_missing, share_changes, weighted_shares, wilson

TRUE = {"ok": 0.80, "unsupported": 0.12, "lost_in_rerank": 0.08}


def drawn(chance, shares, n):
    """Sums by verdict of `n` runs, of which half have a weight of 20 and half of 5."""
    weight = np.where(chance.random(n) < 0.5, 20.0, 5.0)
    verdict = chance.choice(len(shares), n, p=list(shares.values()))
    return {
        name: WeightSums(float(weight[verdict == at].sum()), float((weight[verdict == at] ** 2).sum()))
        for at, name in enumerate(shares)
    }


def test_shares_sum_to_one_and_take_the_effective_number():
    sums = {"ok": WeightSums(300.0, 3_000.0), "unsupported": WeightSums(100.0, 1_000.0)}
    found = weighted_shares(sums)
    assert sum(it.mean for it in found.values()) == pytest.approx(1.0)
    assert found["unsupported"] == wilson(10.0, 40.0)  # 400^2 / 4000 = 40 runs


@pytest.mark.parametrize("sums", [{}, {"ok": WeightSums(0.0, 0.0)}])
def test_nothing_diagnosed_has_no_share(sums):
    assert weighted_shares(sums) == {}
    assert share_changes(sums, {"ok": WeightSums(3.0, 3.0)}) == []
    assert share_changes({"ok": WeightSums(3.0, 3.0)}, sums) == []


def test_intervals_cover_the_true_shares_and_their_true_changes():
    chance, worlds = np.random.default_rng(15), 600
    after = {"ok": 0.70, "unsupported": 0.10, "lost_in_rerank": 0.20}
    share, change = 0, 0
    for _ in range(worlds):
        before, now = drawn(chance, TRUE, 400), drawn(chance, after, 120)
        found = weighted_shares(now)["lost_in_rerank"]
        share += found.low <= 0.20 <= found.high
        moved = {it.name: it for it in share_changes(before, now)}["lost_in_rerank"]
        change += moved.low <= 0.12 <= moved.high
    assert 0.93 <= share / worlds <= 0.98
    assert 0.93 <= change / worlds <= 0.98


def test_the_largest_growth_comes_first_and_a_new_verdict_grows_from_zero():
    now = {"ok": WeightSums(80.0, 80.0), "cut_from_prompt": WeightSums(20.0, 20.0)}
    first, *_, last = share_changes({"ok": WeightSums(100.0, 100.0)}, now)
    assert (first.name, first.before, first.now) == ("cut_from_prompt", 0.0, 0.2)
    assert first.low > 0.0
    assert last.name == "ok"


@pytest.mark.parametrize("missing_value", [0.0, 0.5, 1.0])
def test_the_bounds_hold_the_true_mean_whatever_is_missing(missing_value):
    """Scores are missing where they are low, and would have been `missing_value`."""
    chance, worlds, inside = np.random.default_rng(4), 500, 0
    truth = 0.75 * 0.9 + 0.25 * missing_value
    for _ in range(worlds):
        is_missing = chance.random(300) < 0.25
        present = chance.choice([0.8, 1.0], (~is_missing).sum())
        half = 1.96 * present.std() / np.sqrt(len(present))
        mean = Interval(float(present.mean()), float(present.mean() - half), float(present.mean() + half))
        found = mean_whatever_is_missing(mean, wilson(int(is_missing.sum()), 300))
        inside += found.low <= truth <= found.high
    assert inside / worlds >= 0.95


def test_without_missing_scores_the_bounds_are_the_interval_of_the_mean():
    found = mean_whatever_is_missing(Interval(0.9, 0.88, 0.92), Interval(0.0, 0.0, 0.0))
    assert found == pytest.approx((0.9, 0.88, 0.92))
    assert mean_whatever_is_missing(Interval(None, None, None), wilson(1, 2)).mean is None
    assert mean_whatever_is_missing(Interval(0.9, 0.88, 0.92), wilson(0, 0)).mean is None
