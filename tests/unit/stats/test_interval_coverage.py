"""Coverage of the interval of a mean: claims, 0 and 1, smooth scores, weights and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ragtrace.stats import Sums, mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Draw = Callable[[np.random.Generator, int, int], Array]

pytestmark = pytest.mark.slow

DRAWS = 3_000
LEAST = 0.93
SIZES = (10, 20, 50, 200, 1_000)
ATOMS = (0.0, 0.25, 0.33, 0.5, 0.6, 0.67, 0.75, 0.8, 1.0)
SHARES = (0.02, 0.02, 0.02, 0.03, 0.02, 0.03, 0.03, 0.01, 0.82)


def claims(rng: np.random.Generator, draws: int, n: int) -> Array:
    return rng.choice(ATOMS, p=SHARES, size=(draws, n))


def two_values(share: float) -> Draw:
    return lambda rng, draws, n: (rng.random((draws, n)) < share).astype(np.float64)


def smooth(a: float, b: float) -> Draw:
    return lambda rng, draws, n: rng.beta(a, b, (draws, n))


WORLDS: dict[str, tuple[Draw, float]] = {
    "claims": (claims, float(np.dot(ATOMS, SHARES))),
    "0/1 at .5": (two_values(0.5), 0.5),
    "0/1 at .9": (two_values(0.9), 0.9),
    "0/1 at .98": (two_values(0.98), 0.98),
    "smooth at .8": (smooth(8, 2), 0.8),
    "smooth at .95": (smooth(20, 1), 20 / 21),
    "smooth, mostly 1": (smooth(4, 0.2), 4 / 4.2),
    "smooth, near both ends": (smooth(0.5, 0.5), 0.5),
}


def equal(rng: np.random.Generator, draws: int, n: int) -> Array:
    return np.ones((draws, n))


def spread(rng: np.random.Generator, draws: int, n: int) -> Array:
    return rng.uniform(1.0, 20.0, (draws, n))


def few_heavy(rng: np.random.Generator, draws: int, n: int) -> Array:
    return np.where(rng.random((draws, n)) < 0.1, 20.0, 1.0)


@pytest.mark.parametrize("weights", [equal, spread, few_heavy])
@pytest.mark.parametrize("world", WORLDS)
def test_scores_on_their_own(world: str, weights: Draw) -> None:
    draw, truth = WORLDS[world]
    rng = np.random.default_rng(1)
    for n in SIZES:
        draws = min(DRAWS, 2_000_000 // n)
        x, w = draw(rng, draws, n), weights(rng, draws, n)
        assert _held(w, w * x, truth) >= LEAST - 0.006, (world, n)  # a standard error of .95 is .004


@pytest.mark.parametrize("weights", [equal, spread])
@pytest.mark.parametrize("world", WORLDS)
def test_sessions_of_one_to_six_turns_with_one_score(world: str, weights: Draw) -> None:
    draw, truth = WORLDS[world]
    rng = np.random.default_rng(2)
    for n in SIZES:
        draws = min(DRAWS, 500_000 // n)
        turns = _turns(rng, draws, n)
        w = sum(np.where(turns > turn, weights(rng, draws, n), 0.0) for turn in range(6))
        assert _held(w, w * draw(rng, draws, n), truth) >= LEAST - 0.006, (world, n)


def test_heavy_weights_on_the_worse_part_of_the_traffic() -> None:
    """A tenth of the scores stand for twenty runs each, and their mean is .7, not .95."""
    rng = np.random.default_rng(3)
    truth = (0.1 * 20 * 0.7 + 0.9 * 0.95) / (0.1 * 20 + 0.9)
    for n in SIZES:
        draws = min(DRAWS, 2_000_000 // n)
        is_heavy = rng.random((draws, n)) < 0.1
        x = (rng.random((draws, n)) < np.where(is_heavy, 0.7, 0.95)).astype(np.float64)
        w = np.where(is_heavy, 20.0, 1.0)
        assert _held(w, w * x, truth) >= LEAST, n


def test_perfect_scores_of_an_imperfect_application_never_have_a_width_of_zero() -> None:
    for n in SIZES:
        found = mean_interval(Sums(float(n), float(n), float(n), float(n), float(n)))
        assert found.low is not None
        assert found.low < 1.0 - 1.5 / n
        assert found.high == 1.0


def _turns(rng: np.random.Generator, draws: int, n: int) -> Array:
    """Return the turns of sessions that together are n."""
    sizes = rng.integers(1, 7, (draws, n))
    before = np.cumsum(sizes, axis=1) - sizes
    return np.clip(np.minimum(sizes, n - before), 0, None).astype(np.float64)


def _held(w: Array, wx: Array, truth: float) -> float:
    """Return the share of draws whose interval holds the truth; a column is a cluster."""
    sums = zip(*(part.sum(axis=1).tolist() for part in (w, wx, w * w, w * wx, wx * wx)), strict=True)
    found = [mean_interval(Sums(*row)) for row in sums]
    return float(np.mean([it.low <= truth <= it.high for it in found]))
