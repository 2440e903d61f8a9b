"""AUROC and balanced accuracy against their definitions, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from ragtrace.stats import Figure, auroc, balanced_accuracy, best_threshold, cross_validated, roc
from ragtrace.stats.figure import bounds

cases = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=25)


@given(cases)
def test_auroc_is_the_share_of_pairs_won(rows: list[tuple[int, bool]]) -> None:
    scores, truth = [row[0] for row in rows], [row[1] for row in rows]
    pairs = [(a, b) for a, is_a in rows for b, is_b in rows if is_a and not is_b]
    found = auroc(scores, truth)
    if not pairs:
        assert found.reason == "only one class is there"
        return
    assert found.value == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    curve = roc(scores, truth)
    assert np.trapezoid(curve.true_rate, curve.false_rate) == pytest.approx(found.value)
    assert (curve.false_rate[0], curve.true_rate[0]) == (0.0, 0.0)
    assert (curve.false_rate[-1], curve.true_rate[-1]) == (1.0, 1.0)


@given(cases)
def test_no_threshold_is_better_than_the_best(rows: list[tuple[int, bool]]) -> None:
    scores, truth = [row[0] for row in rows], [row[1] for row in rows]
    best = best_threshold(scores, truth)
    assert (best is None) == (len(set(scores)) == 1 or len(set(truth)) == 1)
    if best is None:
        return
    reached = balanced_accuracy(scores, truth, best, n_resamples=0).value
    inner = [balanced_accuracy(scores, truth, t, n_resamples=0).value for t in np.arange(-0.5, 5.0, 0.5)]
    if max(inner) > 0.5:
        assert reached == pytest.approx(max(inner))


def test_of_equally_good_thresholds_the_one_with_most_room_is_taken() -> None:
    assert best_threshold([0.1, 0.2, 0.6, 0.7], [False, False, True, True]) == pytest.approx(0.4)


def test_a_score_on_the_threshold_counts_as_high_unless_told() -> None:
    assert balanced_accuracy([0.5, 0.1], [True, False], 0.5).value == 1.0
    assert balanced_accuracy([0.5, 0.1], [True, False], 0.5, is_strict=True).value == 0.5


def test_cross_validation_does_not_flatter_noise() -> None:
    rng = np.random.default_rng(5)
    found, flattered = [], []
    for _ in range(60):
        scores, truth = rng.random(40), rng.permutation(np.arange(40) < 20)
        found.append(cross_validated(scores, truth).value)
        flattered.append(balanced_accuracy(scores, truth, best_threshold(scores, truth), n_resamples=0).value)
    assert np.mean(found) < 0.53
    assert np.mean(flattered) > 0.58


def test_intervals_hold_their_value() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(200) < 0.3
    scores = truth * 0.5 + rng.standard_normal(200)
    for found in (auroc(scores, truth), balanced_accuracy(scores, truth, 0.3)):
        assert found.low < found.value < found.high
        assert found.high - found.low < 0.25
    lonely = auroc([0.9, 0.1, 0.2, 0.3], [True, False, False, False])
    assert (lonely.value, lonely.low, lonely.high) == (1.0, None, None), "one unit tells nothing of its class"


@pytest.mark.parametrize(("n", "least", "most"), [(5, 0.2, 0.7), (10, 0.55, 0.85), (100, 0.95, 0.99)])
def test_a_perfect_separation_is_no_certainty(n: int, least: float, most: float) -> None:
    found = auroc([*range(n), *range(n, 2 * n)], [False] * n + [True] * n)
    assert (found.value, found.high) == (1.0, 1.0)
    assert least < found.low < most
    turned = auroc([*range(n), *range(n, 2 * n)], [True] * n + [False] * n)
    assert (turned.value, turned.low, turned.high) == pytest.approx((0.0, 0.0, 1.0 - found.low))


def binormal(rng, area: float, m: int, n: int) -> tuple[list[float], list[bool]]:
    scores = np.concatenate([rng.normal(math.sqrt(2.0) * norm.ppf(area), 1.0, m), rng.normal(0.0, 1.0, n)])
    return scores.tolist(), [True] * m + [False] * n


def uneven(rng, area: float, m: int, n: int) -> tuple[list[float], list[bool]]:
    scores = np.concatenate([rng.normal(math.sqrt(10.0) * norm.ppf(area), 1.0, m), rng.normal(0.0, 3.0, n)])
    return scores.tolist(), [True] * m + [False] * n


def two_values(rng, area: float, m: int, n: int) -> tuple[list[float], list[bool]]:
    said = np.concatenate([rng.random(m) < area, rng.random(n) < 1.0 - area])
    return said.astype(float).tolist(), [True] * m + [False] * n


@pytest.mark.slow
@pytest.mark.parametrize("draw", [binormal, uneven, two_values])
@pytest.mark.parametrize("area", [0.6, 0.8, 0.9, 0.98])
def test_the_interval_of_auroc_holds_the_truth(draw, area: float) -> None:
    rng = np.random.default_rng(9)
    for m, n in ((10, 10), (5, 15), (15, 5), (40, 10), (100, 100), (180, 20)):
        found = [auroc(*draw(rng, area, m, n)) for _ in range(600)]
        held = np.mean([it.low <= area <= it.high for it in found])
        assert held >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / 600) + 0.02, (draw.__name__, area, m, n, held)


def test_edges_say_why() -> None:
    assert balanced_accuracy([1.0], [True], 0.5).reason == "only one class is there"
    assert cross_validated([1.0, 0.0, 0.5], [True, False, False]).reason == "a class has fewer than 2 units"
    assert cross_validated([1.0] * 4, [True, False, True, False]).reason == "all scores are the same"
    assert best_threshold([], []) is None
    assert roc([1.0], [True]).threshold == []
    with pytest.raises(ValueError, match="finite"):
        auroc([float("nan")], [True])
    with pytest.raises(ValueError, match="one class"):
        auroc([1.0], [True, False])


def test_a_figure_is_a_value_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either"):
        Figure(n=3)
    with pytest.raises(ValueError, match="finite"):
        Figure(n=3, value=float("nan"))
    assert Figure(n=0, reason="no pair").to_json() == {"n": 0, "value": None, "reason": "no pair"}
    assert bounds(lambda w: w.sum(axis=1), 1, seed=0, n_resamples=10) == (None, None)


def test_blocks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(50.0)
    whole = bounds(lambda w: w @ values, 50, seed=4, n_resamples=100)
    monkeypatch.setattr("ragtrace.stats.intervals._BLOCK_CELLS", 350)
    assert bounds(lambda w: w @ values, 50, seed=4, n_resamples=100) == whole
