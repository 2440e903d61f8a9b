"""The slices of a day."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.scoring.limits.slices import DAY_S, SLICE_S, allowed, day_of, wait_s

WALLS = st.floats(0.0, 4e9)


@given(st.integers(1, 10**13), WALLS)
def test_it_grows_to_the_budget_and_begins_anew_at_midnight(budget: int, wall_s: float) -> None:
    now, later = allowed(budget, wall_s), allowed(budget, wall_s + SLICE_S)
    assert 0 <= now <= budget
    if day_of(wall_s + SLICE_S) == day_of(wall_s):
        assert now <= later <= now + budget // 288 + 1
    midnight = day_of(wall_s) * float(DAY_S)
    assert allowed(budget, midnight) == budget // 288
    assert allowed(budget, midnight + DAY_S - 1) == budget


@given(st.integers(1, 10**13), st.floats(0.0, 1.0), WALLS)
def test_what_is_waited_for_is_allowed_then_and_not_a_slice_earlier(
    budget: int, share: float, wall_s: float
) -> None:
    wanted = int(budget * share)
    waited_s = wait_s(budget, wanted, wall_s)
    if waited_s > 0.0:
        assert allowed(budget, wall_s + waited_s + 0.001) >= wanted
        assert allowed(budget, wall_s) < wanted
    else:
        assert allowed(budget, wall_s) >= wanted


def test_by_three_in_the_morning_an_eighth_is_gone_at_most() -> None:
    assert allowed(28_800, 3 * 3_600 - 1) == 28_800 // 8
