"""Workers with shares of a budget never spend more than the budget and what is under way, whatever they do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.scoring.limits.budget import Budget, Reservation
from ragtrace.service.limits import build_limiter
from ragtrace.settings import Settings
from tests.unit.queues.conftest import HandClock

TOKENS, MINUTE = 10_000, 1_200
WORKERS = st.integers(1, 5)
# (worker, tokens reserved, share of them that the call takes, "settle", "kill" or "hold")
STEPS = st.lists(
    st.tuples(
        st.integers(0, 4), st.integers(1, 4_000), st.floats(0.0, 1.0), st.sampled_from(["settle", "kill", "hold"])
    ),
    max_size=60,
)


def caps_of(share):
    """Return the caps that a worker with this share is built with."""
    given = {"budget_share": share, "budget_tokens_per_day": TOKENS, "judge_tpm": MINUTE, "judge_rpm": 60}
    limiter = build_limiter(Settings.resolve(given, environ={}))
    limiter.close()
    return limiter._budget._caps


class Hand:
    """One worker: its budget, and what its calls took in truth."""

    def __init__(self, path, share, clock):
        self.path, self.clock = path, clock
        caps = caps_of(share)
        self.caps = type(caps)(
            usd_per_day=None,
            tokens_per_day=caps.tokens_per_day,
            requests_per_minute=None,
            tokens_per_minute=None,
        )
        self.taken, self.held = 0, []
        self.open()

    def open(self):
        self.budget = Budget(self.path, host="judge", caps=self.caps, clock=self.clock)

    def call(self, tokens, part, end):
        granted = self.budget.reserve(usd=None, tokens=tokens)
        if not isinstance(granted, Reservation):
            return 0
        took = int(tokens * part)
        self.taken += took
        if end == "settle":
            self.budget.settle(granted, usd=None, tokens=took)
        elif end == "hold":
            self.held.append(granted)
        else:  # killed: nobody settles, and the next process opens the books
            self.held.clear()
            self.budget.close()
            self.open()
            return took
        return 0


def spent(workers, steps, folder):
    """Return the tokens that all took, and those of calls whose process was killed."""
    clock, share = HandClock(), 1.0 / workers
    hands = [Hand(None if folder is None else Path(folder, str(n)), share, clock) for n in range(workers)]
    killed = [hands[at % workers].call(tokens, part, end) for at, tokens, part, end in steps]
    for hand in hands:
        hand.budget.close()
    return sum(hand.taken for hand in hands), sum(killed), killed


@settings(max_examples=60, deadline=None)
@given(WORKERS, STEPS)
def test_with_a_file_all_workers_together_stay_within_the_budget(workers, steps):
    with tempfile.TemporaryDirectory() as folder:
        taken, killed, _ = spent(workers, steps, folder)
    assert taken - killed <= TOKENS


@settings(max_examples=60, deadline=None)
@given(WORKERS, STEPS)
def test_without_a_file_each_start_adds_at_most_one_share(workers, steps):
    taken, _, killed = spent(workers, steps, None)
    restarts = sum(end == "kill" for _, _, _, end in steps)
    assert taken <= TOKENS + restarts * TOKENS / workers + sum(killed)


@settings(deadline=None)
@given(WORKERS)
def test_shares_add_up_to_no_more_than_the_whole(workers):
    caps = caps_of(1.0 / workers)
    assert caps.tokens_per_day * workers <= TOKENS
    assert caps.tokens_per_minute * workers <= MINUTE * (1 + 1e-9)
    assert caps.requests_per_minute * workers <= 60 * (1 + 1e-9)


@settings(deadline=None)
@given(st.integers(1, 4), st.lists(st.floats(0.0, 5.0), max_size=80))
def test_a_rate_holds_over_all_workers(workers, pauses):
    clock, began = HandClock(), 1000.0
    caps = caps_of(1.0 / workers)
    rates = type(caps)(
        usd_per_day=None,
        tokens_per_day=None,
        requests_per_minute=caps.requests_per_minute,
        tokens_per_minute=None,
    )
    budgets = [Budget(None, host="judge", caps=rates, clock=clock) for _ in range(workers)]
    calls = 0
    for n, pause in enumerate(pauses):
        clock.at += pause
        calls += isinstance(budgets[n % workers].reserve(usd=None, tokens=1), Reservation)
    for budget in budgets:
        budget.close()
    burst = max(60 / 6, workers)
    assert calls <= burst + (clock.at - began) + 1e-6
