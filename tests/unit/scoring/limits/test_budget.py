"""The books over a real file: budgets, rates, processes that die, days that change, files that break."""

from __future__ import annotations

import math
import multiprocessing
import os
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from ragtrace.scoring import Budget, Caps, Refusal, Reservation
from ragtrace.scoring.limits.budget import ABANDONED_S
from tests.broken_file import JUNK, break_file
from tests.unit.scoring.limits.clocks import NOON, HandClock

if TYPE_CHECKING:
    from pathlib import Path

OFF = {"usd_per_day": None, "tokens_per_day": None, "requests_per_minute": None, "tokens_per_minute": None}
END_OF_DAY = NOON + 43_199.0


def books(
    path: Path | None = None, clock: HandClock | None = None, account: str = "scoring", **caps: float
) -> Budget:
    return Budget(path, host="judge", caps=Caps(**{**OFF, **caps}), clock=clock or HandClock(), account=account)


def granted(outcome: Reservation | Refusal) -> Reservation:
    assert isinstance(outcome, Reservation), outcome
    return outcome


class ManyBooks(RuleBasedStateMachine):
    """Three processes' books over one file, in any order, with any clock: never above what a day allows."""

    open_calls = Bundle("open_calls")
    USD, TOKENS = 2, 28_800

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock(wall_at=86_400.0 * 20_000)
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "limits"
        self.all = [books(path, self.clock, usd_per_day=self.USD, tokens_per_day=self.TOKENS) for _ in range(3)]
        self.all[0].left()  # makes the tables
        self.look = sqlite3.connect(path)

    @rule(target=open_calls, who=st.integers(0, 2), usd=st.floats(0.0, 0.5), tokens=st.integers(0, 5_000))
    def reserve(self, who: int, usd: float, tokens: int) -> tuple[Reservation | None, float, int]:
        before = self.totals(int(self.clock.wall_at // 86_400))
        outcome = self.all[who].reserve(usd=usd, tokens=tokens)
        if isinstance(outcome, Refusal):
            assert outcome.wait_s > 0.0
            return None, usd, tokens
        after = self.totals(int(self.clock.wall_at // 86_400))
        assert after[1] <= self.TOKENS
        assert after[0] <= self.USD * 10**9
        assert after[1] <= before[1] + tokens  # less, where an abandoned one was released
        return outcome, usd, tokens

    @rule(call=consumes(open_calls), who=st.integers(0, 2), share=st.floats(0.0, 1.0))
    def settle(self, call: tuple[Reservation | None, float, int], who: int, share: float) -> None:
        reservation, usd, tokens = call
        if reservation is not None and self.is_known(reservation):  # any process's books may settle it
            assert self.all[who].settle(reservation, usd=usd * share, tokens=int(tokens * share))

    @rule(call=consumes(open_calls))
    def die(self, call: tuple[Reservation | None, float, int]) -> None:
        """The process of a call is killed: nobody ever settles it."""

    @rule(seconds=st.sampled_from([0.0, 1.0, 299.0, 301.0, ABANDONED_S, 20_000.0, 86_400.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.turn(seconds)

    @rule(seconds=st.sampled_from([-90_000.0, -3_600.0, 3_600.0, 90_000.0]))
    def wall_is_set(self, seconds: float) -> None:
        self.clock.wall_at += seconds

    @rule()
    def reboot(self) -> None:
        self.clock.boot += "x"
        self.clock.at = 5.0

    def is_known(self, reservation: Reservation) -> bool:
        return bool(self.look.execute("SELECT 1 FROM reservations WHERE id = ?", (reservation.id,)).fetchone())

    def totals(self, day: int) -> tuple[int, int]:
        spent = self.look.execute("SELECT nano_usd, tokens FROM days WHERE day = ?", (day,)).fetchone() or (0, 0)
        reserved = self.look.execute(
            "SELECT COALESCE(SUM(nano_usd), 0), COALESCE(SUM(tokens), 0) FROM reservations WHERE day = ?", (day,)
        ).fetchone()
        return spent[0] + reserved[0], spent[1] + reserved[1]

    @invariant()
    def never_above_the_budget_of_any_day(self) -> None:
        days = self.look.execute("SELECT day FROM days UNION SELECT day FROM reservations").fetchall()
        for (day,) in days:
            usd, tokens = self.totals(day)
            assert usd <= self.USD * 10**9
            assert tokens <= self.TOKENS

    def teardown(self) -> None:
        self.look.close()
        for one in self.all:
            one.close()
        self.folder.cleanup()


ManyBooks.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestManyBooks = ManyBooks.TestCase


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.floats(0.0, 90.0), st.integers(1, 6_000), st.floats(0.0, 1.0), st.booleans()), max_size=60
    )
)
@settings(max_examples=60, deadline=None)
def test_rates_of_two_processes_together_never_pass_burst_and_rate_times_time(
    calls: list[tuple[float, int, float, bool]],
) -> None:
    import tempfile
    from pathlib import Path

    rpm, tpm = 30, 6_000
    with tempfile.TemporaryDirectory() as folder:
        clock = HandClock()
        pair = [
            books(Path(folder) / "limits", clock, requests_per_minute=rpm, tokens_per_minute=tpm) for _ in range(2)
        ]
        start_s, requests, tokens = clock.at, 0, 0
        for wait_s, request, share, who in calls:
            clock.turn(wait_s)
            outcome = pair[who].reserve(usd=None, tokens=request)
            if isinstance(outcome, Reservation):
                result = int(request * share)
                pair[not who].settle(outcome, usd=None, tokens=result)
                requests, tokens = requests + 1, tokens + result
            passed_s = clock.at - start_s
            assert requests <= rpm / 6 + rpm / 60 * passed_s + 1e-6
            assert tokens <= tpm + tpm / 60 * passed_s + 1e-3
        for one in pair:
            one.close()


def test_a_refusal_by_one_limit_takes_nothing_from_the_others() -> None:
    clock = HandClock(wall_at=END_OF_DAY)
    one = books(None, clock, tokens_per_day=1_000, requests_per_minute=6, tokens_per_minute=500)
    assert one.reserve(usd=None, tokens=800) == Refusal(limit="tokens_per_minute", wait_s=math.inf)
    assert one.left().tokens == 1_000
    granted(one.reserve(usd=None, tokens=500))  # the one request of the burst was still there
    refused = one.reserve(usd=None, tokens=1)
    assert refused == Refusal(limit="requests_per_minute", wait_s=10.0)


def test_reservations_that_stand_in_the_way_are_looked_at_soon() -> None:
    one = books(None, HandClock(wall_at=END_OF_DAY), tokens_per_day=100)
    first = granted(one.reserve(usd=None, tokens=90))
    assert one.reserve(usd=None, tokens=50) == Refusal(limit="budget_tokens", wait_s=1.0)
    one.settle(first, usd=None, tokens=20)
    granted(one.reserve(usd=None, tokens=50))


def test_a_new_day_has_a_new_budget_and_calls_over_midnight_belong_to_the_old_one() -> None:
    clock = HandClock(wall_at=END_OF_DAY)
    one = books(None, clock, usd_per_day=1.0)
    late = granted(one.reserve(usd=0.9, tokens=0))
    clock.turn(2.0)
    assert one.left().usd == 1.0
    assert one.settle(late, usd=0.8, tokens=0)
    assert one.left().usd == 1.0
    clock.wall_at = END_OF_DAY
    assert one.left().usd == pytest.approx(0.2)


def test_money_and_tokens_that_can_never_be_granted_are_said_to_be() -> None:
    one = books(None, usd_per_day=1.0)
    assert one.reserve(usd=1.01, tokens=0) == Refusal(limit="budget_usd", wait_s=math.inf)


def test_an_unknown_price_leaves_the_token_budget() -> None:
    one = books(None, HandClock(wall_at=END_OF_DAY), usd_per_day=0.01, tokens_per_day=100)
    granted(one.reserve(usd=None, tokens=100))
    assert one.reserve(usd=None, tokens=1) == Refusal(limit="budget_tokens", wait_s=1.0)
    assert one.left().usd == 0.01


def test_everything_off_grants_everything() -> None:
    one = books(None)
    for _ in range(50):
        granted(one.reserve(usd=1e6, tokens=10**9))
    assert (one.left().usd, one.left().tokens) == (None, None)
    zeros = Budget(None, host="h", caps=Caps(**dict.fromkeys(OFF, 0)), clock=HandClock())
    granted(zeros.reserve(usd=1e6, tokens=10**9))


def test_a_backfill_has_a_budget_of_its_own_and_shares_the_rates(tmp_path: Path) -> None:
    clock = HandClock(wall_at=END_OF_DAY)
    caps = {"tokens_per_day": 100, "requests_per_minute": 12}
    online, backfill = (books(tmp_path / "l", clock, account, **caps) for account in ("scoring", "backfill"))
    granted(backfill.reserve(usd=None, tokens=100))
    granted(online.reserve(usd=None, tokens=100))
    refused = online.reserve(usd=None, tokens=0)
    assert isinstance(refused, Refusal)
    assert refused.limit == "requests_per_minute"


def _reserve_and_die(path: Path) -> None:
    granted(books(path, tokens_per_day=100, clock=HandClock(wall_at=END_OF_DAY)).reserve(usd=None, tokens=100))
    os._exit(9)


def _take_all(path: Path, out: multiprocessing.Queue[int]) -> None:
    one = books(path, tokens_per_day=3_000, clock=HandClock(wall_at=END_OF_DAY))
    out.put(sum(isinstance(one.reserve(usd=None, tokens=7), Reservation) for _ in range(300)))


@pytest.mark.slow
def test_three_processes_at_once_take_the_budget_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    out: multiprocessing.Queue[int] = context.Queue()
    takers = [context.Process(target=_take_all, args=(tmp_path / "limits", out)) for _ in range(3)]
    for taker in takers:
        taker.start()
    counts = [out.get(timeout=60) for _ in takers]
    for taker in takers:
        taker.join(60)
    assert sum(counts) == 3_000 // 7


def test_the_reservation_of_a_process_that_died_is_released_after_a_while(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    dead = multiprocessing.get_context("spawn").Process(target=_reserve_and_die, args=(path,))
    dead.start()
    dead.join(60)
    assert dead.exitcode == 9
    clock = HandClock(wall_at=END_OF_DAY)
    one = books(path, clock, tokens_per_day=100)
    assert isinstance(one.reserve(usd=None, tokens=1), Refusal)
    clock.at += ABANDONED_S + 1.0
    granted(one.reserve(usd=None, tokens=100))


def test_what_a_call_took_is_written_also_when_its_reservation_was_released() -> None:
    clock = HandClock(wall_at=NOON)
    one = books(None, clock, tokens_per_day=288)
    slow = granted(one.reserve(usd=None, tokens=50))
    clock.turn(ABANDONED_S + 1.0)
    assert one.left().tokens == 288
    assert not one.settle(slow, usd=None, tokens=50)
    assert one.left().tokens == 238


def test_a_reboot_releases_reservations_and_credits_no_rate(tmp_path: Path) -> None:
    clock = HandClock(at=1e6, wall_at=END_OF_DAY)
    one = books(tmp_path / "l", clock, tokens_per_day=1_000, tokens_per_minute=100)
    granted(one.reserve(usd=None, tokens=100))
    clock.boot, clock.at = "boot-2", 20.0
    assert one.reserve(usd=None, tokens=100) == Refusal(limit="tokens_per_minute", wait_s=60.0)
    clock.turn(60.0)
    clock.wall_at = END_OF_DAY
    granted(one.reserve(usd=None, tokens=100))
    assert one.left().tokens == 900


def test_threads_share_one_object() -> None:
    one = books(None, HandClock(wall_at=END_OF_DAY), tokens_per_day=1_000)
    counts: list[int] = []

    def take() -> None:
        counts.append(sum(isinstance(one.reserve(usd=None, tokens=7), Reservation) for _ in range(60)))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 1_000 // 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_opens_the_file_anew(tmp_path: Path) -> None:
    clock = HandClock(wall_at=END_OF_DAY)
    one = books(tmp_path / "l", clock, tokens_per_day=100)
    granted(one.reserve(usd=None, tokens=10))
    child = os.fork()
    if child == 0:
        is_granted = isinstance(one.reserve(usd=None, tokens=20), Reservation)
        os._exit(0 if is_granted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one.left().tokens == 70


def test_a_broken_file_is_put_aside_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "limits"
    break_file(path)
    one = books(path, HandClock(wall_at=END_OF_DAY), tokens_per_day=100)
    granted(one.reserve(usd=None, tokens=100))
    (aside,) = tmp_path.glob("limits.corrupt-*")
    assert JUNK in aside.read_bytes()
    assert "begins anew" in caplog.text


def test_a_folder_that_cannot_be_written_grants_nothing(tmp_path: Path) -> None:
    with pytest.raises((sqlite3.Error, OSError)):
        books(tmp_path / "missing" / "limits", tokens_per_day=1).reserve(usd=None, tokens=1)


@pytest.mark.parametrize("cap", [-1.0, math.nan, math.inf])
def test_a_limit_that_is_no_limit_is_refused(cap: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Caps(usd_per_day=cap)


@pytest.mark.parametrize(
    "tokens", [2**63, 2**62, 10**12, 10**400, -5], ids=["2^63", "2^62", "10^12", "10^400", "-5"]
)
@pytest.mark.parametrize("usd", [None, math.inf, math.nan, 1e300, -1.0])
def test_no_number_is_too_large_or_small_for_the_books(tmp_path: Path, tokens: int, usd: float | None) -> None:
    clock = HandClock()
    one = books(tmp_path / "limits", clock, usd_per_day=9.0, tokens_per_day=28_800_000, tokens_per_minute=200_000)
    for _ in range(3):
        assert one.settle(granted(one.reserve(usd=0.0, tokens=9)), usd=usd, tokens=tokens)
        clock.turn(86_400.0)
        one.left()
    assert isinstance(one.reserve(usd=0.0, tokens=100_000), Reservation), "another day, and the rate has flowed"
    one.close()
