"""The one line on a judge that fails: each cause once, after a while, and again when it comes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragtrace.judges import AttemptResult, JudgeRequest
from ragtrace.scoring import Caps, JudgeLimiter, Trouble
from ragtrace.scoring.limits import judge_limiter

if TYPE_CHECKING:
    import pytest

NEED = JudgeRequest(model="m", request_bytes=400, max_output_tokens=100)


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_cause_is_said_once_and_another_one_too(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    for _ in range(50):
        trouble.tell("401", "A")
        trouble.tell("500", "B")
    assert [line.partition(";")[0] for line in caplog.messages] == ["ragtrace: A", "ragtrace: B"]


def test_a_cause_that_comes_back_is_said_again_but_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hand()
    trouble = Trouble(clock=clock)
    for _ in range(86_400):  # it comes and goes every second for a day
        trouble.tell("500", "A")
        trouble.is_over()
        clock.now_s += 1.0
    assert 20 < len(caplog.messages) < 40


def test_after_a_recovery_the_next_failure_is_said(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hand()
    trouble = Trouble(clock=clock)
    trouble.tell("500", "A")
    trouble.is_over()
    assert trouble.why == ""
    clock.now_s += 6.0
    trouble.tell("500", "A")
    assert (len(caplog.messages), trouble.why) == (2, "A")


async def test_a_blip_that_an_answer_follows_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    trouble.tell("500", "A", after_s=0.05)
    trouble.is_over()
    trouble.tell("connection", "B", after_s=0.05)
    await asyncio.sleep(0.2)
    assert [line.partition(";")[0] for line in caplog.messages] == ["ragtrace: B"]


def limiter() -> JudgeLimiter:
    return JudgeLimiter(host="judge", caps=Caps(usd_per_day=None))


async def test_a_blip_that_a_refusal_follows_is_not_said_beside_it(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    trouble.tell("none", "A", after_s=0.05)
    trouble.tell("401", "B")
    await asyncio.sleep(0.2)
    assert [line.partition(";")[0] for line in caplog.messages] == ["ragtrace: B"]


async def test_of_two_causes_in_doubt_both_are_said(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    trouble.tell("none", "A", after_s=0.05)
    trouble.tell("500", "B", after_s=0.05)
    await asyncio.sleep(0.2)
    assert {line.partition(";")[0] for line in caplog.messages} == {"ragtrace: A", "ragtrace: B"}


async def test_a_slow_judge_is_said_to_be_silent_once_and_then_given_its_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_limiter, "SILENT_S", 0.05)
    limits = limiter()
    for _ in range(4):
        permit = await limits.acquire(NEED)
        await asyncio.sleep(0.2)
        permit.release(AttemptResult(fate="answered", input_tokens=1, output_tokens=1))
    assert len(caplog.messages) == 1
    assert "judge has not answered for 0 s" in caplog.messages[0]


async def test_one_slow_call_among_quick_ones_is_no_silence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_limiter, "SILENT_S", 0.1)
    limits = limiter()
    slow = await limits.acquire(NEED)
    for _ in range(4):
        quick = await limits.acquire(NEED)
        await asyncio.sleep(0.05)
        quick.release(AttemptResult(fate="answered", input_tokens=1, output_tokens=1))
    slow.release(AttemptResult(fate="answered", input_tokens=1, output_tokens=1))
    assert caplog.messages == []


async def test_a_server_that_limits_our_rate_for_a_moment_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    limits = limiter()
    permit = await limits.acquire(NEED)
    permit.release(AttemptResult(fate="rate_limited", retry_after_s=0.01, message="judge limits the rate (429)"))
    await asyncio.sleep(0.05)
    assert (caplog.messages, limits.trouble.why) == ([], "judge limits the rate (429)")
