"""Baselines: how long they are learnt, what weighted scores are worth, and how alike scores are."""

from __future__ import annotations

import pytest

from ragtrace.stats import Block, Learner, design_effect


def blocks_of(scores: list[float], size: int, weight: float = 1.0) -> list[Block]:
    found = [Block() for _ in range(0, len(scores), size)]
    for i, x in enumerate(scores):
        found[i // size].add(x, weight, None)
    return found


def test_the_design_effect_of_equal_turns_is_their_number_whatever_the_weight() -> None:
    sessions = [float(number % 3 > 0) for number in range(48)]
    turns = [x for x in sessions for _ in range(6)]
    for weight in (1.0, 20.0):
        assert design_effect(blocks_of(turns, 6, weight)) == pytest.approx(6.0, rel=0.05)
    assert design_effect(blocks_of(turns[:6], 6)) == 1.0, "one block does not vary"


def test_a_baseline_lasts_24_blocks_of_an_hour() -> None:
    learner = Learner(48, span_s=3_600.0)
    found = [learner.add(0.9, 1.0, second * 600.0) for second in range(139)]
    learnt = next(i for i, baseline in enumerate(found) if baseline is not None)
    assert learnt == 23 * 6, "six scores an hour, and the 24th hour has begun"
    baseline = found[learnt]
    assert baseline is not None
    assert baseline.design_effect == pytest.approx(6.0, rel=0.05), "equal scores prove nothing"


def test_a_baseline_knows_its_weights() -> None:
    learner = Learner(4)
    *early, baseline = [learner.add(x, w) for x, w in ((0.9, 1.0), (1.0, 5.0), (0.8, 1.0), (1.0, 1.0))]
    assert early == [None] * 3
    assert baseline is not None
    assert (baseline.n, baseline.max_weight, baseline.mean_weight) == (4, 5.0, 2.0)
    assert baseline.n_eff == pytest.approx(64 / 28)
