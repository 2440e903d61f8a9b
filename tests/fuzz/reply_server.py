"""A judge server that answers generated replies: any body, header, status, usage, encoding and end.

``python -m tests.fuzz.reply_server SEED COUNT`` prints its port, answers COUNT hostile replies and sound ones after
that. Reply number n of a seed is the same for the same request.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
import zlib
from dataclasses import dataclass
from typing import Any

NUMBERS = [
    2**63, 2**62, 2**64, 10**12, 10**40, -1, -(2**63), 0, 1, 7, 812, 9.0, 0.5, 1e300, float("nan"), float("inf"),
    True, None, "", "812", [812], {"n": 1}, [[[]]],
]  # fmt: skip
JUNK = [
    1.5, -1, 10**40, float("nan"), "", "1", "\ud800", "\x00", "\x1b[31m", True, None, [], {}, [1], {"id": 1}, [[[]]],
    "supported ", "x" * 3_000,
]  # fmt: skip
TEXTS = [
    "", " ", "null", "[]", "{}", "NaN", "1e999", "{", "[" * 5_000, '{"a":' * 5_000, "I cannot help.", "{'a': 1}",
    '{"id": 1, "id": 2}', "<think>5</think>", "\ud800", "9" * 5_000, '{"grades": [{"id": ' + "9" * 4_000 + "}]}",
    '{"grades": [' + "{}," * 5_000 + "{}]}", "\u202e\u0000\ufeff{}",
]  # fmt: skip
BODIES = [
    b"", b"null", b"[]", b"{}", b"true", b'"x"', b"<html>hello</html>", b"\xff\xfe", b"\x00" * 1_000, b"[" * 50_000,
    b'{"a":' * 20_000, b"1" * 5_000, b'{"usage": {"prompt_tokens": ' + b"9" * 10_000 + b"}}",
    b'{"choices": [' + b"[]," * 200_000 + b"[]]}", b'{"choices": [' + b'"ab",' * 150_000 + b"1]}",
    b'{"choices": ' + b"[" * 900 + b"]" * 900 + b"}", b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"error": {"message": "\\ud800\\u001b[31m' + b"x" * 9_000 + b'"}}', "{}".encode("utf-16"), b"{" * 900_000,
    b'{"choices": [{"message": {"content": ' + b"[" * 900 + b"]" * 900 + b"}}]}",
    b'{"choices": [{"message": {"content": "\\ud800"}}]}', b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    b'{"choices": [{"message": {"content": "{}"}}], "choices": []}',
    b'{"choices": [{"message": {"content": NaN}}], "usage": {"prompt_tokens": Infinity}}',
    b'{"choices": [{"message": {"content": "{}", "refusal": 7}, "finish_reason": [1]}]}',
    b'{"error": {"code": ' + b"[" * 900 + b"]" * 900 + b', "message": "x", "param": 7}}', "{}".encode("utf-32"),
]  # fmt: skip
STATUSES = [
    201, 204, 206, 226, 299, 300, 301, 302, 303, 304, 307, 308, 400, 400, 400, 401, 402, 403, 404, 405, 408, 409, 410,
    413, 418, 422, 422, 429, 429, 429, 451, 499, 500, 500, 500, 502, 503, 503, 504, 529, 599, 600, 999,
]  # fmt: skip
LINES = [
    "Retry-After: 5", "Retry-After: 0.001", f"Retry-After: {'9' * 400}", "Retry-After: nan", "Retry-After: -1",
    "Retry-After: Wed, 21 Oct 2037 07:28:00 GMT", "Retry-After: Fri, 99 Foo 99999 99:99:99", "retry-after-ms: 3",
    "Retry-After: inf", "Retry-After: 1e9", f"Retry-After: {'9' * 50_000}", "Retry-After: \xb2",
    "Retry-After: Mon, 01 Jan 0000 00:00:00 +9999", f"retry-after-ms: {'9' * 309}", "retry-after-ms: 1e400",
    "Retry-After: \x1b[31m", "x-should-retry: true", "x-should-retry: false",
    "Content-Type: text/event-stream", "Content-Type: text/plain; charset=hex", "Content-Type: ;;;",
    "Content-Type: text/html; charset=punycode",
    "Content-Type: application/json; charset=utf-16", "Location: http://ada:pw@127.0.0.1:1/", "Location: http://[::1",
    "Location: \x1b]0;x\x07", f"Location: {'a' * 20_000}", f"Set-Cookie: a={'b' * 4_000}", "Set-Cookie: ;;=;",
    "Content-Encoding: br", "Content-Encoding: zstd", "Content-Encoding: identity", "Content-Encoding: gzip, gzip",
    "Content-Encoding: gzip", "Content-Encoding: ,,,",
    "Connection: close", "Keep-Alive: timeout=0", f"X-Long: {'a' * 60_000}", "X-Bytes: \xff\xfe", "Trailer: x",
    "Transfer-Encoding: gzip", "Content-Length: 3", "openai-processing-ms: x", "X: y\r\n" * 200 + "X: z",
]  # fmt: skip


@dataclass
class Sent:
    """A reply on the wire: pieces, and how it ends (keep, close, reset, endless, drip, hang)."""

    pieces: list[bytes]
    end: str = "keep"


def schema_of(request: bytes) -> dict[str, Any]:
    """Return the schema that the request asks for, by its format or within its prompt."""
    body = json.loads(request)
    if "messages" not in body:
        return {"input": body.get("input", [])}
    named = (body.get("response_format") or {}).get("json_schema")
    if named:
        return named["schema"]
    found = re.search(r"of this JSON schema: (\{.*\})", body["messages"][0]["content"])
    return json.loads(found[1]) if found else {"type": "object", "properties": {}}


def of_schema(rng: random.Random, schema: dict[str, Any]) -> Any:
    """Return a value of a schema, and now and then of none."""
    if rng.random() < 0.02:
        return rng.choice(JUNK)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return {name: of_schema(rng, inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [of_schema(rng, schema.get("items", {})) for _ in range(rng.randrange(4))]
    if kind == "boolean":
        return rng.random() < 0.5
    return rng.randrange(1, 4) if kind == "integer" else rng.choice(["Oslo", "Where?", "x" * 40, "1"])


def usage_of(rng: random.Random, size: int) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return {"prompt_tokens": rng.randrange(size // 2), "completion_tokens": rng.randrange(400)}
    if kind < 0.9:
        return {name: rng.choice(NUMBERS) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    return rng.choice([None, [], "many", 7, True, {}, {"prompt_tokens": {"prompt_tokens": 1}}])


def answer_of(rng: random.Random, request: bytes) -> Any:
    """Return the JSON of a 200: a completion, or vectors."""
    schema = schema_of(request)
    if "input" in schema:
        rows = [{"index": i, "embedding": [rng.random() for _ in range(8)]} for i in range(len(schema["input"]))]
        if rows and rng.random() < 0.5:
            rows[-1] = rng.choice([None, {}, {"index": 0, "embedding": [rng.choice(NUMBERS)]}, {"index": -1}, 7])
        return {"data": rng.choice([rows, rows, rows, None, {}, [rows]]), "usage": usage_of(rng, len(request))}
    text: Any = json.dumps(of_schema(rng, schema)) if rng.random() < 0.7 else rng.choice(TEXTS)
    if rng.random() < 0.1:
        text = rng.choice([None, 7, [], {}, [{"type": "text", "text": text}], [{"text": 7}, None, text]])
    message: Any = {"role": "assistant", "content": text}
    if rng.random() < 0.1:
        message |= rng.choice([{"refusal": "no"}, {"refusal": 7}, {"tool_calls": [{}]}, {"tool_calls": 7}])
    finish = rng.choice(["stop"] * 8 + ["length", "content_filter", "tool_calls", None, 7, [], {"a": 1}])
    choice: Any = {"index": 0, "message": message, "finish_reason": finish}
    choices: Any = [choice]
    if rng.random() < 0.1:
        choices = rng.choice([[], None, {}, "x", [None], [{}], [[choice]], [{"message": 7}], [choice] * 50])
    answer: Any = {"id": "c", "object": "chat.completion", "choices": choices, "usage": usage_of(rng, len(request))}
    if rng.random() < 0.05:
        answer["error"] = rng.choice(["no", {"message": "\x1b[31m"}, [], 0, {"message": 7}])
    return answer


def complaint_of(rng: random.Random) -> Any:
    said = rng.choice([
        "response_format is not supported", "unknown seed", "max_tokens: use max_completion_tokens", "context length",
        "insufficient_quota", "boom\r\nboom", "\ud800", "x" * 9_000, 7, None, ["x"], {"a": {}},
    ])  # fmt: skip
    error = {
        "message": said,
        "code": rng.choice([None, 7, "content_filter", [], "x"]),
        "param": rng.choice([None, 7, "seed"]),
    }
    return rng.choice([{"error": error}, {"error": said}, {"detail": [error]}, [error], said])


def reply_of(rng: random.Random, request: bytes) -> Sent:
    """Return one hostile reply."""
    # Drawn before what depends on the request, so that a seed always has replies of each end, rare ones too.
    end = rng.choices(
        ["keep", "close", "truncate", "chunked", "bad chunk", "endless", "reset", "drip", "hang", "garbage", "1xx"],
        [80, 5, 3, 5, 1, 0.5, 1, 0.15, 0.1, 1, 1],
    )[0]
    status = 200 if rng.random() < 0.75 else rng.choice(STATUSES)
    if rng.random() < 0.15:
        body = rng.choice(BODIES)
    else:
        value = answer_of(rng, request) if status < 300 else complaint_of(rng)
        body = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")
    lines = [rng.choice(LINES) for _ in range(rng.choice([0, 0, 0, 1, 2, 5]))]
    if rng.random() < 0.1:
        body = rng.choice([gzip.compress(body, 1), gzip.compress(body, 1)[:-9], zlib.compress(body, 1), body])
        lines.append("Content-Encoding: gzip")
    elif rng.random() < 0.005:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        body = b"".join(packer.compress(b" " * 1_000_000) for _ in range(60)) + packer.flush()
        lines.append("Content-Encoding: gzip")
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{line}\r\n" for line in lines)
    return _ended(rng, end, head, body)


def _ended(rng: random.Random, end: str, head: str, body: bytes) -> Sent:
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body
    open_head = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode("latin-1")
    if end == "truncate":
        return Sent([whole[: rng.randrange(len(whole))]], "close")
    if end == "chunked":
        step = rng.choice([1, 100, 100_000]) if len(body) < 5_000 else 50_000
        parts = [body[i : i + step] for i in range(0, len(body), step)]
        return Sent([open_head, *(b"%x\r\n%b\r\n" % (len(part), part) for part in parts), b"0\r\nT: x\r\n\r\n"])
    if end == "bad chunk":
        return Sent(
            [open_head, rng.choice([b"zz\r\n", b"-1\r\n", b"f" * 300, b"3;x=" + b"y" * 9_000 + b"\r\nabc"])],
            "close",
        )
    if end == "endless":
        piece = rng.choice([b"x" * 60_000, b" " * 60_000, b"[" * 60_000, b'{"a": 1}, ' * 6_000])
        return Sent([open_head, b"%x\r\n%b\r\n" % (len(piece), piece)], "endless")
    if end in {"drip", "hang"}:
        return Sent([open_head] if rng.random() < 0.5 else [], end)
    if end == "garbage":
        return Sent([rng.randbytes(rng.randrange(3_000))], "close")
    if end == "1xx":
        return Sent([b"HTTP/1.1 100 Continue\r\n\r\n" * rng.choice([1, 50]), whole])
    return Sent([whole], end)


def sound_of(request: bytes) -> Sent:
    """Return a sound reply to an audit, to embeddings, or to anything."""
    schema = schema_of(request)
    if "input" in schema:
        answer: Any = {"data": [{"index": i, "embedding": [1.0, 0.5]} for i in range(len(schema["input"]))]}
    else:
        verdict = {"id": 1, "sources": [1], "reason": "", "verdict": "supported"}
        cited = [{"part": number, "cites": number, "support": "full"} for number in (1, 2)]
        said = {
            "attempted": True, "noncommittal": False, "claims": ["It is."], "verdicts": [verdict], "citations": cited,
        }  # fmt: skip
        message = {"role": "assistant", "content": json.dumps(said)}
        answer = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    answer["usage"] = {"prompt_tokens": 120, "completion_tokens": 7}
    body = json.dumps(answer).encode()
    return Sent([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body])


class ReplyServer:
    """Answers on any number of connections."""

    def __init__(self, seed: str, count: int) -> None:
        self._seed, self._count, self._number = seed, count, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        request = await reader.readexactly(int(length[1]) if length else 0)
        if head.startswith(b"GET /number"):
            said = str(self._number).encode()
            sent = Sent([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said])
        elif self._number < self._count:
            self._number += 1
            sent = reply_of(random.Random(f"{self._seed}:{self._number}"), request)
        else:
            sent = sound_of(request)
        for piece in sent.pieces:
            writer.write(piece)
        await writer.drain()
        while sent.end == "endless":
            writer.write(sent.pieces[-1])
            await writer.drain()
        if sent.end == "drip":
            for _ in range(200):
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        elif sent.end == "hang":
            await reader.read(1)
        elif sent.end == "reset":
            writer.transport.abort()
        return sent.end == "keep"


async def main() -> None:
    server = ReplyServer(sys.argv[1], int(sys.argv[2]))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - its port, for the driver
    async with listening:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the driver is gone


if __name__ == "__main__":
    asyncio.run(main())
