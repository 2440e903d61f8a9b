"""What servers and gateways complain of, in the place and the words in which they do, and what it holds up."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import (
    JudgeError,
    JudgeFiltered,
    JudgePromptTooLong,
    JudgeRateLimited,
    JudgeRefused,
    JudgeTruncated,
    JudgeUnavailable,
)
from ragtrace.judges import AttemptResult, JudgeRequest
from ragtrace.judges.limiter import JUDGED
from ragtrace.judges.openai.complaints import complaint_in, complaint_of
from ragtrace.scoring import Caps, JudgeLimiter
from tests import cpu
from tests.guards.judge_server import Answer, completion, refusal
from tests.unit.judges.openai.asking import GOOD, Counting, ask, chat_of, limiter_of
from tests.unit.scoring.limits.clocks import HandClock

if TYPE_CHECKING:
    from tests.guards.judge_server import JudgeServer

AZURE = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "type": None, "param": "prompt", "code": "content_filter", "status": 400,
    "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
}  # fmt: skip
LITELLM_FILTER = {
    "message": "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - blocked", "code": "400",
}  # fmt: skip
OPENROUTER = {"message": "Provider returned error", "code": 400}


def routed(raw: object, code: int = 400) -> dict[str, Any]:
    return {**OPENROUTER, "code": code, "metadata": {"provider_name": "P", "raw": json.dumps(raw)}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # a rate, a busy server, money
        (429, {"message": "slow down"}, "limited"),
        (200, {"message": "slow down", "code": 429}, "limited"),
        (200, {"message": "slow down", "code": "429"}, "limited"),
        (200, {"message": "slow down", "type": "rate_limit_error"}, "limited"),
        (500, {"message": "upstream", "code": 429}, "limited"),
        (400, {"message": "x", "code": "rate_limit_exceeded"}, "limited"),
        (200, routed({"error": {"code": 429}}, 429), "limited"),
        (200, routed({"error": {"code": 429}}), "limited"),
        (200, {"message": "x", "code": "TooManyRequests"}, "limited"),
        (200, {"message": "x", "type": "rate_limit_reached_error"}, "limited"),
        (200, {"message": "x", "code": "Throttling.RateQuota"}, "limited"),
        (200, "429 Too Many Requests", "limited"),
        (200, "Error code: 429 - no", "limited"),
        (200, "Rate limit exceeded", "limited"),
        (200, {"status": 429, "title": "Too Many Requests"}, "limited"),
        (429, {"message": "no", "code": "insufficient_quota"}, "quota"),
        (200, {"message": "no", "type": "insufficient_quota"}, "quota"),
        (503, "<h1>no</h1>", "overloaded"),
        (529, {"type": "overloaded_error"}, "overloaded"),
        (200, {"code": 503, "message": "x"}, "overloaded"),
        (200, "503 Service Unavailable", "overloaded"),
        (200, {"type": "engine_overloaded_error"}, "overloaded"),
        (200, {"code": "ServiceUnavailableException"}, "overloaded"),
        (502, "<h1>Bad gateway</h1><a>Content policy</a>", ""),
        # content
        (400, AZURE, "filtered"),
        (400, LITELLM_FILTER, "filtered"),
        (500, LITELLM_FILTER, "filtered"),
        (400, routed({"error": {"code": "content_filter"}}), "filtered"),
        (403, {"message": "Input was flagged", "code": 403, "metadata": {"flagged_input": "..."}}, "filtered"),
        (400, {"code": "data_inspection_failed", "message": "Input may contain inappropriate content"}, "filtered"),
        (400, {"message": "x", "innererror": {"content_filter_result": {"self_harm": {"filtered": True}}}}, "filtered"),
        (200, {"message": "blocked by our guardrail", "code": 400}, "filtered"),
        (403, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO", "filtered"),
        (400, {"message": "Content Exists Risk", "code": "invalid_request_error"}, "filtered"),
        (400, {"code": "1301", "message": "系统检测到输入可能包含敏感内容"}, "filtered"),
        (424, [{"code": 2016, "message": "Prompt blocked due to security configurations"}], "filtered"),
        # length
        (400, {"message": "This model's maximum context length is 4096 tokens"}, "too_long"),
        (413, {}, "too_long"),
        (400, {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."}, "too_long"),
        (400, {"message": "max_tokens must be at least 1, got -952."}, "too_long"),
        (400, {"message": "too large: 9. The maximum context length is 8", "param": "max_tokens"}, "too_long"),
        (400, {"message": "`inputs` must have less than 8 tokens", "param": "max_tokens"}, "too_long"),
        (400, {"error": "inputs tokens + max_new_tokens must be <= 8"}, "too_long"),
        (400, routed({"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}), "too_long"),
        (413, {"message": "Request too large: tokens per minute", "code": "rate_limit_exceeded"}, "too_long"),
        # one input
        (400, {"message": "Invalid value", "param": "messages[1].content"}, "input"),
        (400, {"message": "Invalid 'input[3]': too short"}, "input"),
        (422, {"detail": [{"loc": ["body", "messages", 1, "content"], "msg": "no string"}]}, "input"),
        (400, {"message": "x", "code": "invalid_prompt"}, "input"),
        # the model
        (404, {"message": "The model `m` does not exist"}, "no_model"),
        (404, {"message": 'model "m" not found, try pulling it first'}, "no_model"),
        (400, {"message": "m", "code": "model_not_found"}, "no_model"),
        (200, {"code": 404, "message": "No such model: m"}, "no_model"),
        # nothing, and another form
        (400, {"message": "bad"}, ""),
        (400, "Bad Request", ""),
        (400, "slow down: rate limit exceeded", ""),
        (200, {"message": "the user wrote: rate limit exceeded"}, ""),
        (404, {"detail": "Not Found"}, ""),
        (404, "", ""),
        (200, {"message": "bad"}, ""),
        (400, {"message": "response_format is not supported", "param": "response_format"}, ""),
        (400, {"message": "max_tokens exceeds the maximum number of tokens", "param": "max_tokens"}, ""),
        (401, {"message": "your content policy key is wrong"}, ""),
        (400, {"message": "your credit is too low"}, "account"),
    ],
)  # fmt: skip
def test_what_a_complaint_is_about(status: int, body: object, kind: str) -> None:
    assert complaint_of(status, body).kind == kind


@pytest.mark.parametrize(
    "quoted",
    [
        "insufficient_quota",
        "invalid_api_key",
        "model m does not exist",
        '{"error": {"code": 401}}',
        "rate_limit_exceeded",
    ],
)
def test_no_text_that_a_server_quotes_holds_the_judge(quoted: str) -> None:
    """A user may write it: only codes of the server hold the judge for all."""
    found = complaint_of(400, {"message": quoted, "code": 400})
    assert (found.status, found.kind in {"", "account"}) == (400, True)


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        ({"error": {"code": 429}}, True),
        ({"error": "busy"}, True),
        ({"errors": [{"code": 10_000}]}, True),
        ({"choices": [{"error": {"code": 502}}]}, True),
        ({"choices": [{"message": {"content": "x"}, "error": {"code": 502}}]}, True),
        ({"detail": "no"}, True),
        ({"status": 429, "title": "Too Many Requests"}, True),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "error"}]}, True),
        ({"choices": [{"message": {"content": "{"}, "finish_reason": "abort"}]}, True),
        ({"choices": [{"message": {"content": "x"}}], "error": {"code": 0, "message": ""}}, False),
        ({"choices": [{"message": {"content": "x"}}], "error": {"code": None, "message": None}}, False),
        ({"object": "error", "message": "no", "code": 400}, True),
        (
            {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]},
            True,
        ),
        ({"choices": [{"message": {"content": "x"}}], "error": None}, False),
        ({"choices": [{"message": {"content": '"filtered": true'}}], "message": "hello"}, False),
        ({"data": [], "message": "hello"}, False),
        ({}, False),
    ],
)
def test_where_the_body_of_a_200_has_an_error(body: dict[str, object], *, is_one: bool) -> None:
    assert (complaint_in(body) is not None) == is_one


@pytest.mark.parametrize(
    "body",
    [
        {"message": "model " * 40_000},
        {"message": "content " * 30_000},
        {"raw": "{" * 250_000},
        [[[{"error": "x"}] * 300] * 300],
        {str(number): {"code": number} for number in range(50_000)},
    ],
)
def test_a_long_complaint_takes_little_time(body: object) -> None:
    before_s = time.thread_time()
    for status in (200, 400, 404):
        complaint_of(status, body)
    taken_s = time.thread_time() - before_s
    assert taken_s < 1.0 or taken_s < cpu.slower()


def test_a_complaint_of_many_levels_is_read_as_far_as_it_goes() -> None:
    body: object = {"code": 429}
    for _ in range(100_000):
        body = [body]
    assert complaint_of(200, body).kind in {"", "limited"}


# -- over HTTP --

LIMITED = {"error": {"message": "Rate limit exceeded", "code": 429}}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, LIMITED),
        Answer(200, [LIMITED]),
        Answer(200, {"choices": [{"error": LIMITED["error"], "finish_reason": "error"}]}),
        Answer(200, {"choices": [{"error": {"code": 502, "message": "x"}, "message": {"content": ""}}]}),
        Answer(200, {"error": {"message": "Provider returned error", "code": 503}}),
        Answer(500, LIMITED),
        Answer(200, {"error": "429 Too Many Requests"}),
        Answer(200, {"error": {"code": "TooManyRequests", "message": "x"}}),
        Answer(529, {"type": "error", "error": {"type": "overloaded_error"}}),
    ],
)
async def test_a_passing_error_in_any_place_is_tried_again(judge_server: JudgeServer, answer: Answer) -> None:
    judge_server.answers = [answer, GOOD]
    assert (await ask(chat_of(judge_server))).text == '{"a": 1}'
    assert len(judge_server.requests) == 2


def stopped(reason: object, **choice: Any) -> Answer:
    return Answer(200, {"choices": [{"index": 0, "finish_reason": reason, **choice}]})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(400, {"error": AZURE}), JudgeFiltered),
        (Answer(400, [{"error": {"code": 400, "message": "prohibited content"}}]), JudgeFiltered),
        (Answer(200, {"error": AZURE}), JudgeFiltered),
        (stopped("content_filter"), JudgeFiltered),
        (stopped("SAFETY", message={"content": None}), JudgeFiltered),
        (stopped(None, native_finish_reason="PROHIBITED_CONTENT"), JudgeFiltered),
        (stopped("length"), JudgeTruncated),
        (stopped("max_output_tokens", message={"content": "x"}), JudgeTruncated),
        (Answer(200, {"error": {"code": 400, "message": "maximum context length"}}), JudgePromptTooLong),
        (refusal(400, "no", param="messages[1].content"), JudgeRefused),
        (Answer(200, {"error": {"code": 401, "message": "no"}}), JudgeUnavailable),
    ],
)
async def test_an_error_that_would_come_again_is_asked_once(
    judge_server: JudgeServer, answer: Answer, error: type[JudgeError]
) -> None:
    judge_server.always = lambda _: answer
    with pytest.raises(error) as caught:
        await ask(chat_of(judge_server))
    assert type(caught.value) is error
    assert len(judge_server.requests) == 1


async def judged(server: JudgeServer, limiter: Any, units: int, tasks: int = 1) -> list[str]:
    """Ask for some units, each as often as it has tasks; return what became of each question."""
    chat, found = chat_of(server, limiter), []
    for number in range(units):
        token = JUDGED.set(f"unit {number}")
        for _ in range(tasks):
            try:
                await ask(chat)
                found.append("")
            except JudgeError as error:
                found.append(error.reason)
        JUDGED.reset(token)
    return found


@pytest.mark.parametrize("status", [400, 404, 405, 422])
async def test_a_bare_rejection_of_everything_opens_the_breaker(judge_server: JudgeServer, status: int) -> None:
    judge_server.always = lambda _: refusal(status, "bad")
    limiter = limiter_of()
    await judged(judge_server, limiter, 30)
    assert limiter.blocked().reason == "breaker_open"
    assert 10 <= len(judge_server.requests) <= 5 * 4
    assert f"({status})" in limiter.trouble.why or f"answered {status}" in limiter.trouble.why


async def test_a_firewall_that_forbids_one_text_holds_nothing(judge_server: JudgeServer) -> None:
    page = Answer(403, b"<html>Sorry, you have been blocked</html>")
    judge_server.always = lambda _: page
    limiter = limiter_of()
    await judged(judge_server, limiter, units=4, tasks=20)
    assert (limiter.blocked(), limiter.trouble.why) == (None, f"{judge_server.url} answered 403")
    await judged(judge_server, limiter, units=5)
    assert limiter.blocked().reason == "breaker_open"


async def test_one_record_that_is_rejected_however_often_opens_nothing(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: refusal(400, "bad")
    limiter = limiter_of()
    await judged(judge_server, limiter, units=4, tasks=20)
    assert limiter.blocked() is None


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400, "no", code="content_filter"),
        refusal(403, "Input was flagged"),
        refusal(400, "maximum context length"),
        refusal(413, "too large"),
        refusal(400, "no", param="messages[1]"),
        Answer(200, {"error": AZURE}),
    ],
)
async def test_what_is_wrong_with_an_input_fails_its_unit_only(judge_server: JudgeServer, answer: Answer) -> None:
    judge_server.always = lambda _: answer
    limiter = Counting(limiter_of())
    found = await judged(judge_server, limiter, 40)
    assert (set(found) & {""}, len(judge_server.requests)) == (set(), 40)
    assert {result.fate for result in limiter.results} == {"unfit"}
    assert (limiter.limiter.blocked(), limiter.limiter.reading().breaker) == (None, 0)


async def test_a_server_whose_form_is_found_in_four_steps_is_not_taken_for_a_broken_one(
    judge_server: JudgeServer,
) -> None:
    judge_server.always = lambda request: GOOD if "response_format" not in request.body else Answer(400, b"no")
    limiter = Counting(limiter_of())
    assert await judged(judge_server, limiter, 20) == [""] * 20
    assert [result.rejections for result in limiter.results[:3]] == [0, 0, 0]


async def test_429_is_said_and_asked_less_and_less(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: Answer(429, {"error": {"message": "no"}})
    clock = HandClock()
    limiter = limiter_of(clock=clock)
    beside = JudgeLimiter(host="judge", caps=Caps(usd_per_day=None), beside=limiter, clock=clock, sleep=clock.sleep)
    began_s = clock.now()
    while clock.now() - began_s < 60.0:
        for one in (limiter, beside):
            with pytest.raises(JudgeRateLimited):
                await ask(chat_of(judge_server, one))
    assert len(judge_server.requests) <= 12
    assert limiter.trouble.why == beside.trouble.why == f"{judge_server.url} limits the rate (429)"


async def test_a_record_is_known_to_the_limiter(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: GOOD
    limiter = Counting(limiter_of())
    await judged(judge_server, limiter, 2)
    assert [need.unit for need in limiter.needs] == ["unit 0", "unit 1"]
    assert limiter.results[0] == AttemptResult(fate="answered", input_tokens=120, output_tokens=7, reply_bytes=len(
        json.dumps(completion({"a": 1}))
    ))  # fmt: skip
    assert JudgeRequest(model="m", request_bytes=1).unit == ""
