"""The limiter with a clock that a test turns."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import JudgeOverBudget, JudgeRateLimited, JudgeUnavailable
from ragtrace.judges import AttemptResult, JudgeRequest
from ragtrace.scoring import Breaker, Caps, JudgeLimiter, Prices
from ragtrace.scoring.limits.breaker import FIRST_CALLS, NoBreaker
from tests.unit.scoring.limits.clocks import NOON, HandClock

if TYPE_CHECKING:
    from pathlib import Path

    from ragtrace.judges import Fate
    from ragtrace.scoring import JudgePermit

OFF = {"usd_per_day": None, "tokens_per_day": None, "requests_per_minute": None, "tokens_per_minute": None}
NEED = JudgeRequest(model="m", request_bytes=400, max_output_tokens=100)
END_OF_DAY = NOON + 43_000.0


@pytest.fixture
def clock() -> HandClock:
    return HandClock(wall_at=END_OF_DAY)


def limiter_of(
    clock: HandClock, path: Path | None = None, prices: Prices | None = None, **caps: float
) -> JudgeLimiter:
    return JudgeLimiter(
        host="judge", caps=Caps(**{**OFF, **caps}), path=path, prices=prices, clock=clock, sleep=clock.sleep
    )


async def call(
    limiter: JudgeLimiter, fate: Fate = "answered", request: JudgeRequest = NEED, **result: Any
) -> JudgePermit:
    passed = await limiter.acquire(request)
    passed.release(AttemptResult(fate=fate, **result))
    return passed


async def test_a_call_waits_for_the_rate(clock: HandClock) -> None:
    limiter = limiter_of(clock, requests_per_minute=6)
    for _ in range(3):
        await call(limiter)
    assert sum(clock.slept) == pytest.approx(20.0, abs=0.1)


async def test_a_wait_of_more_than_a_minute_is_not_waited_for(clock: HandClock) -> None:
    limiter = limiter_of(clock, requests_per_minute=0.5)
    await call(limiter)
    with pytest.raises(JudgeRateLimited, match="used up") as caught:
        await call(limiter)
    assert caught.value.retry_after_s == pytest.approx(120.0)
    closed = limiter.blocked()
    assert closed is not None
    assert (closed.reason, closed.wait_s) == ("requests_per_minute", pytest.approx(120.0))
    assert limiter.reading().under_way == 0
    clock.turn(121.0)
    assert limiter.blocked() is None
    await call(limiter)


async def test_a_backfill_has_more_patience_with_rates(clock: HandClock) -> None:
    caps = Caps(**{**OFF, "requests_per_minute": 0.5})
    limiter = JudgeLimiter(host="judge", caps=caps, patience_s=600.0, clock=clock, sleep=clock.sleep)
    for _ in range(3):
        await call(limiter)
    assert sum(clock.slept) == pytest.approx(240.0, abs=0.1)


async def test_and_none_with_budgets(clock: HandClock) -> None:
    caps = Caps(**{**OFF, "tokens_per_day": 10_000})
    limiter = JudgeLimiter(host="judge", caps=caps, patience_s=600.0, clock=clock, sleep=clock.sleep)
    await call(limiter, input_tokens=9_900, output_tokens=90)
    with pytest.raises(JudgeOverBudget):
        await call(limiter)
    assert clock.slept == []


async def test_a_call_larger_than_a_minutes_rate_is_told_what_to_raise(clock: HandClock) -> None:
    with pytest.raises(JudgeRateLimited, match="judge_tpm") as caught:
        await call(limiter_of(clock, tokens_per_minute=499))
    assert caught.value.retry_after_s == math.inf


async def test_what_was_reserved_and_not_used_comes_back(clock: HandClock) -> None:
    limiter = limiter_of(clock, tokens_per_day=10_000)
    passed = await limiter.acquire(NEED)
    assert limiter.reading().budget_tokens == 9_500
    passed.release(AttemptResult(fate="answered", input_tokens=90, output_tokens=10))
    passed.release(AttemptResult(fate="answered", input_tokens=90, output_tokens=10))  # says nothing more
    assert limiter.reading().budget_tokens == 9_900
    assert limiter.reading().under_way == 0


@pytest.mark.parametrize(
    ("fate", "left"),
    [("rate_limited", 1_000), ("failed", 1_000), ("refused", 1_000), ("timed_out", 900), ("abandoned", 900)],
)
async def test_what_an_attempt_without_a_reply_costs(clock: HandClock, fate: Fate, left: int) -> None:
    limiter = limiter_of(clock, tokens_per_day=1_000)
    await call(limiter, fate)
    assert limiter.reading().budget_tokens == left


async def test_a_server_that_does_not_count_is_charged_by_bytes(clock: HandClock) -> None:
    limiter = limiter_of(clock, tokens_per_day=1_000)
    await call(limiter, reply_bytes=40)
    assert limiter.reading().budget_tokens == 1_000 - 100 - 10


async def test_with_no_budget_left_the_gate_is_closed_until_midnight(clock: HandClock) -> None:
    limiter = limiter_of(clock, tokens_per_day=600)
    await call(limiter, input_tokens=400, output_tokens=100)
    with pytest.raises(JudgeOverBudget):
        await call(limiter)
    closed = limiter.blocked()
    assert closed is not None
    assert closed.reason == "budget_exceeded"
    assert closed.wait_s == pytest.approx(86_400 - 86_200, abs=1)
    clock.turn(closed.wait_s + 86_390.0)
    assert limiter.blocked() is None
    await call(limiter)


async def test_a_call_dearer_than_a_day_is_told_what_to_raise(clock: HandClock) -> None:
    own = Prices(input_usd_per_million=1e6, output_usd_per_million=0.0)
    with pytest.raises(JudgeOverBudget, match="raise budget_usd_per_day or budget_tokens_per_day"):
        await call(limiter_of(clock, prices=own, usd_per_day=399.0))


async def test_money_is_spent_at_ones_own_prices(clock: HandClock) -> None:
    own = Prices(input_usd_per_million=1_000.0, output_usd_per_million=10_000.0)
    limiter = limiter_of(clock, prices=own, usd_per_day=5.0)
    await call(limiter, input_tokens=100, output_tokens=20)
    assert limiter.reading().budget_usd == pytest.approx(5.0 - 0.1 - 0.2)


async def test_without_a_price_there_is_no_reading_of_money(
    clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = JudgeLimiter(host="judge", caps=Caps(), clock=clock, prices=Prices(base_url="http://10.0.0.7/v1"))
    for _ in range(2):
        await call(limiter, request=JudgeRequest(model="home-made", request_bytes=10))
    assert (limiter.reading().budget_usd, limiter.reading().budget_tokens) == (None, 20_000_000 - 4)
    assert caplog.text.count("only the token budget holds") == 1


async def test_a_judge_that_fails_is_left_alone_and_then_asked_once(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for _ in range(10):
        await call(limiter, "failed")
    closed = limiter.blocked()
    assert closed is not None
    assert (closed.reason, closed.wait_s, limiter.reading().breaker) == ("breaker_open", 30.0, 2)
    with pytest.raises(JudgeUnavailable, match="not called for 30 s"):
        await call(limiter)
    clock.turn(30.0)
    assert (limiter.blocked(), limiter.reading().breaker) == (None, 1)
    probe = await limiter.acquire(NEED)
    others = [asyncio.create_task(call(limiter)) for _ in range(5)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert limiter.reading().under_way == 6  # they wait for the probe's word
    probe.release(AttemptResult(fate="answered"))
    await asyncio.gather(*others)
    assert limiter.reading().breaker == 0


async def test_calls_that_wait_for_a_probe_fail_with_it(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for _ in range(10):
        await call(limiter, "failed")
    clock.turn(30.0)
    probe = await limiter.acquire(NEED)
    other = asyncio.create_task(call(limiter))
    await asyncio.sleep(0)
    probe.release(AttemptResult(fate="failed"))
    with pytest.raises(JudgeUnavailable):
        await other
    assert limiter.blocked().wait_s > 50.0


@pytest.mark.parametrize("reason", ["401", "402", "403", "404", "quota"])
async def test_a_refusal_holds_the_judge_and_a_probe_every_five_minutes_frees_it(
    clock: HandClock, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = limiter_of(clock)
    for _ in range(3):
        await call(limiter, "refused", reason=reason)
        closed = limiter.blocked()
        assert closed is not None
        assert (closed.reason, closed.wait_s) == (f"held_{reason}", 300.0)
        with pytest.raises(JudgeUnavailable, match=reason):
            await call(limiter)
        clock.turn(300.0)
        assert limiter.blocked() is None
    assert (limiter.reading().held, limiter.reading().breaker) == (reason, 2)
    await call(limiter)
    assert (limiter.blocked(), limiter.reading().held, limiter.reading().breaker) == (None, None, 0)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_retry_after_closes_the_gate_for_all_and_for_two_hours_at_most(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    await call(limiter, "rate_limited", retry_after_s=90_000.0)
    closed = limiter.blocked()
    assert closed is not None
    assert (closed.reason, closed.wait_s) == ("rate_limited", 7_200.0)
    with pytest.raises(JudgeRateLimited):
        await call(limiter)
    clock.turn(7_170.0)
    await call(limiter)  # the last half minute is waited for
    assert sum(clock.slept) == pytest.approx(30.0)


async def test_a_shorter_retry_after_does_not_shorten_a_longer_one(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    first, second = await limiter.acquire(NEED), await limiter.acquire(NEED)
    first.release(AttemptResult(fate="rate_limited", retry_after_s=600.0))
    second.release(AttemptResult(fate="rate_limited", retry_after_s=5.0))
    assert limiter.blocked().wait_s == 600.0


async def test_429_pauses_all_calls_and_opens_no_breaker(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for _ in range(10):
        await call(limiter, "rate_limited")
        assert limiter.blocked().reason == "rate_limited"
    assert clock.slept == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]
    assert limiter.reading().breaker == 0
    await call(limiter)
    assert limiter.blocked() is None
    await call(limiter, "rate_limited")
    assert limiter.blocked().wait_s == 2.0, "an answer begins anew"


async def test_the_judge_s_own_pause_is_kept_and_then_lengthened(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for _ in range(7):
        await call(limiter, "rate_limited", retry_after_s=1.0)
    assert clock.slept == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


async def test_behind_a_pause_one_call_passes_and_the_others_wait_for_it(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    await call(limiter)
    sent = [await limiter.acquire(NEED) for _ in range(8)]
    for passed in sent:
        passed.release(AttemptResult(fate="rate_limited", is_busy=True))
    assert limiter.blocked().wait_s == 2.0, "calls that were under way are one refusal"
    clock.turn(2.0)
    probe = await limiter.acquire(NEED)
    assert (limiter.blocked().reason, limiter.reading().breaker) == ("rate_limited", 0)
    others = [asyncio.create_task(call(limiter)) for _ in range(5)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert limiter.spent.calls == 10
    probe.release(AttemptResult(fate="answered"))
    await asyncio.gather(*others)
    assert limiter.spent.calls == 15


async def test_a_judge_that_has_answered_nothing_gets_few_calls_at_once(clock: HandClock) -> None:
    limiter = JudgeLimiter(host="judge", caps=Caps(**OFF), calls=32, clock=clock, sleep=clock.sleep)
    tasks = [asyncio.create_task(limiter.acquire(NEED)) for _ in range(32)]

    async def passed() -> list[JudgePermit]:
        for _ in range(10):
            await asyncio.sleep(0)
        return [task.result() for task in tasks if task.done()]

    first = await passed()
    assert len(first) == FIRST_CALLS
    first[0].release(AttemptResult(fate="abandoned"))
    assert len(await passed()) == FIRST_CALLS + 1
    first[1].release(AttemptResult(fate="answered"))
    assert len(await passed()) == 32


@pytest.mark.parametrize("fate", ["timed_out", "failed", "abandoned", "refused", "rejected", "unfit"])
@pytest.mark.parametrize("kind", [Breaker, NoBreaker])
async def test_a_probe_of_a_pause_gives_its_place_back_however_it_ends(
    clock: HandClock, fate: Fate, kind: type[Breaker]
) -> None:
    limiter = JudgeLimiter(host="judge", caps=Caps(**OFF), breaker=kind, clock=clock, sleep=clock.sleep)
    for _ in range(30):
        await call(limiter, "rate_limited")
        clock.turn(31.0)
        await call(limiter, fate, reason="401" if fate == "refused" else "")
        clock.turn(700.0)
        await call(limiter)
        assert limiter.blocked() is None


async def test_a_busy_judge_that_stays_so_opens_the_breaker(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    while limiter.reading().breaker != 2:
        await call(limiter, "failed", reason="503", is_busy=True)
        assert limiter.spent.calls <= 10
    assert clock.slept == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]
    assert limiter.blocked().reason == "breaker_open"


async def rejected(limiter: JudgeLimiter, unit: str, times: int = 1, **result: Any) -> None:
    await call(limiter, "rejected", JudgeRequest(model="m", request_bytes=9, unit=unit), rejections=times, **result)


async def test_rejections_of_five_records_in_a_row_open_the_breaker(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for _ in range(50):
        for unit in "abcd":
            await rejected(limiter, unit, 4)
    assert limiter.blocked() is None, "four records may be at fault themselves"
    await rejected(limiter, "e")
    assert (limiter.blocked().reason, limiter.reading().breaker) == ("breaker_open", 2)
    clock.turn(30.0)
    await rejected(limiter, "a")
    assert limiter.blocked().wait_s == 60.0
    clock.turn(60.0)
    await call(limiter)
    assert limiter.blocked() is None


@pytest.mark.parametrize("fate", ["unfit", "rejected", "answered"])
async def test_what_one_input_has_in_it_never_counts(clock: HandClock, fate: Fate) -> None:
    """An input that is filtered, a form that another follows, and an answer between nine."""
    limiter = limiter_of(clock)
    for number in range(40):
        if fate != "answered" or number % 10 == 9:
            await call(limiter, fate, JudgeRequest(model="m", request_bytes=9, unit=f"u{number}"), rejections=0)
        else:
            await rejected(limiter, f"u{number}")
    assert (limiter.blocked(), limiter.reading().breaker) == (None, 0)


async def test_an_unfit_input_is_no_success_between(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    for number in range(10):
        assert limiter.blocked() is None
        await rejected(limiter, f"u{number}")
        await call(limiter, "unfit") if number < 9 else None
    assert limiter.blocked().reason == "breaker_open"


async def test_each_model_has_a_breaker_and_limiters_beside_each_other_share_them(clock: HandClock) -> None:
    limiter = limiter_of(clock, tokens_per_day=10_000)
    beside = JudgeLimiter(
        host="judge", caps=Caps(**OFF), account="canary", beside=limiter, clock=clock, sleep=clock.sleep
    )
    embedding = JudgeRequest(model="e", request_bytes=9)
    await call(beside, "refused", embedding, reason="404")
    assert limiter.blocked().reason == "held_404"
    await call(limiter)
    assert limiter.blocked({"m"}) is None
    await call(beside, "rate_limited")
    assert limiter.blocked({"m"}).reason == "rate_limited"
    await call(limiter, "answered", input_tokens=1)
    assert clock.slept == [2.0]
    assert beside.blocked({"m"}) is None
    assert (limiter.reading().budget_tokens, beside.reading().budget_tokens) == (10_000 - 100 - 1, None)


async def test_a_cancelled_waiter_keeps_no_place(clock: HandClock) -> None:
    limiter = limiter_of(clock)
    await call(limiter)
    held = [await limiter.acquire(NEED) for _ in range(8)]
    waiting = asyncio.create_task(limiter.acquire(NEED))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for passed in held:
        passed.release(AttemptResult(fate="answered"))
    assert limiter.reading().under_way == 0


async def test_books_that_cannot_be_written_make_no_call(
    tmp_path: Path, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "later"
    limiter = limiter_of(clock, path=folder / "limits", tokens_per_day=1_000)
    with pytest.raises(JudgeUnavailable, match="limits cannot be written"):
        await call(limiter)
    assert limiter.blocked().reason == "limits_file"
    assert (limiter.reading().budget_tokens, limiter.reading().under_way) == (None, 0)
    assert "no call of the judge is made" in caplog.text
    folder.mkdir()
    clock.turn(61.0)
    await call(limiter)
    limiter.close()


@pytest.mark.parametrize(
    "part",
    ["_budget.settle", "prices.price_of", "_estimate.learn", "breaker.succeeded"],
)
async def test_a_slot_and_a_probe_come_back_whatever_fails(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    owner, name = part.split(".")

    def broken(*_: Any, **__: Any) -> None:
        raise OverflowError("Python int too large to convert to SQLite INTEGER")

    limiter = limiter_of(clock, usd_per_day=1_000, tokens_per_day=28_800_000)
    for _ in range(10):
        await call(limiter, "failed")
    clock.turn(31.0)  # the next call is the probe
    passed = await limiter.acquire(NEED)
    kind = Breaker if owner == "breaker" else type(getattr(limiter, owner))
    monkeypatch.setattr(kind, name, broken)
    passed.release(AttemptResult(fate="answered", input_tokens=9, output_tokens=9))
    assert limiter.reading().under_way == 0
    monkeypatch.undo()
    clock.turn(31.0)
    for _ in range(20):
        await call(limiter)
    assert limiter.reading().under_way == 0


async def test_a_reading_of_any_size_frees_its_slot(clock: HandClock, tmp_path: Path) -> None:
    """A limiter of the application's own may hand through what a server said."""
    limiter = limiter_of(clock, tmp_path / "limits", tokens_per_day=28_800_000)
    for tokens in (2**63, 2**62, 10**12, -(2**70)):
        for _ in range(12):
            await asyncio.wait_for(call(limiter, input_tokens=tokens, output_tokens=tokens), 10)
            clock.turn(86_400.0)
    assert limiter.reading().under_way == 0
    limiter.close()
