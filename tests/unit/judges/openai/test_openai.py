"""OpenAIChat and OpenAIEmbedder against a real server on loopback."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import sys
import threading
import traceback
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import openai
import pytest
from opentelemetry import context

from ragtrace.errors import (
    ConfigError,
    JudgeError,
    JudgeFiltered,
    JudgeInvalidOutput,
    JudgeRateLimited,
    JudgeRefused,
    JudgeTimeout,
    JudgeTruncated,
    JudgeUnavailable,
    MissingExtra,
)
from ragtrace.judges import ChatReply, Judge, LLMJudge, OpenAIChat, OpenAIEmbedder
from ragtrace.judges.openai.http_client import BoundedBody, http_package
from ragtrace.model import RagRecord
from tests.guards.judge_server import Answer, completion, refusal
from tests.unit.judges.openai.asking import GOOD, KEY, ONCE, QUICK, SCHEMA, ask, chat_of

if TYPE_CHECKING:
    from tests.guards.judge_server import JudgeServer, Request


def in_parts(*parts: dict[str, Any]) -> dict[str, Any]:
    body = completion("")
    body["choices"][0]["message"]["content"] = list(parts)
    return body


async def test_thoughts_among_the_parts_of_a_content_are_left_out(judge_server: JudgeServer) -> None:
    thoughts = ({"type": "reasoning", "text": '{"a": 0}'}, {"type": "thinking", "thinking": [{"text": '{"a": 0}'}]})
    said = ({"type": "text", "text": '{"a"'}, {"type": "output_text", "text": ": 1"}, {"text": "}"})
    judge_server.answers = [Answer(200, in_parts(*thoughts, *said))]
    assert (await ask(chat_of(judge_server))).text == '{"a": 1}'


async def test_a_reply_and_the_request_behind_it(judge_server: JudgeServer) -> None:
    judge_server.answers = [GOOD]
    assert await ask(chat_of(judge_server)) == ChatReply(text='{"a": 1}', input_tokens=120, output_tokens=7)
    [request] = judge_server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        "max_tokens": 50,
        "temperature": 0.0,
        "top_p": 1,
        "seed": 42,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "audit", "schema": SCHEMA, "strict": True},
        },
    }


def rung_of(request: Request) -> str:
    form = request.body.get("response_format")
    if form is None:
        return "text"
    if form["type"] == "json_object":
        return "json_object"
    return "strict_schema" if form["json_schema"]["strict"] else "schema"


RUNGS = ["strict_schema", "schema", "json_object", "text"]
COMPLAINTS = [
    refusal(
        400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported", param="response_format"
    ),
    Answer(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "no"}]}),
    Answer(400, b"Bad Request"),
]


@pytest.mark.parametrize("complaint", COMPLAINTS, ids=["openai", "fastapi", "bare"])
@pytest.mark.parametrize("understood", RUNGS)
async def test_every_rung_of_the_ladder(judge_server: JudgeServer, understood: str, complaint: Answer) -> None:
    reply = f"a reply to {understood}"
    judge_server.always = lambda request: (
        Answer(200, completion(reply)) if rung_of(request) == understood else complaint
    )
    assert (await ask(chat_of(judge_server))).text == reply
    tried = RUNGS[: RUNGS.index(understood) + 1]
    assert [rung_of(request) for request in judge_server.requests] == tried
    in_prompt = '"required":["a"]' in judge_server.requests[-1].body["messages"][0]["content"]
    assert in_prompt == (understood in {"json_object", "text"})

    assert (await ask(chat_of(judge_server))).text == reply  # another client, same server and model
    assert [rung_of(request) for request in judge_server.requests] == [*tried, understood]


async def test_refused_parameters_are_left_out_and_remembered(judge_server: JudgeServer) -> None:
    def reasoning_model(request: Request) -> Answer:
        body = request.body
        if "max_tokens" in body:
            return refusal(
                400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", param="max_tokens"
            )
        for name in ("temperature", "seed", "top_p"):
            if name in body:
                return refusal(400, f"Unsupported value: '{name}' does not support this value.")
        return GOOD

    judge_server.always = reasoning_model
    assert (await ask(chat_of(judge_server))).text == '{"a": 1}'
    assert len(judge_server.requests) == 5
    body = judge_server.requests[-1].body
    assert body["max_completion_tokens"] == 50
    assert rung_of(judge_server.requests[-1]) == "strict_schema"
    await ask(chat_of(judge_server))
    assert len(judge_server.requests) == 6


async def test_a_server_that_refuses_everything_is_unavailable_and_not_remembered(
    judge_server: JudgeServer,
) -> None:
    judge_server.always = lambda _: refusal(400, "no")
    with pytest.raises(JudgeUnavailable, match="answered 400: no"):
        await ask(chat_of(judge_server))
    assert [rung_of(request) for request in judge_server.requests] == RUNGS
    judge_server.always = lambda _: GOOD
    await ask(chat_of(judge_server))
    assert rung_of(judge_server.requests[-1]) == "strict_schema"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            refusal(400, "This model's maximum context length is 4096 tokens"),
            JudgeUnavailable,
            "maximum context length",
        ),
        (refusal(400, "The response was filtered", code="content_filter"), JudgeFiltered, "filter"),
        (
            refusal(429, "You exceeded your quota", code="insufficient_quota"),
            JudgeUnavailable,
            "exceeded your quota",
        ),
        *(
            (refusal(status, f"Incorrect API key provided: {KEY}"), JudgeUnavailable, str(status))
            for status in (401, 402, 403, 404, 418)
        ),
    ],
)
async def test_what_would_be_refused_again_is_asked_once(
    judge_server: JudgeServer, answer: Answer, error: type[JudgeError], words: str
) -> None:
    judge_server.always = lambda _: answer
    with pytest.raises(error, match=words) as caught:
        await ask(chat_of(judge_server))
    assert len(judge_server.requests) == 1
    assert "\n" not in str(caught.value)
    if error is JudgeUnavailable:
        assert caught.value.status == answer.status


async def test_concurrent_probes_agree(judge_server: JudgeServer) -> None:
    judge_server.always = lambda request: (
        GOOD if rung_of(request) == "json_object" else refusal(400, "response_format is not supported")
    )
    model = chat_of(judge_server)
    replies = await asyncio.gather(*(ask(model) for _ in range(8)))
    assert {reply.text for reply in replies} == {'{"a": 1}'}
    assert "text" not in [rung_of(request) for request in judge_server.requests]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (completion('{"a"', finish_reason="length"), JudgeTruncated),
        (completion('{"a": 1}', finish_reason="MAX_TOKENS"), JudgeTruncated),
        (completion('{"a": 1}', finish_reason="model_length"), JudgeTruncated),
        (completion("", finish_reason="content_filter"), JudgeFiltered),
        (in_parts({"type": "text", "text": '{"a": 1}'}, {"type": "refusal", "refusal": "No."}), JudgeRefused),
        (completion(None, refusal="I cannot judge this."), JudgeRefused),
    ],
)
async def test_stopped_replies_are_charged(judge_server: JudgeServer, reply: Any, error: type[JudgeError]) -> None:
    judge_server.answers = [Answer(200, reply)]
    with pytest.raises(error) as caught:
        await ask(chat_of(judge_server))
    assert (caught.value.usage.llm_calls, caught.value.usage.input_tokens) == (1, 120)
    assert len(judge_server.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
async def test_two_failures_then_a_reply(judge_server: JudgeServer, status: int) -> None:
    judge_server.answers = [refusal(status, "later"), refusal(status, "later"), GOOD]
    assert (await ask(chat_of(judge_server))).text == '{"a": 1}'
    assert len(judge_server.requests) == 3


@pytest.mark.parametrize(("status", "error"), [(429, JudgeRateLimited), (500, JudgeUnavailable)])
async def test_three_failures_are_enough(judge_server: JudgeServer, status: int, error: type[JudgeError]) -> None:
    judge_server.always = lambda _: refusal(status, "later")
    with pytest.raises(error) as caught:
        await ask(chat_of(judge_server))
    assert len(judge_server.requests) == 3
    assert caught.value.status == status


@pytest.mark.parametrize(
    "header", [{"Retry-After": "0.15"}, {"Retry-After-Ms": "150"}], ids=["seconds", "milliseconds"]
)
async def test_retry_after_is_waited_for(judge_server: JudgeServer, header: dict[str, str]) -> None:
    judge_server.answers = [Answer(429, {}, header), GOOD]
    loop = asyncio.get_running_loop()
    began = loop.time()
    await ask(chat_of(judge_server))
    assert loop.time() - began >= 0.15


@pytest.mark.parametrize("said", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
async def test_a_long_retry_after_is_handed_on(judge_server: JudgeServer, said: str) -> None:
    judge_server.always = lambda _: Answer(429, {}, {"Retry-After": said})
    with pytest.raises(JudgeRateLimited) as caught:
        await ask(chat_of(judge_server))
    assert len(judge_server.requests) == 1
    assert caught.value.retry_after_s >= 3600


async def test_nonsense_in_retry_after_is_ignored(judge_server: JudgeServer) -> None:
    for said in ("nan", "-1", "soon", "1e999", "\u00b2"):
        judge_server.answers = [
            Answer(429, {}, {"Retry-After": said}),
            GOOD,
        ]
        assert (await ask(chat_of(judge_server))).text == '{"a": 1}'


async def test_connection_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else can take it
        model = OpenAIChat("m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retry=QUICK)
        with pytest.raises(JudgeUnavailable, match="cannot be reached"):
            await ask(model)
    assert model.requests_sent == 3


async def test_a_connection_that_fails_says_why(judge_server: JudgeServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for url, why in (
            (f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "connection refused"),
            ("http://judge.invalid/v1", "name does not resolve"),
            (judge_server.url.replace("http:", "https:"), "TLS failed"),
        ):
            with pytest.raises(JudgeUnavailable, match=why):
                await ask(OpenAIChat("m", base_url=url, retry=QUICK))


@pytest.mark.parametrize("way", ["hold", "drip_until"], ids=["answers nothing", "drips"])
async def test_a_slow_server_times_out_once(judge_server: JudgeServer, way: str) -> None:
    done = threading.Event()
    slow = replace(GOOD, **{way: done})
    judge_server.always = lambda _: slow
    with pytest.raises(JudgeTimeout, match=r"within 0\.2 s"):
        await ask(chat_of(judge_server, timeout_s=0.2))
    done.set()
    assert len(judge_server.requests) == 1


async def test_a_broken_body_is_tried_again(judge_server: JudgeServer) -> None:
    judge_server.answers = [Answer(200, completion({"a": 1}), drop=True), Answer(200, completion({"a": 2}))]
    assert (await ask(chat_of(judge_server))).text == '{"a": 2}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"\xff\xfe",
        b"[" * 100_000,
        [],
        {"error": {"message": "overloaded"}},
    ],
)
async def test_garbage_for_an_answer(judge_server: JudgeServer, body: Any) -> None:
    judge_server.answers = [Answer(200, body)]
    with pytest.raises(JudgeUnavailable):
        await ask(chat_of(judge_server))


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_huge_answer_is_not_read_to_its_end(judge_server: JudgeServer, *, is_packed: bool) -> None:
    body = b'{"x": "' + b"a" * 10_000_000 + b'"}'
    headers = {"Content-Encoding": "gzip"} if is_packed else {}
    judge_server.answers = [Answer(200, gzip.compress(body, 1) if is_packed else body, headers)]
    with pytest.raises(JudgeInvalidOutput, match="larger than 1000000 bytes"):
        await ask(chat_of(judge_server, timeout_s=30.0))


async def test_content_in_parts(judge_server: JudgeServer) -> None:
    answer = completion("")
    answer["choices"][0]["message"]["content"] = [{"type": "text", "text": '{"a":'}, {"text": " 1}"}, 3]
    judge_server.answers = [Answer(200, answer)]
    assert (await ask(chat_of(judge_server))).text == '{"a": 1}'


@pytest.mark.parametrize(
    "answer",
    [
        refusal(401, f"Incorrect API key provided: {KEY}"),
        refusal(400, f"bad header Authorization: Bearer {KEY}"),
        refusal(500, KEY),
        Answer(200, {"error": f"who is {KEY}?"}),
        Answer(200, completion({"a": 1}), drop=True),
    ],
)
async def test_the_key_is_in_no_log_and_no_error(
    judge_server: JudgeServer, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    judge_server.always = lambda _: answer
    model = chat_of(judge_server)
    with caplog.at_level(logging.DEBUG), pytest.raises(JudgeError) as caught:
        await ask(model)
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert KEY not in shown
    assert KEY not in caplog.text
    assert KEY not in repr(model)


def test_a_key_that_no_header_can_hold() -> None:
    for key in ("sk-\u0416", "sk-a\nb"):
        with pytest.raises(ConfigError) as caught:
            OpenAIChat("m", api_key=key)
        assert key not in str(caught.value)


@pytest.mark.parametrize("login", ["me:hunter2", "me:1/hunter2", "me:x@hunter2"])
async def test_a_password_in_the_address_is_not_shown(login: str) -> None:
    model = OpenAIChat("m", base_url=f"http://{login}@127.0.0.1:9/v1", retry=QUICK)
    with pytest.raises(JudgeUnavailable) as caught:
        await ask(model)
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1:9" in str(caught.value)


async def test_calls_run_without_instrumentation(judge_server: JudgeServer) -> None:
    judge_server.answers = [GOOD]
    model = chat_of(judge_server)
    seen: list[object] = []

    async def look(_: object) -> None:
        seen.append(context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY))
        seen.append(context.get_value(context._SUPPRESS_HTTP_INSTRUMENTATION_KEY))
        seen.append(context.get_value("suppress_instrumentation"))

    model._transport._connected()._client.event_hooks["request"].append(look)
    await ask(model)
    assert seen == [True, True, True]
    assert context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY) is None


def test_one_model_on_two_event_loops(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: GOOD
    model = chat_of(judge_server)
    assert [asyncio.run(ask(model)).text for _ in range(2)] == ['{"a": 1}'] * 2


def test_the_package_openai_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"ragtrace-otel\[openai\]"):
        OpenAIChat("m", api_key="k")


def test_the_http_package_is_that_of_the_clients_base() -> None:
    """Both may be installed, and an instrumentation may stand between openai's client and its base."""
    own = http_package(openai.DefaultAsyncHttpxClient)
    instrumented = type("Instrumented", (own.AsyncClient,), {"__module__": "opentelemetry.instrumentation.http"})
    assert http_package(type("Client", (instrumented,), {"__module__": "openai"})) is own
    assert own.__name__ == ("httpx" if openai.__version__.startswith("2.") else "httpx2")
    assert issubclass(BoundedBody, own.AsyncByteStream)


async def test_a_judge_over_http_repairs_once(judge_server: JudgeServer) -> None:
    judge_server.answers = [
        Answer(200, completion("I would say three questions.")),
        Answer(200, completion({"questions": [{"question": "Where?", "noncommittal": False}]})),
    ]
    judge = LLMJudge(chat_of(judge_server))
    assert isinstance(judge, Judge)
    verdict = await judge.questions(RagRecord(id="1", answer="In Oslo."), 1)
    await judge.aclose()
    assert judge.name == "openai:m"
    assert verdict.questions[0].text == "Where?"
    assert (verdict.usage.llm_calls, verdict.usage.input_tokens) == (2, 240)


def vectors(request: Request) -> Answer:
    rows = [
        {"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0]}
        for i, text in enumerate(request.body["input"])
    ]
    return Answer(200, {"object": "list", "model": "m", "data": rows[::-1], "usage": {"prompt_tokens": 3}})


async def embed(server: JudgeServer, texts: list[str]) -> list[list[float]]:
    return (await OpenAIEmbedder("m", base_url=server.url, retry=QUICK).embed(texts)).tolist()


async def test_embeddings_by_index_with_zero_rows_for_blanks(judge_server: JudgeServer) -> None:
    judge_server.always = vectors
    assert await embed(judge_server, ["ab", " ", "abc"]) == [[2.0, 1.0], [0.0, 0.0], [3.0, 1.0]]
    assert judge_server.requests[0].body == {"model": "m", "input": ["ab", "abc"], "encoding_format": "float"}
    assert judge_server.requests[0].path == "/v1/embeddings"


async def test_embeddings_in_batches(judge_server: JudgeServer) -> None:
    judge_server.always = vectors
    rows = await embed(judge_server, ["x" * (1 + i) for i in range(200)])
    assert [row[0] for row in rows] == [float(1 + i) for i in range(200)]
    assert [len(request.body["input"]) for request in judge_server.requests] == [32] * 6 + [8]


async def test_nothing_to_embed_costs_no_call(judge_server: JudgeServer) -> None:
    assert await embed(judge_server, ["", " "]) == [[0.0], [0.0]]
    assert await embed(judge_server, []) == []
    assert judge_server.requests == []


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": []}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [float("nan")]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": ["1"]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"index": [], "embedding": [1.0]}, 7],
    ],
)
async def test_unusable_vectors(judge_server: JudgeServer, data: Any) -> None:
    judge_server.always = lambda _: Answer(200, {"data": data})
    with pytest.raises(JudgeInvalidOutput):
        await embed(judge_server, ["a", "b"])


def test_loops_of_two_threads_have_a_client_each(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_server.always = lambda _: GOOD
    model = chat_of(judge_server, retry=ONCE)
    is_connecting, has_asked, is_over = threading.Event(), threading.Event(), threading.Event()
    made, is_slow = openai.AsyncOpenAI, ContextVar("is_slow", default=False)

    def connected(**settings: Any) -> openai.AsyncOpenAI:
        if is_slow.get():  # the thread is another: a client is made off the loop
            is_connecting.set()
            assert has_asked.wait(30)
        return made(**settings)

    async def twice() -> list[ChatReply]:
        first = await ask(model)
        has_asked.set()
        assert is_over.wait(30)
        return [first, await ask(model)]

    def run() -> None:
        is_slow.set(True)
        asyncio.run(ask(model))
        is_over.set()

    monkeypatch.setattr("ragtrace.judges.openai.http_client.AsyncOpenAI", connected)
    slow = threading.Thread(target=run)
    slow.start()
    assert is_connecting.wait(30)
    assert [reply.text for reply in asyncio.run(twice())] == ['{"a": 1}'] * 2
    slow.join(30)
