"""The e-detector's rate where scores are alike and nobody says so, and what a fall takes there."""

from __future__ import annotations

import statistics

import pytest

from ragtrace.stats import Block, Dependence, design_effect, drift
from tests.unit.stats.e_detector_worlds import PROMISED, WORLDS, World, alarm_of, in_turn

RUNS = 16


def share_of_alarms(world: World) -> float:
    return sum(alarm_of(world, seed).alarm is not None for seed in range(RUNS)) / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_few_runs_alarm_at_a_mean_that_stays(world: World) -> None:
    """Promised are 20.5 % of runs; a quarter of 16 is four."""
    assert share_of_alarms(world) <= 0.25


@pytest.mark.slow
def test_without_a_design_effect_equal_turns_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above can fail."""
    monkeypatch.setattr(drift, "_UNEVEN", 0.0)
    monkeypatch.setattr(drift, "design_effect", lambda _: 1.0)
    assert share_of_alarms(World("six turns", in_turn(6, 172.8))) > 0.5 > PROMISED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("independent, 20 an hour", 900), ("independent, 60 an hour", 900), ("independent, 500 an hour", 2_500)],
)
def test_a_fall_from_92_to_80_is_found(name: str, most: int) -> None:
    [world] = [it for it in WORLDS if it.name == name]
    delays = [alarm_of(world, seed, falls=True, after=200).alarm or 10**9 for seed in range(RUNS)]
    assert statistics.median(delays) <= most


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


def test_a_mean_that_falls_once_is_not_taken_for_scores_that_are_alike() -> None:
    perfect = Dependence(20.0, weight=480.0, variance=0.0, size=20, span_s=0.0)
    for x in [*[1.0] * 100, *[1.0, 0.0] * 200]:
        perfect.add(x, 1.0, None)
    assert perfect.effect < 1.5


def test_bad_scores_that_come_together_keep_their_design_effect() -> None:
    jobs = Dependence(20.0, weight=480.0, variance=0.0, size=20, span_s=0.0)
    for job in range(60):
        for _ in range(20):
            jobs.add(float(job % 6 > 0), 1.0, None)
    assert jobs.effect > 15.0


def test_a_baseline_with_many_bad_scores_is_not_learnt_further() -> None:
    known = Dependence(3.0, weight=500.0, variance=0.07, size=20, span_s=0.0)
    for x in [1.0, 0.0] * 500:
        known.add(x, 1.0, None)
    assert known.effect == 3.0


def test_a_baseline_lasts_24_blocks_of_an_hour() -> None:
    detector = drift.EDetector(learn=48)
    states = [detector.add(0.9, at=second * 600.0) for second in range(200)]
    assert states.index("ok") == 23 * 6, "six scores an hour, and the 24th hour has begun"
    assert detector.baseline is not None
    assert detector.baseline.design_effect == pytest.approx(6.0, rel=0.05), "equal scores prove nothing"
