"""Every attempt passes the limiter: OpenAIChat and OpenAIEmbedder against a real server on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import JudgeRateLimited, JudgeTimeout, JudgeUnavailable
from ragtrace.judges import AttemptResult, OpenAIEmbedder, RetryPolicy
from tests.guards.judge_server import Answer, completion, refusal
from tests.unit.judges.openai.asking import GOOD, Counting, ask, chat_of, limiter_of
from tests.unit.scoring.limits.clocks import HandClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.guards.judge_server import JudgeServer


async def test_attempts_probes_and_tokens_all_pass(judge_server: JudgeServer) -> None:
    limiter = Counting(limiter_of(tokens_per_day=28_800_000))
    judge_server.answers = [Answer(500, {}), refusal(400, "response_format is not supported"), GOOD]
    chat = chat_of(judge_server, limiter)
    await ask(chat)
    assert [result.fate for result in limiter.results] == ["failed", "rejected", "answered"]
    assert limiter.results[1].rejections == 0, "another form follows"
    assert len(judge_server.requests) == len(limiter.needs) == 3
    assert {need.max_output_tokens for need in limiter.needs} == {50}
    assert limiter.limiter.reading().budget_tokens == 28_800_000 - 127


async def test_embeddings_pass_too(judge_server: JudgeServer) -> None:
    limiter = Counting(limiter_of())
    body = {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 3, "total_tokens": 3}}
    judge_server.answers = [Answer(200, body)]
    await OpenAIEmbedder("e", base_url=judge_server.url, limiter=limiter).embed(["x"])
    assert limiter.results[0].input_tokens == 3


async def test_a_storm_of_429_with_a_short_retry_after_is_ridden_out(judge_server: JudgeServer) -> None:
    answered, lock, began_s = 0, threading.Lock(), 0.0

    def storm(_: Any) -> Answer:
        nonlocal answered, began_s
        with lock:
            began_s = began_s or time.monotonic()  # with the first request: the client may be imported before
            stormy = time.monotonic() - began_s < 0.4
            answered += not stormy
        return Answer(429, {"error": {"message": "slow down"}}, {"retry-after-ms": "100"}) if stormy else GOOD

    judge_server.always = storm
    limiter = Counting(limiter_of(tokens_per_day=28_800_000))
    chat = chat_of(judge_server, limiter, retry=RetryPolicy(attempts=20, backoff_s=0.001))
    replies = await asyncio.wait_for(asyncio.gather(*(ask(chat) for _ in range(12))), 60)
    assert len(replies) == answered == 12
    limited = [result for result in limiter.results if result.fate == "rate_limited"]
    assert limited
    # Each 100 ms of the storm at most a full house of 8 asks, not twelve callers as often as they like.
    assert len(limited) <= 8 * 5
    assert limiter.limiter.reading().breaker == 0
    assert limiter.limiter.reading().budget_tokens == 28_800_000 - 12 * 127


async def test_a_retry_after_of_an_hour_closes_the_gate_and_is_not_slept(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: Answer(429, {"error": {"message": "no"}}, {"retry-after": "3600"})
    limiter = limiter_of()
    chat = chat_of(judge_server, limiter)
    for _ in range(5):
        with pytest.raises(JudgeRateLimited):
            await ask(chat)
    assert len(judge_server.requests) == 1
    assert 3_590 < limiter.blocked().wait_s <= 3_600


async def test_a_judge_that_is_down_is_asked_ten_times_and_then_left_alone() -> None:
    limiter = Counting(limiter_of(tokens_per_day=28_800_000))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there once it is closed
    chat = chat_of(f"http://127.0.0.1:{port}/v1", limiter, model="down")
    for _ in range(30):
        with pytest.raises(JudgeUnavailable):
            await ask(chat)
    assert [result.fate for result in limiter.results] == ["failed"] * 10
    assert limiter.limiter.reading().breaker == 2
    assert limiter.limiter.reading().budget_tokens == 28_800_000  # an outage costs nothing


async def test_a_slow_judge_times_out_and_opens_the_breaker(judge_server: JudgeServer) -> None:
    never = threading.Event()
    judge_server.always = lambda _: Answer(200, completion({"a": 1}), hold=never)
    limiter = Counting(limiter_of())
    chat = chat_of(judge_server, limiter, timeout_s=0.1)
    outcomes = await asyncio.gather(*(ask(chat) for _ in range(24)), return_exceptions=True)
    never.set()
    assert {type(outcome) for outcome in outcomes} == {JudgeTimeout, JudgeUnavailable}
    assert 10 <= len(limiter.results) <= 17  # ten that count, and those under way with them
    assert {result.fate for result in limiter.results} == {"timed_out"}
    assert limiter.limiter.blocked().reason == "breaker_open"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (refusal(401, "bad key"), "401"),
        (refusal(402, "pay"), "402"),
        (refusal(403, "not yours"), "403"),
        (refusal(404, "no such model"), "404"),
        (refusal(429, "no money", code="insufficient_quota"), "quota"),
    ],
)
async def test_a_refusal_holds_the_gate(judge_server: JudgeServer, answer: Answer, reason: str) -> None:
    judge_server.always = lambda _: answer
    limiter = limiter_of()
    chat = chat_of(judge_server, limiter)
    for _ in range(3):
        with pytest.raises(JudgeUnavailable):
            await ask(chat)
    assert len(judge_server.requests) == 1
    assert limiter.reading().held == reason


async def test_a_cancelled_call_leaves_the_gate(judge_server: JudgeServer) -> None:
    release, asked = threading.Event(), threading.Event()

    def held(_: Any) -> Answer:
        asked.set()
        return Answer(200, completion({"a": 1}), hold=release)

    judge_server.always = held
    limiter = Counting(limiter_of())
    chat = chat_of(judge_server, limiter)
    task = asyncio.create_task(ask(chat))
    await asyncio.wait_for(asyncio.to_thread(asked.wait, 10), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert limiter.results == [AttemptResult(fate="abandoned")]
    assert limiter.limiter.reading().under_way == 0


async def test_two_processes_share_a_budget(judge_server: JudgeServer, tmp_path: Path) -> None:
    judge_server.always = lambda _: GOOD
    pair = [limiter_of(tmp_path / "limits", tokens_per_day=288 * 600) for _ in range(2)]
    chats = [chat_of(judge_server, limiter) for limiter in pair]
    await asyncio.gather(*(ask(chat) for chat in chats for _ in range(2)), return_exceptions=True)
    left = {limiter.reading().budget_tokens for limiter in pair}
    assert left == {288 * 600 - 127 * len(judge_server.requests)}
    for limiter in pair:
        limiter.close()


def test_jitter_is_full_bounded_and_ends() -> None:
    patience = RetryPolicy(attempts=2_000)
    waits = [[patience.wait_s(attempt) for _ in range(200)] for attempt in (1, 2, 3, 10, 1_999)]
    for bound_s, row in zip((1.0, 2.0, 4.0, 60.0, 60.0), waits, strict=True):
        assert all(0.0 <= wait_s <= bound_s for wait_s in row)
        assert max(row) > bound_s * 0.9
        assert min(row) < bound_s * 0.1
    assert patience.wait_s(2_000) is None


@pytest.mark.parametrize("kind", ["chat", "embeddings"])
@pytest.mark.parametrize(
    ("status", "fate"), [(408, "failed"), (429, "rate_limited"), (500, "failed"), (503, "failed")]
)
async def test_the_client_repeats_nothing_by_itself(
    judge_server: JudgeServer, status: int, fate: str, kind: str
) -> None:
    """Neither on a status nor where the server asks for it: each request of the server's count passed the limiter."""
    headers = {"x-should-retry": "true", "retry-after-ms": "1"}
    judge_server.always = lambda _: Answer(status, {"error": {"message": "again"}}, headers)
    limiter = Counting(limiter_of(clock=HandClock()))
    retry = RetryPolicy(attempts=4, backoff_s=0.001)
    settings: dict[str, Any] = {"api_key": "k", "limiter": limiter, "retry": retry}
    if kind == "chat":
        model: Any = chat_of(judge_server, **settings)
        call = ask(model)
    else:
        model = OpenAIEmbedder("m", base_url=judge_server.url, **settings)
        call = model.embed(["one"])
    with pytest.raises(JudgeRateLimited if status == 429 else JudgeUnavailable):
        await call
    assert [result.fate for result in limiter.results] == [fate] * 4
    assert len(judge_server.requests) == len(limiter.needs) == model._transport.requests_sent == 4
    retried = {request.headers.get("x-stainless-retry-count") for request in judge_server.requests}
    assert retried == {"0"}, "the client counts its own repeats"
