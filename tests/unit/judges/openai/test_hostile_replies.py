"""A judge server that sends what no server should: parsing stops, and no log holds a secret; see tests/guards."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import FailFast

from ragtrace.errors import ConfigError, JudgeInvalidOutput, JudgeUnavailable
from ragtrace.judges import OpenAIChat, OpenAIEmbedder
from ragtrace.judges.llm import replies
from ragtrace.judges.openai.http_client import HTTP_PACKAGES, MOST_ERROR_BYTES
from tests.guards.judge_server import Answer
from tests.guards.raw_server import RawServer
from tests.unit.judges.openai.asking import GOOD, ONCE, ask, chat_of, limiter_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.guards.judge_server import JudgeServer


@pytest.fixture
def raw():
    made: list[RawServer] = []

    def start(reply: Callable[[], Iterator[bytes]]) -> RawServer:
        made.append(RawServer(lambda _: reply()))
        return made[-1]

    yield start
    for server in made:
        server.stop()


async def test_an_error_within_the_bound_is_read_whole(judge_server: JudgeServer) -> None:
    said = "seed is not supported " + "x" * (MOST_ERROR_BYTES - 500)
    judge_server.answers = [Answer(400, {"error": {"message": said, "param": "seed"}}), GOOD]
    assert (await ask(chat_of(judge_server, model="long complaint"))).text == '{"a": 1}'
    assert "seed" not in judge_server.requests[1].body


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (307, "redirects to 127.0.0.2:9 (307), which is not followed: set judge_base_url"),
        (401, "refuses the API key (401): check"),
        (402, "refuses the judge's calls (402)"),
    ],
)
async def test_the_log_says_why_a_judge_is_held_and_quotes_nothing_of_it(
    judge_server: JudgeServer, caplog: pytest.LogCaptureFixture, status: int, told: str
) -> None:
    body = {"error": {"message": "the question was: Where is Ada?"}}
    judge_server.always = lambda _: Answer(status, body, {"Location": "http://127.0.0.2:9/v1"})
    with pytest.raises(JudgeUnavailable):
        await ask(chat_of(judge_server, limiter_of()))
    (line,) = [text for text in caplog.messages if "asked again every 5 min" in text]
    assert told in line
    assert "Ada" not in line


async def test_vectors_of_many_values_are_not_parsed(judge_server: JudgeServer) -> None:
    """Parsed, these 6 MB would take 140 MB; no chat reply is long enough to show it."""
    judge_server.always = lambda _: Answer(200, b'{"data": [' + b"[]," * 2_000_000 + b"[]]}")
    embedder = OpenAIEmbedder("e", base_url=judge_server.url)
    tracemalloc.start()
    with pytest.raises(JudgeInvalidOutput, match="more than 300000 values"):
        await embedder.embed(["one"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


def test_the_rows_of_a_reply_are_left_at_the_first_wrong_one() -> None:
    tracemalloc.start()
    with pytest.raises(JudgeInvalidOutput, match=r"grades\.0\.id: Field required"):
        replies.read(replies.GradesReply, '{"grades": [' + "{}," * 87_000 + "{}]}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def _forms(form: type[replies.Form] = replies.Form) -> Iterator[type[replies.Form]]:
    for kind in form.__subclasses__():
        yield kind
        yield from _forms(kind)


def test_every_list_of_every_form_is_left_at_its_first_wrong_row() -> None:
    import ragtrace.judges.llm.judge  # noqa: F401 - brings all forms in

    lists = [
        (form.__name__, name, field)
        for form in _forms()
        for name, field in form.model_fields.items()
        if "list" in repr(field.annotation)
    ]
    assert len(lists) > 10
    assert [row[:2] for row in lists if not any(isinstance(it, FailFast) for it in row[2].metadata)] == []


# -- secrets in the address --

PASSWORD, TOKEN = "hunter2-s3cret", "tok-5f0c9d1e"


LOGIN = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()


@contextlib.contextmanager
def everything_logged(caplog: pytest.LogCaptureFixture, *names: str) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        for name in names:
            logging.getLogger(name).setLevel(logging.DEBUG)
        yield


@pytest.fixture
def secretive(judge_server: JudgeServer) -> str:
    return judge_server.url.replace("http://", f"http://ada:{PASSWORD}@") + f"?api-key={TOKEN}&api-version=1"


@pytest.mark.parametrize("status", [200, 307, 401, 500, 0])
async def test_no_secret_of_the_address_is_in_a_log_or_error(
    judge_server: JudgeServer, secretive: str, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    echo = f"who is {PASSWORD}, {LOGIN} or {TOKEN}? {secretive}"
    judge_server.always = lambda _: Answer(
        status or 200,
        {"error": {"message": echo}},
        {"Location": "/elsewhere"} if status == 307 else {},
        drop=not status,
    )
    if status == 200:
        judge_server.always = lambda _: GOOD
    model = chat_of(secretive, retry=ONCE)
    with everything_logged(caplog, *HTTP_PACKAGES, "openai", "ragtrace"):
        (outcome,) = await asyncio.gather(ask(model), return_exceptions=True)
    shown = caplog.text + "".join(repr(record.__dict__) for record in caplog.records)
    shown += repr(outcome) + repr(vars(outcome) if isinstance(outcome, Exception) else "") + repr(model)
    shown += model.fingerprint() + repr(vars(model._transport).get("base_url"))
    assert {record.name for record in caplog.records} & HTTP_PACKAGES, "the client logs its requests"
    for secret in (PASSWORD, TOKEN, LOGIN):
        assert secret not in shown


@pytest.mark.parametrize("status", [200, 307, 401, 429, 500])
async def test_no_secret_that_a_server_sends_back_is_in_a_log(
    judge_server: JudgeServer, secretive: str, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """A redirect to https repeats the query; a debugging proxy repeats every header."""
    secrets = (PASSWORD, TOKEN, LOGIN, "sk-9f31c0")
    headers = {"Location": f"/v1/chat?api-key={TOKEN}", "X-Echo": ", ".join(secrets), "X-Version": "1"}
    judge_server.always = lambda _: Answer(status, GOOD.body, headers)
    with everything_logged(caplog, *HTTP_PACKAGES, "openai"):
        await asyncio.gather(
            ask(chat_of(secretive, retry=ONCE, api_key="sk-9f31c0")),
            return_exceptions=True,
        )
    shown = caplog.text + "".join(repr(record.__dict__) for record in caplog.records)
    assert "X-Echo" in shown, "the client logs the headers of a reply"
    assert not [secret for secret in secrets if secret in shown]
    assert "(b'X-Version', b'1')" in shown, "what is too short to be a secret stays"


@pytest.mark.parametrize("line", ["HTTP/1.1 500 {}", "HTTP/1.1 307 X\r\nLocation: http://{}.example/"])
async def test_no_secret_in_a_reason_phrase_or_a_host_is_in_a_log_or_error(
    raw: Any, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    server = raw(lambda: iter([f"{line.format(TOKEN)}\r\nContent-Length: 0\r\n\r\n".encode()]))
    with everything_logged(caplog, *HTTP_PACKAGES):
        (outcome,) = await asyncio.gather(
            ask(chat_of(f"{server.url}?api-key={TOKEN}&v=1", retry=ONCE)),
            return_exceptions=True,
        )
    assert f'"{line.partition(chr(13))[0].format("[key]")}"' in caplog.text, "the client logs the status line"
    assert TOKEN not in caplog.text + str(outcome)
    assert "127.0.0.1" in str(outcome), "a version's number is no secret"


def test_an_address_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="judge_base_url has no valid host") as caught:
        OpenAIChat("m", base_url=f"http://ada:{PASSWORD}@[::1")
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None
