"""What a server says a call result is believed only where the call can have taken it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.capture import internal_errors
from ragtrace.errors import JudgeRefused, JudgeTruncated, JudgeUnavailable
from ragtrace.judges import ALLOWANCE_TOKENS, USAGE_INVALID, JudgeRequest, OpenAIEmbedder
from ragtrace.judges.limiter import counted
from ragtrace.model import JudgeUsage, Usage
from tests.guards.judge_server import Answer, completion
from tests.unit.judges.openai.asking import Counting, ask, chat_of, limiter_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.guards.judge_server import JudgeServer

NEED = JudgeRequest(model="m", request_bytes=4_000, max_output_tokens=500)
IMPOSSIBLE = [
    2**63, 2**64, 2**62, 10**12, 10**400, -1, -(2**63), 0.5, float("nan"), float("inf"), float("-inf"), 1e300, True,
    "812", "", [812], {"n": 812}, [[]],
]  # fmt: skip


def invalid() -> int:
    return internal_errors().get(USAGE_INVALID, 0)


@pytest.mark.parametrize("said", IMPOSSIBLE, ids=lambda said: repr(said)[:20])
def test_an_impossible_count_is_left_out_and_counted(said: Any) -> None:
    before = invalid()
    assert counted({"prompt_tokens": said, "completion_tokens": 9}, NEED, 40) == Usage(output_tokens=9)
    assert counted({"prompt_tokens": 812, "completion_tokens": said}, NEED, 40) == Usage(input_tokens=812)
    assert invalid() == before + 2


@pytest.mark.parametrize("usage", [[], "many", 7, True, 1.5])
def test_a_usage_that_is_no_object_is_counted(usage: Any) -> None:
    before = invalid()
    assert counted(usage, NEED, 40) == Usage()
    assert invalid() == before + 1


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"total_tokens": 2**70}])
def test_a_server_that_does_not_count_is_no_fault(usage: Any) -> None:
    before = invalid()
    assert counted(usage, NEED, 40) == Usage()
    assert invalid() == before


def test_the_bounds() -> None:
    most = ALLOWANCE_TOKENS
    assert counted({"prompt_tokens": 4_000 + most, "completion_tokens": 500 + most}, NEED, 40) == Usage(
        input_tokens=5_024, output_tokens=1_524
    )
    assert counted({"prompt_tokens": 4_001 + most, "completion_tokens": 501 + most}, NEED, 40) == Usage()
    # A server that ignores the output limit sends the text that it counts.
    assert counted({"completion_tokens": 90_000}, NEED, 360_000) == Usage(output_tokens=90_000)
    assert counted({"prompt_tokens": 812.0, "completion_tokens": 0.0}, NEED, 40) == Usage(
        input_tokens=812, output_tokens=0
    )


@pytest.mark.parametrize("said", [2**63, -5, "9"], ids=repr)
async def test_budget_and_score_of_a_reply_with_an_impossible_usage(
    judge_server: JudgeServer, tmp_path: Path, said: Any
) -> None:
    limiter = Counting(limiter_of(tmp_path / "limits", tokens_per_day=28_800_000, tokens_per_minute=200_000))
    usage = {"prompt_tokens": said, "completion_tokens": said, "total_tokens": said}
    judge_server.always = lambda _: Answer(200, completion({"a": 1}, usage=usage))
    model = chat_of(judge_server, limiter, model=f"said {said}")
    for _ in range(12):
        reply = await asyncio.wait_for(ask(model), 10)
        assert (reply.input_tokens, reply.output_tokens) == (0, 0)
    reading = limiter.limiter.reading()
    assert reading.under_way == 0
    assert 0 < 28_800_000 - reading.budget_tokens < 12 * 2_000  # estimated by bytes
    assert limiter.limiter.blocked() is None


async def test_the_embedding_servers_usage_is_bounded_too(judge_server: JudgeServer) -> None:
    body = {
        "data": [{"index": 0, "embedding": [1.0, 0.0]}],
        "usage": {"prompt_tokens": 2**63, "completion_tokens": 10**9},
    }
    judge_server.always = lambda _: Answer(200, body)
    limiter, before = limiter_of(tokens_per_day=28_800_000), invalid()
    embedder = OpenAIEmbedder("e", base_url=judge_server.url, limiter=limiter)
    assert (await embedder.embed(["one"])).shape == (1, 2)
    assert 0 < 28_800_000 - limiter.reading().budget_tokens < 100
    assert (limiter.reading().under_way, invalid()) == (0, before + 1)


SILENT: list[Any] = [
    {},
    {"choices": []},
    {"choices": None},
    {"choices": "text"},
    {"choices": {"0": {}}},
    {"choices": [None]},
    {"choices": [{}]},
    {"choices": [{"message": None}]},
    {"choices": [{"message": {"role": "assistant"}}]},
    {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    {"choices": [{"message": {"content": 7}, "finish_reason": ["stop"]}]},
]


@pytest.mark.parametrize("body", SILENT, ids=json.dumps)
async def test_a_200_without_a_message_opens_the_breaker(judge_server: JudgeServer, body: Any) -> None:
    judge_server.always = lambda _: Answer(200, body)
    limiter = Counting(limiter_of())
    model = chat_of(judge_server, limiter)
    for _ in range(10):
        with pytest.raises(JudgeUnavailable, match="without a message"):
            await ask(model)
    assert {result.fate for result in limiter.results} == {"failed"}
    assert limiter.limiter.blocked().reason == "breaker_open"


SPOKEN: list[Any] = [
    {"content": ""},
    {"content": "no JSON"},
    {"content": []},
    {"content": None, "refusal": "no"},
    {"content": None, "tool_calls": [{"id": "1"}]},
]


@pytest.mark.parametrize("message", SPOKEN, ids=json.dumps)
async def test_a_message_of_another_form_is_the_models_fault(judge_server: JudgeServer, message: Any) -> None:
    reasons = ["stop", "length", None, 7, ["x"]]
    judge_server.answers = [
        Answer(200, {"choices": [{"message": message, "finish_reason": reason}]}) for reason in reasons * 2
    ]
    limiter = Counting(limiter_of())
    model = chat_of(judge_server, limiter)
    for _ in range(10):
        with contextlib.suppress(JudgeRefused, JudgeTruncated):
            await ask(model)
    assert {result.fate for result in limiter.results} == {"answered"}
    assert limiter.limiter.blocked() is None


async def test_a_failed_reply_that_was_counted_is_charged(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: Answer(
        200, {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}}
    )
    limiter = limiter_of(tokens_per_day=28_800_000)
    with pytest.raises(JudgeUnavailable) as caught:
        await ask(chat_of(judge_server, limiter))
    assert caught.value.usage == JudgeUsage(llm_calls=1, input_tokens=40, output_tokens=2)
    assert limiter.reading().budget_tokens == 28_800_000 - 42
