"""A judge server that sends what no server should: it costs one failed call, and neither memory nor secrets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import itertools
import json
import logging
import socket
import threading
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import FailFast

from ragtrace.errors import ConfigError, JudgeError, JudgeInvalidOutput, JudgeRateLimited, JudgeUnavailable
from ragtrace.judges.llm import replies
from ragtrace.judges.openai.client import OpenAIChat, OpenAIEmbedder
from ragtrace.judges.openai.http_client import HTTP_PACKAGES, MOST_ERROR_BYTES
from tests.unit.judges.openai.asking import GOOD, ONCE, Counting, ask, chat_of, limiter_of
from tests.unit.judges.openai.judge_server import Answer, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.judges.openai.judge_server import JudgeServer


class RawServer:
    """Answers each connection with the bytes of `reply`, as long as the client reads them.

    Attributes:
        sent: bytes that were sent.
        heads: what the client asked, one for each request.
    """

    def __init__(self, reply: Callable[[], Iterator[bytes]]) -> None:
        self.sent = 0
        self.heads: list[bytes] = []
        self._reply = reply
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                try:
                    self.heads.append(connection.recv(65_536))
                    for piece in self._reply():
                        connection.sendall(piece)
                        self.sent += len(piece)
                except OSError:
                    continue


@pytest.fixture
def raw():
    made: list[RawServer] = []

    def start(reply: Callable[[], Iterator[bytes]]) -> RawServer:
        made.append(RawServer(reply))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def head(status: int = 200, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode("latin-1")


async def peak_of(model: Any) -> tuple[int, JudgeError | None]:
    """Return the bytes that Python allocated at most during a call, and the call's error."""
    await asyncio.gather(ask(model), return_exceptions=True)  # imports are paid
    tracemalloc.start()
    try:
        (outcome,) = await asyncio.gather(ask(model), return_exceptions=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, outcome if isinstance(outcome, JudgeError) else None


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 201, 400, 401, 404, 429, 500, 503])
async def test_an_endless_body_is_left(raw: Any, status: int) -> None:
    def reply() -> Iterator[bytes]:
        yield head(status, "Content-Type: application/json")
        yield from itertools.repeat(b"x" * 65_536, 20_000)  # 1.3 GB

    server = raw(reply)
    model = chat_of(server.url, retry=ONCE)
    peak, error = await peak_of(model)
    assert peak < 8_000_000
    assert server.sent < 40_000_000  # what stands in the sockets' buffers among it
    assert isinstance(error, JudgeRateLimited if status == 429 else JudgeError)
    assert error.status == (status if status >= 400 else None)


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_a_bomb_is_not_unpacked(raw: Any, status: int, packing: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 15 if packing == "deflate" else 31)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(400)) + packer.flush()  # 400 MB in 400 kB

    def reply() -> Iterator[bytes]:
        yield head(status, f"Content-Encoding: {packing}", f"Content-Length: {len(bomb)}")
        yield bomb

    peak, error = await peak_of(chat_of(raw(reply).url, retry=ONCE))
    assert peak < 8_000_000
    assert isinstance(error, JudgeInvalidOutput | JudgeUnavailable)


@pytest.mark.parametrize("packing", ["gzip", "GZIP", "x-gzip", "identity", ""])
async def test_a_packed_reply_is_read(judge_server: JudgeServer, packing: str) -> None:
    body = json.dumps(completion({"a": "x" * 200_000})).encode()
    packed = gzip.compress(body) if "gzip" in packing.lower() else body
    judge_server.answers = [Answer(200, packed, {"Content-Encoding": packing} if packing else {})]
    assert len((await ask(chat_of(judge_server))).text) > 200_000
    assert judge_server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_packed_error_says_what_it_is(judge_server: JudgeServer, status: int) -> None:
    body = gzip.compress(json.dumps({"error": {"message": "no " * 50_000}}).encode())
    judge_server.always = lambda _: Answer(status, body, {"Content-Encoding": "gzip"})
    with pytest.raises(JudgeError) as caught:
        await ask(chat_of(judge_server, retry=ONCE))
    assert caught.value.status == status


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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_and_named(judge_server: JudgeServer, raw: Any, status: int) -> None:
    elsewhere = raw(lambda: iter([head(200, "Content-Length: 2"), b"{}"]))
    place = f"http://ada:s3cret@127.0.0.1:{elsewhere.port}/v1?token=s3cret"
    judge_server.always = lambda _: Answer(status, {}, {"Location": place})
    limiter = Counting(limiter_of())
    with pytest.raises(JudgeUnavailable) as caught:
        await ask(chat_of(judge_server, limiter))
    said = str(caught.value)
    assert f"redirects to 127.0.0.1:{elsewhere.port} ({status})" in said
    assert "s3cret" not in said
    assert "\n" not in said
    assert elsewhere.heads == [], "nothing was sent there"
    assert len(judge_server.requests) == 1
    assert limiter.limiter.blocked().reason == f"held_{status}", "the same for every call: asked again in 5 min"


@pytest.mark.parametrize(
    "place",
    [
        "",
        "//",
        "http://",
        "http://[::1",
        "http://\x1b[31mevil",
        "ht\ttp://x",
        "a" * 60_000,
        "http://ex%ample:99999/",
    ],
)
async def test_a_redirect_to_anywhere_is_one_line(raw: Any, place: str) -> None:
    server = raw(lambda: iter([head(307, f"Location: {place}", "Content-Length: 0")]))
    with pytest.raises(JudgeUnavailable) as caught:
        await ask(chat_of(server.url, retry=ONCE))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


async def test_cookies_are_not_kept(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: Answer(
        200, GOOD.body, {"Set-Cookie": f"c{len(judge_server.requests)}={'x' * 9_000}"}
    )
    model = chat_of(judge_server)
    for _ in range(5):
        await ask(model)
    assert not any("cookie" in request.headers for request in judge_server.requests)


@pytest.mark.parametrize(
    "begin",
    [b"HTTP/1.1 200 X\r\n", head(200, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n"],
    ids=["headers", "trailers"],
)
async def test_lines_without_end_are_left(raw: Any, begin: bytes) -> None:
    def reply() -> Iterator[bytes]:
        yield begin
        yield from itertools.repeat(b"a: b\r\n" * 10_000, 5_000)  # 300 MB

    peak, error = await peak_of(chat_of(raw(reply).url, retry=ONCE))
    assert isinstance(error, JudgeUnavailable)
    assert peak < 8_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 300_000 + "[]]",
        "[" + "0," * 450_000 + "0]",
        "[" + '"ab",' * 190_000 + "0]",
        '{"a":{' * 100_000,
    ],
)
async def test_json_of_many_values_takes_little_memory(judge_server: JudgeServer, text: str) -> None:
    judge_server.always = lambda _: Answer(200, b'{"choices": ' + text.encode() + b"}")
    peak, error = await peak_of(chat_of(judge_server))
    assert error is not None
    assert peak < 40_000_000


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
        replies.read(replies.GradesReply, '{"grades": [' + "{}," * 300_000 + "{}]}")
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


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "NaN", "-Infinity", "1e300", "true", '"1"', "null"])
async def test_an_embedding_of_other_numbers_is_refused(judge_server: JudgeServer, number: str) -> None:
    body = f'{{"data": [{{"index": 0, "embedding": [{number}, 1.0]}}]}}'.encode()
    judge_server.always = lambda _: Answer(200, body)
    with pytest.raises(JudgeInvalidOutput):
        await OpenAIEmbedder("e", base_url=judge_server.url).embed(["one"])


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


async def test_login_and_query_of_the_address_are_sent(judge_server: JudgeServer, secretive: str) -> None:
    judge_server.always = lambda _: GOOD
    assert (await ask(chat_of(secretive, api_key="k"))).text == '{"a": 1}'
    [request] = judge_server.requests
    assert request.path == f"/v1/chat/completions?api-key={TOKEN}&api-version=1"
    assert request.headers["authorization"] == f"Basic {LOGIN}", "a login in the address goes before the key"


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
