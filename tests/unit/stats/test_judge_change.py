"""The judge's change over the anchors."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats import AnchorPair, judge_change


def pairs(n: int, *, now: float, reference: tuple[float, ...] = (1.0, 1.0), band: int = 4, share: float = 1.0):
    return [AnchorPair(band, share, reference, now) for _ in range(n)]


def test_a_band_counts_with_its_share_of_the_traffic_and_not_of_the_set():
    found = judge_change([*pairs(50, now=0.9, share=0.9), *pairs(50, now=0.0, reference=(0.5,), band=0, share=0.1)])
    assert found is not None
    assert found.mean == pytest.approx(-0.1 * 0.9 - 0.5 * 0.1)


def test_equal_scores_of_few_runs_prove_little():
    found = judge_change(pairs(40, now=1.0))
    assert found is not None
    assert (found.mean, found.state) == (0.0, "ok")
    assert found.high == pytest.approx(1.96 * 0.05 / 40**0.5, abs=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_both_directions_alarm(sign: int):
    found = judge_change(pairs(60, now=0.5 + sign * 0.2, reference=(0.5, 0.5)))
    assert found is not None
    assert found.state == "alarm"
    assert (found.mean > 0) == (sign > 0)


def test_few_anchors_learn_and_a_tiny_change_is_no_alarm():
    few, tiny = judge_change(pairs(29, now=0.0)), judge_change(pairs(30_000, now=0.991, reference=(1.0,)))
    assert few is not None
    assert tiny is not None
    assert (few.state, tiny.state) == ("learning", "ok")


def test_the_noise_of_the_reference_is_in_the_interval():
    """A judge that spreads by .4 proves nothing, even if the anchors happen to fall alike."""
    noisy = judge_change(pairs(60, now=0.4, reference=(0.1, 0.5, 0.9)))
    calm = judge_change(pairs(60, now=0.4, reference=(0.5, 0.5, 0.5)))
    assert noisy is not None
    assert calm is not None
    assert noisy.error > 4 * calm.error


def test_the_interval_holds_the_change_in_95_of_100_sets():
    """A stable judge of some temperature, three reference scores and one now, over two bands."""
    rng, hits = np.random.default_rng(5), 0
    for _ in range(400):
        true = np.where(rng.random(80) < 0.7, 0.8, 0.3)
        reference, now = true + 0.1 * rng.standard_normal((3, 80)), true + 0.1 * rng.standard_normal(80)
        found = judge_change(
            [
                AnchorPair(int(t > 0.5), 0.8 if t > 0.5 else 0.2, tuple(r), float(x))
                for t, r, x in zip(true, reference.T, now, strict=True)
            ]
        )
        assert found is not None
        hits += found.low <= 0.0 <= found.high
    assert 0.93 <= hits / 400 <= 0.99
