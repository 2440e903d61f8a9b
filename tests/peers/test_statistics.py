"""Agreement, correlations and intervals beside krippendorff and scipy."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest

from ragtrace.stats import Level, auroc, bootstrap_mean_ci, krippendorff_alpha, pearson, spearman
from tests.peers.process import PeerError, Peers

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = 1e-9


def ratings(seed: int) -> list[list[float | None]]:
    """Two to five coders of ten to thirty units on 1 to 5, near a common truth, a tenth of it missing."""
    draw = random.Random(seed)
    n_units = draw.randint(10, 30)
    truth = [draw.randint(1, 5) for _ in range(n_units)]
    return [
        [
            None if draw.random() < 0.1 else float(min(max(grade + draw.choice((-1, 0, 0, 0, 1)), 1), 5))
            for grade in truth
        ]
        for _ in range(draw.randint(2, 5))
    ]


@pytest.mark.parametrize("level", get_args(Level))
def test_alpha_equals_the_package(peers: Peers, level: Level) -> None:
    for seed in range(25):
        table = ratings(seed)
        found = krippendorff_alpha(table, level).value
        assert found == pytest.approx(peers.ask("alpha", ratings=table, level=level), rel=0, abs=EXACT)


@pytest.mark.parametrize(
    "table", [[[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]], [[1.0, 2.0, 3.0]]], ids=["identical", "alone"]
)
def test_alpha_without_a_meaning_is_no_value_here_and_an_error_there(
    peers: Peers, table: list[list[float]]
) -> None:
    """Identical ratings and a single coder are na; a report goes on."""
    assert krippendorff_alpha(table, "interval").value is None
    with pytest.raises(PeerError, match="ValueError"):
        peers.ask("alpha", ratings=table, level="interval")


@pytest.mark.parametrize(("own", "name"), [(pearson, "pearson"), (spearman, "spearman")])
def test_correlations_equal_scipy(peers: Peers, own: Callable[..., Any], name: str) -> None:
    draw = random.Random(3)
    for _ in range(25):
        a = [draw.choice((draw.gauss(0, 1), float(draw.randint(0, 3)))) for _ in range(draw.randint(3, 40))]
        b = [value + draw.gauss(0, 1) for value in a]
        found = own(a, b).value
        assert found == pytest.approx(peers.ask("correlation", a=a, b=b)[name], rel=0, abs=EXACT)


def test_auroc_equals_the_rank_sum_of_scipy(peers: Peers) -> None:
    draw = random.Random(4)
    for _ in range(25):
        high = [float(draw.randint(1, 6)) for _ in range(draw.randint(1, 20))]
        low = [float(draw.randint(0, 5)) for _ in range(draw.randint(1, 20))]
        found = auroc(high + low, [True] * len(high) + [False] * len(low)).value
        assert found == pytest.approx(peers.ask("auroc", high=high, low=low), rel=0, abs=EXACT)


@pytest.mark.parametrize("n", [30, 60, 200])
def test_the_bootstrap_interval_agrees_with_scipy(peers: Peers, n: int) -> None:
    """Another generator draws other resamples: each bound within 7 % of the width, at B = 10,000."""
    draw = np.random.default_rng(n)
    for values in (draw.beta(8, 2, n), draw.normal(0, 1, n), draw.integers(0, 2, n).astype(float)):
        own = bootstrap_mean_ci(values.tolist(), n_resamples=10_000)
        low, high = peers.ask("bootstrap", values=values.tolist(), n_resamples=10_000, seed=1)
        allowed = 0.07 * (high - low)
        assert abs(own.low - low) <= allowed
        assert abs(own.high - high) <= allowed
