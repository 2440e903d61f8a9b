"""Additive increase, multiplicative decrease."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.scoring.limits.concurrency import Concurrency


def rounds(calls: Concurrency, latency_of: object, n: int, at_s: float = 0.0) -> float:
    """Run n full rounds of calls; `latency_of` tells a round's latency by the limit."""
    for _ in range(n):
        under_way = calls.allowed
        latency_s = latency_of(under_way)  # type: ignore[operator]
        for _ in range(under_way):
            calls.succeeded(began_s=at_s, now_s=at_s + latency_s, under_way=under_way)
        at_s += latency_s
    return at_s


def test_one_more_a_round_up_to_the_highest() -> None:
    calls = Concurrency()
    rounds(calls, lambda _: 1.0, 10)
    assert 17 <= calls.allowed <= 18
    rounds(calls, lambda _: 1.0, 100, at_s=10.0)
    assert calls.allowed == 64


def test_a_storm_of_429_halves_once_a_round_and_ends_at_one() -> None:
    calls, seen = Concurrency(), []
    for i in range(5):
        for _ in range(calls.allowed):
            calls.overloaded(began_s=float(i), now_s=i + 0.5)
        seen.append(calls.allowed)
    assert seen == [4, 2, 1, 1, 1]


def test_a_judge_that_serves_four_at_a_time_is_not_given_many_more() -> None:
    calls = Concurrency()
    rounds(calls, lambda _: 0.5, 30)
    high = calls.allowed
    rounds(calls, lambda n: 0.5 * max(1.0, n / 4), 30, at_s=100.0)
    assert high > 30
    assert 8 <= calls.allowed < high / 2


def test_a_limit_that_is_not_in_use_does_not_grow() -> None:
    calls = Concurrency()
    for i in range(1_000):
        calls.succeeded(began_s=float(i), now_s=i + 1.0, under_way=1)
    assert calls.allowed == 8


def test_a_judge_that_became_slow_for_good_is_learnt() -> None:
    calls = Concurrency()
    at_s = rounds(calls, lambda _: 0.2, 20)
    at_s = rounds(calls, lambda _: 2.0, 60, at_s)
    low = calls.allowed
    rounds(calls, lambda _: 2.0, 250, at_s)
    assert low < 10 < calls.allowed


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-100, 100), st.floats(0, 100), st.integers(1, 64)), max_size=200)
)
def test_always_within_its_bounds(events: list[tuple[bool, float, float, int]]) -> None:
    calls, now_s = Concurrency(low=1, high=64), 0.0
    for is_good, step_s, latency_s, under_way in events:
        now_s += step_s
        if is_good:
            calls.succeeded(began_s=now_s - latency_s, now_s=now_s, under_way=under_way)
        else:
            calls.overloaded(began_s=now_s - latency_s, now_s=now_s)
        assert 1 <= calls.allowed <= 64
