"""Prediction-powered inference: its interval holds the truth, and the judge never costs more than it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ragtrace.stats import PoweredMean, powered_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator, int], tuple[NDArray[np.float64], NDArray[np.float64]]]

DRAWS = 2500
# Three standard errors of a share of .95 over 2,500 draws are .013.
LEAST_COVERAGE = 0.937


def good(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    y = (rng.random(n) < 0.8).astype(np.float64)
    return y, np.clip(0.35 + 0.4 * y + 0.15 * rng.standard_normal(n), 0, 1)


def biased(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A judge that is right about the order and wrong about the level: its own mean is .9, the truth .6."""
    y = (rng.random(n) < 0.6).astype(np.float64)
    return y, 0.85 + 0.1 * y * rng.random(n)


def useless(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return (rng.random(n) < 0.7).astype(np.float64), rng.random(n)


def decides(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A judge that says yes or no and errs on one in ten."""
    y = rng.random(n) < 0.85
    return y.astype(np.float64), np.where(rng.random(n) < 0.1, ~y, y).astype(np.float64)


def grades(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    y = rng.integers(1, 6, n).astype(np.float64)
    return y, np.clip((y - 1) / 4 + 0.2 * rng.standard_normal(n), 0, 1)


CASES = [(good, 0.8, 0.75), (biased, 0.6, 0.8), (useless, 0.7, 1.05), (decides, 0.85, 0.8), (grades, 3.0, 0.6)]


@pytest.mark.parametrize(("draw", "truth", "most_error"), CASES, ids=[case[0].__name__ for case in CASES])
@pytest.mark.parametrize("n", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_the_interval_holds_the_truth_and_the_error_is_no_larger(
    draw: Draw, truth: float, most_error: float, n: int
) -> None:
    rng = np.random.default_rng(7)
    found = [_one(draw, rng, n) for _ in range(DRAWS)]
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert held >= LEAST_COVERAGE
    error = np.mean([(one.mean - truth) ** 2 for one in found])
    plain = np.mean([(one.labelled_mean - truth) ** 2 for one in found])
    assert error <= most_error * plain
    width = np.mean([one.high - one.low for one in found])
    assert width <= 1.04 * np.mean([one.labelled_high - one.labelled_low for one in found])


def _one(draw: Draw, rng: np.random.Generator, n: int) -> PoweredMean:
    labels, scores = draw(rng, n + 400)
    found = powered_mean(labels[:n], scores[:n], scores[n:], scale=(1.0, 5.0) if draw is grades else (0.0, 1.0))
    assert found is not None
    return found


def test_the_scale_of_the_judge_does_not_matter() -> None:
    labels, scores = good(np.random.default_rng(0), 300)
    one = powered_mean(labels[:60], scores[:60], scores[60:], scale=(0, 1))
    other = powered_mean(labels[:60], 7 - 3 * scores[:60], 7 - 3 * scores[60:], scale=(0, 1))
    assert one is not None
    assert other is not None
    assert (other.mean, other.low, other.high) == pytest.approx((one.mean, one.low, one.high))
    assert other.weight == pytest.approx(one.weight / -3)


@pytest.mark.parametrize(
    ("labels", "scores", "rest"),
    [
        ([1, 0, 1, 1], [0.5] * 4, [0.5] * 9),
        ([1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], []),
        ([1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], [0.3]),
        ([1, 1, 1, 1], [0.1, 0.2, 0.3, 0.4], [0.3] * 9),
    ],
    ids=["a judge that always says the same", "no other score", "one other score", "equal labels"],
)
def test_where_the_judge_adds_nothing_the_labels_stand_alone(
    labels: list[float], scores: list[float], rest: list[float]
) -> None:
    found = powered_mean(labels, scores, rest, scale=(0, 1))
    assert found is not None
    assert found.weight == 0.0
    assert found.mean == found.labelled_mean == np.mean(labels)
    assert found.low < found.mean <= found.high <= 1.0, "equal labels are no certainty"


def weight_without(i: int, y: NDArray[np.float64], f: NDArray[np.float64], rest: NDArray[np.float64]) -> float:
    """Return the weight of the others, from the definitions."""
    y, f = np.delete(y, i), np.delete(f, i)
    products = (y - y.mean()) * (f - f.mean())
    if not np.ptp(y) or not np.ptp(f):
        return 0.0
    shrunk = max(0.0, 1.0 - products.var() / len(y) / products.mean() ** 2)
    spread = np.var(np.concatenate([f, rest]), ddof=1)
    return float(shrunk * np.cov(y, f)[0, 1] / ((1.0 + len(y) / len(rest)) * spread))


@pytest.mark.parametrize("draw", [good, useless, decides, grades])
@pytest.mark.parametrize("n", [4, 5, 20, 61])
@pytest.mark.parametrize("level", [0.0, -1e4])
def test_each_score_has_the_weight_that_the_other_units_give(draw: Draw, n: int, level: float) -> None:
    for seed in range(20):
        y, f = draw(np.random.default_rng(seed), n + 90)
        y, f, rest = y[:n], f[:n] + level, f[n:] + level
        found = powered_mean(y, f, rest, scale=(1.0, 5.0) if draw is grades else (0.0, 1.0))
        assert found is not None
        weights = [weight_without(i, y, f, rest) for i in range(n)]
        mean = y.mean() + np.mean([weight * (rest.mean() - one) for weight, one in zip(weights, f, strict=True)])
        assert found.weight == pytest.approx(np.mean(weights), rel=1e-5, abs=1e-9)
        assert found.mean == pytest.approx(np.clip(mean, *((1, 5) if draw is grades else (0, 1))), abs=1e-6)


@pytest.mark.parametrize("n", [20, 50])
def test_the_mean_of_few_labels_is_not_too_high_where_most_are_good(n: int) -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(DRAWS):
        y = (rng.random(n + 300) < 0.9).astype(np.float64)
        f = np.clip(0.2 + 0.6 * y + 0.15 * rng.standard_normal(n + 300), 0, 1)
        found = powered_mean(y[:n], f[:n], f[n:], scale=(0.0, 1.0))
        assert found is not None
        errors.append(found.mean - 0.9)
    assert abs(np.mean(errors)) < 0.005, "one weight of all 20 labels put it .023 too high"


def test_three_labels_are_none() -> None:
    assert powered_mean([1, 0, 1], [1, 0, 1], [1, 0, 1, 1], scale=(0, 1)) is None


def test_lists_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one score"):
        powered_mean([1, 0], [1], [1], scale=(0, 1))
    with pytest.raises(ValueError, match="finite"):
        powered_mean([1, 0, 1, 1], [1, 0, float("nan"), 1], [1], scale=(0, 1))
    with pytest.raises(ValueError, match="off the scale of 1 to 5"):
        powered_mean([0, 1, 1, 1], [1, 0, 1, 1], [1], scale=(1, 5))


def two_values(rng: np.random.Generator, rate: float, n: int) -> NDArray[np.float64]:
    return (rng.random(n) < rate).astype(np.float64)


def shares(rng: np.random.Generator, rate: float, n: int) -> NDArray[np.float64]:
    """Mostly 1, else anything from 0 to 1."""
    return np.where(rng.random(n) < 2 * (1 - rate), rng.random(n), 1.0)


@pytest.mark.parametrize("label", [two_values, shares], ids=["two values", "shares"])
@pytest.mark.parametrize("judge", ["useless", "good"])
@pytest.mark.parametrize(
    ("n", "rate"),
    [
        (20, 0.9),
        (100, 0.985),
        (30, 0.05),
        pytest.param(30, 0.95, marks=pytest.mark.slow),
        pytest.param(50, 0.97, marks=pytest.mark.slow),
    ],
)
def test_the_intervals_hold_near_the_ends_of_the_scale_and_stay_on_it(
    label: Callable[..., NDArray[np.float64]], judge: str, n: int, rate: float
) -> None:
    rng = np.random.default_rng(3)
    truth = max(rate, 1 - rate)
    held, held_alone = [], []
    for _ in range(1500):
        y = label(rng, truth, n + 300)
        y = y if truth == rate else 1.0 - y
        scores = rng.random(n + 300) if judge == "useless" else 0.25 + 0.5 * y + 0.2 * rng.standard_normal(n + 300)
        found = powered_mean(y[:n], scores[:n], scores[n:], scale=(0.0, 1.0))
        assert found is not None
        assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
        assert 0.0 <= found.labelled_low <= found.labelled_mean <= found.labelled_high <= 1.0
        held.append(found.low <= rate <= found.high)
        held_alone.append(found.labelled_low <= rate <= found.labelled_high)
    least = 0.933  # three standard errors of a share of .95 over 1,500 draws are .017
    assert np.mean(held) >= least
    assert np.mean(held_alone) >= least
