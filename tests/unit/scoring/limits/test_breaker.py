"""The breaker: when it opens, how it closes, and what holds it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.scoring import Breaker
from ragtrace.scoring.limits.breaker import HELD_S, LEAST_CALLS, OPEN_MOST_S, OPEN_S, WINDOW_S


def opened(at_s: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(LEAST_CALLS):
        breaker.failed(at_s)
    return breaker


def test_nine_failures_are_too_few() -> None:
    breaker = Breaker()
    for _ in range(9):
        breaker.failed(0.0)
    assert breaker.state(0.0) == "closed"
    breaker.failed(0.0)
    assert breaker.state(0.0) == "open"


def test_less_than_half_does_not_open() -> None:
    breaker = Breaker()
    for i in range(100):
        breaker.succeeded(i * 0.1)
        if i % 2 and i > 20:
            breaker.failed(i * 0.1)
    assert breaker.state(10.0) == "closed"


def test_failures_of_more_than_thirty_seconds_ago_do_not_count() -> None:
    breaker = Breaker()
    for i in range(200):
        now_s = i * (WINDOW_S / LEAST_CALLS + 0.4)
        breaker.succeeded(now_s) if i % 9 == 8 else breaker.failed(now_s)
        assert breaker.state(now_s) == "closed"


def test_ten_failures_in_a_row_open_however_slow_they_are() -> None:
    breaker = Breaker()
    for i in range(LEAST_CALLS):
        assert breaker.state(i * 45.0) == "closed"
        breaker.failed(i * 45.0)
    assert breaker.state(LEAST_CALLS * 45.0 - 45.0) == "open"


def test_a_reply_between_slow_failures_begins_their_row_anew() -> None:
    breaker = Breaker()
    for i in range(9):
        breaker.failed(i * 45.0)
    breaker.succeeded(400.0)
    for i in range(9):
        breaker.failed(445.0 + i * 45.0)
    assert breaker.state(810.0) == "closed"


def test_the_time_it_is_open_doubles_to_ten_minutes_and_begins_anew() -> None:
    breaker, now_s, seen = opened(), 0.0, []
    for _ in range(7):
        seen.append(breaker.wait_s(now_s))
        now_s += seen[-1]
        assert breaker.state(now_s) == "half_open"
        assert breaker.begin(now_s)
        assert breaker.wait_s(now_s) > 0.0  # one probe at a time
        breaker.failed(now_s, is_probe=True)
    assert seen == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    now_s += OPEN_MOST_S
    assert breaker.begin(now_s)
    breaker.succeeded(now_s, is_probe=True)
    assert breaker.state(now_s) == "closed"
    for _ in range(LEAST_CALLS):
        breaker.failed(now_s)
    assert breaker.wait_s(now_s) == OPEN_S


def test_calls_that_end_late_neither_close_nor_prolong() -> None:
    breaker = opened()
    breaker.succeeded(5.0)
    for _ in range(50):
        breaker.failed(6.0)
    assert breaker.state(29.0) == "open"
    assert breaker.wait_s(6.0) == 24.0


def test_a_probe_that_we_gave_up_leaves_room_for_another() -> None:
    breaker = opened()
    assert breaker.begin(31.0)
    breaker.abandoned(is_probe=True)
    assert breaker.wait_s(31.0) == 0.0
    assert breaker.begin(31.0)


def test_a_refusal_holds_until_a_probe_succeeds() -> None:
    breaker, now_s = Breaker(), 0.0
    breaker.refused(now_s, "401")
    for _ in range(5):
        assert (breaker.held, breaker.wait_s(now_s)) == ("401", HELD_S)
        now_s += HELD_S
        assert breaker.begin(now_s)
        breaker.refused(now_s, "401")
    now_s += HELD_S
    assert breaker.begin(now_s)
    breaker.succeeded(now_s, is_probe=True)
    assert (breaker.held, breaker.state(now_s)) == (None, "closed")


@given(st.lists(st.tuples(st.floats(-1e5, 1e5), st.sampled_from(["good", "bad", "refused", "left"])), max_size=80))
def test_whatever_happens_a_call_passes_within_ten_minutes(events: list[tuple[float, str]]) -> None:
    breaker, now_s, furthest_s = Breaker(), 0.0, 0.0
    for step_s, event in events:
        now_s += step_s
        furthest_s = max(furthest_s, now_s)
        is_probe = False if breaker.wait_s(now_s) else breaker.begin(now_s)
        if event == "good":
            breaker.succeeded(now_s, is_probe=is_probe)
        elif event == "bad":
            breaker.failed(now_s, is_probe=is_probe)
        elif event == "refused":
            breaker.refused(now_s, "403")
        else:
            breaker.abandoned(is_probe=is_probe)
        assert not breaker.is_probing
    assert breaker.wait_s(furthest_s + OPEN_MOST_S) == 0.0
