"""The CUSUM: what it promises of false alarms, and that it finds a drop."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.stats.baseline import SD_FLOOR, Baseline
from ragtrace.stats.drift import Cusum, arl, tail_exponent, threshold_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

ATOMS = np.array([0, 0.25, 0.33, 0.5, 0.6, 0.67, 0.75, 0.8, 1])
SHARES = np.array([0.012, 0.01, 0.01, 0.03, 0.03, 0.03, 0.03, 0.028, 0.82])
DRAWS: dict[str, Draw] = {
    "nine atoms": lambda rng, n: rng.choice(ATOMS, n, p=SHARES / SHARES.sum()),
    "90 % perfect": lambda rng, n: (rng.random(n) < 0.9).astype(float),
    "98 % perfect": lambda rng, n: (rng.random(n) < 0.98).astype(float),
    "99 % perfect": lambda rng, n: (rng.random(n) < 0.99).astype(float),
}
TARGET = 500.0


def learnt(scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None, **given: float) -> Cusum:
    cusum = Cusum(learn=len(scores), **given)  # type: ignore[arg-type]
    for x, w in zip(scores, np.ones(len(scores)) if weights is None else weights, strict=True):
        cusum.add(float(x), float(w))
    return cusum


def lengths_until_alarm(cusum: Cusum, draw: Callable[[], tuple[float, float]], runs: int, cap: int) -> list[int]:
    found = []
    for _ in range(runs):
        cusum.reset()
        start = cusum.n
        while cusum.add(*draw()) != "alarm" and cusum.n - start < cap:
            pass
        found.append(cusum.n - start)
    return found


@pytest.mark.parametrize("name", DRAWS)
def test_false_alarms_are_about_as_rare_as_stated_whatever_the_scores_look_like(name: str) -> None:
    """Of the 500 stated Siegmund's exponent for normal scores gives 316, 404, 230 and 616 here."""
    rng = np.random.default_rng(7)
    cusum = learnt(DRAWS[name](rng, 50_000), target_arl=TARGET)
    stream = iter(DRAWS[name](rng, 400_000).tolist())
    lengths = lengths_until_alarm(cusum, lambda: (next(stream), 1.0), runs=120, cap=int(6 * TARGET))
    assert statistics.fmean(lengths) >= 0.9 * TARGET


def test_false_alarms_are_as_rare_under_unequal_weights() -> None:
    rng = np.random.default_rng(8)
    draw = DRAWS["nine atoms"]
    weights = np.where(rng.random(50_000) < 0.5, 5.0, 15.0)
    cusum = learnt(draw(rng, 50_000), weights, target_arl=TARGET)
    pairs = iter(zip(draw(rng, 400_000).tolist(), np.where(rng.random(400_000) < 0.5, 5.0, 15.0), strict=True))
    lengths = lengths_until_alarm(cusum, lambda: next(pairs), runs=120, cap=int(6 * TARGET))
    assert statistics.fmean(lengths) >= 0.9 * TARGET


@pytest.mark.parametrize("name", DRAWS)
def test_a_drop_is_found_and_dated(name: str) -> None:
    rng = np.random.default_rng(9)
    delays, errors = [], []
    for _ in range(20):
        cusum = learnt(DRAWS[name](rng, 500))
        for x in DRAWS[name](rng, 200):
            cusum.add(float(x))
        start = cusum.n
        while (
            cusum.add(float(rng.choice([0.0, 0.5]) if rng.random() < 0.35 else DRAWS[name](rng, 1)[0])) != "alarm"
        ):
            assert cusum.n - start < 2_000
        assert cusum.changed_at is not None
        delays.append(cusum.n - start)
        errors.append(abs(cusum.changed_at - start))
    assert statistics.median(delays) < 120
    assert statistics.median(errors) < 40


def test_a_baseline_of_100_finds_invented_facts_within_20_answers() -> None:
    """The demo: 100 answers at .9 and above, then answers at .4."""
    cusum = learnt(np.random.default_rng(3).uniform(0.85, 1.0, 100))
    while cusum.add(0.4) != "alarm":
        pass
    assert cusum.n - 100 <= 20
    assert cusum.changed_at == 100


def test_states_follow_the_statistic() -> None:
    cusum = Cusum(learn=3, baseline=None)
    assert [cusum.add(x) for x in (0.9, 1.0)] == ["learning", "learning"]
    assert (cusum.threshold, cusum.statistic) == (None, 0.0)
    assert cusum.add(0.8) == "ok"
    assert cusum.threshold is not None
    assert cusum.baseline is not None
    assert (cusum.baseline.mean, cusum.baseline.n) == (pytest.approx(0.9), 3)
    seen = [cusum.add(0.2)]
    while seen[-1] != "alarm":
        seen.append(cusum.add(0.2))
    assert list(dict.fromkeys(seen)) == ["ok", "warning", "alarm"]
    assert (cusum.alarms, cusum.changed_at) == (1, 3)
    assert cusum.add(1.0) == "alarm"
    cusum.reset()
    assert (cusum.state, cusum.changed_at, cusum.baseline.n) == ("ok", None, 3)


@pytest.mark.parametrize("bad", [40, 20_000])
def test_an_alarm_ends_when_its_evidence_is_gone_and_the_next_one_is_counted(bad: int) -> None:
    cusum = Cusum(baseline=Baseline(0.9, 0.2, 500))
    for _ in range(bad):
        cusum.add(0.3)
    assert (cusum.state, cusum.alarms, cusum.changed_at) == ("alarm", 1, 0)
    lasted = 0
    while cusum.add(0.95) == "alarm":
        assert cusum.changed_at == 0, "the estimate stands while the alarm does"
        lasted += 1
        assert lasted < 120, "as soon after a long drop as after a short one"
    assert lasted > 10
    assert (cusum.state, cusum.statistic, cusum.changed_at, cusum.alarms) == ("ok", 0.0, None, 1)
    again = cusum.n
    while cusum.add(0.3) != "alarm":
        pass
    assert (cusum.alarms, cusum.changed_at) == (2, again)


def test_the_change_is_dated_at_the_last_zero_of_the_path() -> None:
    cusum = Cusum(baseline=Baseline(0.9, 0.2, 500))
    for x in (1.0, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        cusum.add(x)
        if cusum.statistic == 0.0:
            last_zero = cusum.n
    while cusum.add(0.1) != "alarm":
        pass
    assert cusum.changed_at == last_zero > 1


def test_a_frozen_baseline_is_used_at_once_and_with_its_own_mean_weight() -> None:
    plain = Cusum(baseline=Baseline(0.9, 0.2, 500))
    sampled = Cusum(baseline=Baseline(0.9, 0.2, 500, mean_weight=20.0))
    assert plain.state == "ok"
    for x in (0.3, 0.9, 0.1):
        plain.add(x)
        sampled.add(x, 20.0)
    assert sampled.statistic == pytest.approx(plain.statistic)
    assert plain.statistic > 0


def test_freezing_what_was_learnt_gives_the_same_detector() -> None:
    cusum = learnt(DRAWS["98 % perfect"](np.random.default_rng(1), 500))
    assert Cusum(baseline=cusum.baseline).threshold == cusum.threshold


def test_a_perfect_baseline_does_not_alarm_on_one_bad_answer() -> None:
    cusum = learnt(np.ones(100))
    assert cusum.add(0.0) == "ok"
    assert cusum.statistic == pytest.approx((1.0 - 0.025) / SD_FLOOR)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=200), st.lists(st.floats(0, 1), max_size=100))
def test_whatever_the_scores_the_statistic_is_finite_and_the_threshold_no_lower_than_siegmunds(
    baseline: list[float], scores: list[float]
) -> None:
    cusum = learnt(np.array(baseline))
    assert cusum.baseline is not None
    assert cusum.threshold is not None
    siegmund = threshold_for(73_000, 0.05 / (2 * max(cusum.baseline.sd, SD_FLOOR)))
    assert cusum.threshold >= siegmund - 1e-6
    for x in scores:
        cusum.add(x)
        assert math.isfinite(cusum.statistic)
        assert cusum.statistic >= 0.0


@pytest.mark.parametrize(("x", "weight"), [(math.nan, 1.0), (math.inf, 1.0), (0.5, 0.0), (0.5, math.nan)])
def test_what_is_no_score_is_refused_and_changes_nothing(x: float, weight: float) -> None:
    cusum = Cusum(learn=2)
    with pytest.raises(ValueError, match="finite"):
        cusum.add(x, weight)
    assert cusum.n == 0


@pytest.mark.parametrize("wrong", [{"learn": 0}, {"delta": 0.0}, {"target_arl": 0.0}])
def test_senseless_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Cusum(**wrong)  # type: ignore[arg-type]


def test_the_threshold_inverts_the_run_length() -> None:
    assert threshold_for(73_000, 0.127) == pytest.approx(29.4, abs=0.05)  # MONITORING.md: about 29
    for k, exponent in ((0.05, None), (0.25, None), (0.17, 0.23)):
        assert arl(threshold_for(10_000, k, exponent), k, exponent) == pytest.approx(10_000)


def test_siegmunds_formula_is_the_case_of_normal_scores() -> None:
    k, b = 0.127, 29 + 1.166
    assert arl(29, k) == pytest.approx((math.exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k))
    steps = np.random.default_rng(4).normal(-k, 1.0, 200_000)
    assert tail_exponent(steps.tolist()) == pytest.approx(2 * k, rel=0.05)


def test_steps_that_never_rise_or_do_not_fall_on_average_have_no_exponent() -> None:
    assert tail_exponent([-1.0, -0.5]) is None
    assert tail_exponent([-1.0, 2.0]) is None
    assert tail_exponent([]) is None
