"""What a judge's server may send, good and bad: a table of replies, and what the score of one answer is then."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.guards.judge_server import completion
from tests.guards.raw_server import head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY, PASSWORD, TOKEN = "sk-test-5f0c9d1e", "hunter2-s3cret", "tok-77c1b2d4"
LOGIN = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
SECRETS = (KEY, PASSWORD, TOKEN, LOGIN)
SAID = f"Authorization: Bearer {KEY}, Basic {LOGIN}; /v1?api-key={TOKEN} of ada:{PASSWORD}"
ELSEWHERE = "127.0.0.2:9"
"""Where redirects lead; the test puts a server's address there."""
AUDIT = {
    "sufficient": True, "attempted": True, "noncommittal": False, "claims": ["The lab is in Oslo."], "citations": [],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
}  # fmt: skip


class Row(NamedTuple):
    """One reply.

    Attributes:
        name: what is wrong with it.
        reply: the bytes, piece by piece.
        state: of the score.
        reason: why it has no value.
        requests: how often the server is asked.
    """

    name: str
    reply: Callable[[], Iterator[bytes]]
    state: str
    reason: str | None
    requests: int


def row(name: str, reason: str | None, requests: int, *pieces: bytes) -> Row:
    return Row(name, lambda: iter(pieces), "error" if reason else "ok", reason, requests)


def http(status: int, body: Any = b"", *lines: str) -> bytes:
    """Return a whole reply."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(status, *lines, f"Content-Length: {len(text)}", "Connection: close") + text


def chat(content: Any, **more: Any) -> bytes:
    """Return a whole reply of the model."""
    return http(200, completion(content, **more))


def complaint(status: int, message: str, *lines: str, **error: Any) -> bytes:
    return http(status, {"error": {"message": message, **error}}, *lines)


def endless(begin: bytes, piece: bytes, most: int) -> Callable[[], Iterator[bytes]]:
    return lambda: itertools.chain([begin], itertools.repeat(piece, most // len(piece)))


def never(*begin: bytes) -> Callable[[], Iterator[bytes]]:
    """Return a reply that begins, if at all, and never ends."""

    def pieces() -> Iterator[bytes]:
        yield from begin
        for _ in range(200):
            time.sleep(0.05)
            yield b" " if begin else b""

    return pieces


def bomb(packing: str, megabytes: int = 200) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 15 if packing == "deflate" else 31)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(megabytes)) + packer.flush()
    return http(200, packed, f"Content-Encoding: {packing}")


NUMBERS = ("1" + "0" * 400, "1e400", "NaN", "-Infinity", "1e300", "true", '"1"', "null")
"""What an embedding may not hold."""

SOUND = json.dumps(completion(AUDIT)).encode()
PACKED = gzip.compress(SOUND)
INVALID, UNAVAILABLE, LATE = "judge_invalid_output", "judge_unavailable", "judge_timeout"
DEEP = b"[" * 900 + b"]" * 900
MESSAGE = b'{"choices": [{"message": {"content": %b}}]}'
CODED = "Content-Encoding: "

ROWS = [
    row("a sound reply", None, 1, http(200, SOUND)),
    row("packed", None, 1, http(200, PACKED, f"{CODED}gzip")),
    row("packed, in capitals", None, 1, http(200, PACKED, f"{CODED}GZIP")),
    row("packed, the old name", None, 1, http(200, PACKED, f"{CODED}x-gzip")),
    row("identity", None, 1, http(200, SOUND, f"{CODED}identity")),
    row("in chunks", None, 1, head(200, "Transfer-Encoding: chunked"), b"%x\r\n%b\r\n0\r\n\r\n" % (len(SOUND), SOUND)),
    row("more to come", None, 1, b"HTTP/1.1 100 Continue\r\n\r\n" * 3, http(200, SOUND)),
    row("a large cookie", None, 1, http(200, SOUND, f"Set-Cookie: a={'x' * 9_000}")),
    row("a header of 60 kB", None, 1, http(200, SOUND, f"X: {'a' * 60_000}")),
    row("usage of no number", None, 1, chat(AUDIT, usage={"prompt_tokens": "many", "completion_tokens": -1})),
    row("usage beyond 64 bit", None, 1, chat(AUDIT, usage={"prompt_tokens": 10**40, "completion_tokens": 2**63})),
    # no reply
    row("nothing", UNAVAILABLE, 3),
    row("no HTTP", UNAVAILABLE, 3, b"\x16\x03\x01\x02\x00" * 50),
    row("a cut head", UNAVAILABLE, 3, b"HTTP/1.1 200 X\r\nContent-Le"),
    row("a cut body", UNAVAILABLE, 3, http(200, SOUND)[:-9]),
    row("a cut error", UNAVAILABLE, 3, complaint(500, SAID)[:-9]),
    row("a chunk of no size", UNAVAILABLE, 3, head(200, "Transfer-Encoding: chunked"), b"zz\r\n"),
    row("broken gzip", UNAVAILABLE, 1, http(200, b"\x1f\x8b\x08 broken " + KEY.encode(), f"{CODED}gzip")),
    row("an error in broken gzip", UNAVAILABLE, 3, http(500, b"\x1f\x8b\x08 broken", f"{CODED}gzip")),
    Row("no answer in time", never(), "error", LATE, 1),
    Row("a body that never ends", never(head(200, "Content-Length: 9999")), "error", LATE, 1),
    # statuses
    row("another form", UNAVAILABLE, 1, complaint(400, SAID, param=KEY)),
    row("a wrong key", UNAVAILABLE, 1, complaint(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")),
    row("no money", UNAVAILABLE, 1, complaint(402, SAID)),
    row("no right", UNAVAILABLE, 1, complaint(403, SAID)),
    row("no such model", UNAVAILABLE, 1, complaint(404, SAID)),
    row("too slow", UNAVAILABLE, 3, complaint(408, SAID)),
    row("a long prompt", "contexts_truncated", 1, complaint(413, f"context length: {SAID}"))._replace(state="na"),
    row("a filter", "judge_filtered", 1, complaint(400, SAID, code="content_filter")),
    row("a quota", UNAVAILABLE, 1, complaint(429, SAID, code="insufficient_quota")),
    row("broken", UNAVAILABLE, 3, complaint(500, SAID)),
    row("broken, in HTML", UNAVAILABLE, 3, http(502, f"<h1>{SAID}</h1>".encode())),
    row("broken, packed", UNAVAILABLE, 3, http(500, gzip.compress(b"no " * 50_000), f"{CODED}gzip")),
    row("a status that is none", UNAVAILABLE, 3, http(999, SOUND)),
    row("no content", UNAVAILABLE, 1, head(204, "Connection: close")),
    *(row(f"a redirect, {n}", UNAVAILABLE, 1, http(n, b"", f"Location: http://a:{KEY}@{ELSEWHERE}/v1?t={TOKEN}"))
      for n in (301, 302, 303, 307, 308)),
    *(row(f"a redirect to {ascii(place)[:20]}", UNAVAILABLE, 1, http(307, b"", f"Location: {place}"))
      for place in ("", "//", "http://[::1", "http://\x1b[31mevil", "ht\ttp://x", "http://ex%ample:99999/", "a" * 60_000)),
    # bodies
    *(row(f"a body of {ascii(body)[:20]}", UNAVAILABLE, 1, http(200, body))
      for body in (b"", b"null", b"[]", b"{}", b"<html>hello</html>", b"\xff\xfe", DEEP, "{}".encode("utf-16"))),
    row("no message", UNAVAILABLE, 1, http(200, {"choices": [], "key": KEY})),
    row("an error in a 200", UNAVAILABLE, 1, http(200, {"error": {"message": SAID}})),
    row("a message of no text", INVALID, 2, http(200, MESSAGE % DEEP)),
    row("text that is not UTF-8", UNAVAILABLE, 1, http(200, MESSAGE % b'"\xff\xfe"')),
    row("a lone surrogate", INVALID, 2, http(200, MESSAGE % b'"\\ud800"')),
    row("no number as content", UNAVAILABLE, 1, http(200, MESSAGE % b"NaN")),
    row("calls of tools", INVALID, 2, http(200, MESSAGE % b'null, "tool_calls": [{}]')),
    # what the model says
    *(row(f"the model says {said[:16]!r}", INVALID, 2, chat(said))
      for said in ("", "null", "[]", "{}", "1e999", "I am not able to.", "{'a': 1}", "[" * 5_000, "9" * 5_000)),
    row("half a verdict", INVALID, 2, chat(AUDIT | {"verdicts": [{"id": 1}]})),
    row("a verdict of no claim", "judge_incomplete", 2, chat(AUDIT | {"verdicts": [AUDIT["verdicts"][0] | {"id": 7}]})),
    row("no verdict", "judge_incomplete", 2, chat(AUDIT | {"verdicts": []})),
    row("a source that is none", "judge_incomplete", 2,
        chat(AUDIT | {"verdicts": [AUDIT["verdicts"][0] | {"sources": [10**40]}]})),
    row("a refusal", "judge_refused", 1, chat(None, refusal=f"I cannot judge {KEY}")),
    row("a filtered reply", "judge_filtered", 1, chat("", finish_reason="content_filter")),
    row("the output limit", "judge_truncated", 1, chat('{"attempted": tr', finish_reason="length")),
]  # fmt: skip

BUSY = [
    row("too fast", UNAVAILABLE, 3, complaint(429, SAID, "Retry-After: 0.01")),
    row("overloaded", UNAVAILABLE, 3, complaint(529, SAID)),
]
"""A judge that is busy: all calls pause. Each reply of `ROWS` that failed then would double the pause."""


def large() -> list[Row]:
    """Return replies without an end, and such that are small packed; packing them takes three seconds."""
    return [
        Row("an endless body", endless(head(200), b"x" * 65_536, 10**9), "error", INVALID, 2),
        Row("an endless error", endless(head(500), b"x" * 65_536, 10**9), "error", UNAVAILABLE, 3),
        Row("a wrong key, endless", endless(head(401), b"x" * 65_536, 10**9), "error", UNAVAILABLE, 1),
        Row("headers without end", endless(b"HTTP/1.1 200 X\r\n", b"a: b\r\n" * 10_000, 3 * 10**8), "error", UNAVAILABLE, 3),
        Row("trailers without end", endless(head(200, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n",
                                            b"a: b\r\n" * 10_000, 3 * 10**8), "error", UNAVAILABLE, 3),
        *(row(f"200 MB, packed as {packing}", INVALID, 2, bomb(packing)) for packing in ("gzip", "x-gzip")),
        *(row(f"200 MB, packed as {packing}", UNAVAILABLE, 1, bomb(packing))
          for packing in ("deflate", "br", "zstd", "gzip, gzip")),
        *(row(f"many values, {text[:8]!r}", INVALID, 2, http(200, b'{"choices": ' + text + b"}"))
          for text in (b"[" + b"[]," * 300_000 + b"[]]", b"[" + b"0," * 450_000 + b"0]")),
        row("many texts", UNAVAILABLE, 1, http(200, b'{"choices": [' + b'"ab",' * 190_000 + b"0]}")),
        row("many braces", UNAVAILABLE, 1, http(200, b'{"a":{' * 100_000)),
    ]  # fmt: skip
