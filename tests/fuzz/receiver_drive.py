"""Sends fuzzed OTLP over kept connections of both protocols to a receiver in a process of its own.

``python -m tests.fuzz.receiver_drive SEED COUNT`` prints a report; `drive` is what the test calls.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import json_format

from tests.fuzz.receiver_server import TOKEN
from tests.unit.ingest.receiving.requests import logs_request, some_spans
from tests.unit.ingest.receiving.test_otlp_json import as_json

if TYPE_CHECKING:
    from collections.abc import Iterator

SENDERS = 2  # of each protocol
GOOD = some_spans(9, 3)
SERVICES = ["trace.v1.TraceService", "logs.v1.LogsService"]
BEARER = f"Bearer {TOKEN}"
_PROTOBUF = [some_spans(n, n).SerializeToString() for n in range(8)] + [
    logs_request("gen_ai.evaluation.result", "x").SerializeToString(), b""
]  # fmt: skip
_JSON = [json.dumps(as_json(some_spans(n, n + 1))).encode() for n in range(4)] + [
    json.dumps(json_format.MessageToDict(logs_request("gen_ai.evaluation.result"))).encode(), b"{}"
]  # fmt: skip
_JUNK = [
    b"\xff" * 30, b"[" * 5_000, b'{"resourceSpans":' * 2_000, b"{" * 100, b"null", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" * 999,
    b"\x0a\x00" * 20_000, b"\x0b" * 50, b"\x12\x80", gzip.compress(bytes(6 * 2**20)), gzip.compress(b"[" * 2**20),
    zlib.compress(bytes(2**20)), bytes(2**20 + 1), b'{"resourceSpans":[' + b"{}," * 6_000 + b"{}]}", b"\x1f\x8b\x08",
]  # fmt: skip
_NUMBERS = [
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"1e999",
    b"-1",
    b"\x00",
]


def body_of(rng: random.Random, *, is_json: bool) -> bytes:
    if rng.random() < 0.05:
        return rng.choice(_JUNK)
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(400))
    body = bytearray(rng.choice(_JSON if is_json else _PROTOBUF))
    for _ in range(rng.choice([0, 1, 1, 2, 8])):
        change(rng, body)
    return bytes(body)


def change(rng: random.Random, body: bytearray) -> None:
    at, other = rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)
    kind = rng.randrange(6)
    if kind == 0 and at < len(body):
        body[at] = rng.randrange(256)
    elif kind == 1:
        del body[at : at + rng.randrange(20)]
    elif kind == 2:
        body[at:at] = rng.randbytes(rng.randrange(1, 12))
    elif kind == 3:
        body[at:at] = body[min(at, other) : max(at, other)]
    elif kind == 4:
        del body[at:]
    else:
        body[at : at + 1] = rng.choice(_NUMBERS)


class HttpSender:
    """One connection that is kept while the receiver keeps it."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self.port, self.rng = port, rng
        self.socket: socket.socket | None = None

    def send(self) -> str:
        rng = self.rng
        if rng.random() < 0.02:
            return self.send_garbage()
        is_json = rng.random() < 0.4
        body = body_of(rng, is_json=is_json)
        head = self.head_of(is_json=is_json)
        if rng.random() < 0.15:
            body = gzip.compress(body, 1)
            head += b"Content-Encoding: gzip\r\n"
        if rng.random() < 0.2:
            middle = rng.randrange(len(body) + 1)
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:middle], body[middle:]) if part)
            return self.ask(head + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
        return self.ask(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def head_of(self, *, is_json: bool) -> bytes:
        rng = self.rng
        method, path = b"POST", rng.choice([b"/v1/traces", b"/v1/traces", b"/v1/logs"])
        if rng.random() < 0.04:
            method = rng.choice([b"GET", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"X" * 40])
        if rng.random() < 0.04:
            path = rng.choice([b"/", b"/v1/metrics", b"/v1/traces?a=%ff", b"/%00", b"*", b"/" + b"a" * 2_000])
        kind = b"application/json" if is_json else b"application/x-protobuf"
        if rng.random() < 0.04:
            kind = rng.choice([b"text/plain", b"", b"application/json; charset=utf-16", b"\xff", b";" * 50])
        token = BEARER.encode() if rng.random() > 0.04 else rng.choice([b"", b"Bearer x", b"\xff", b"Basic " * 20])
        host = b"localhost" if rng.random() > 0.02 else rng.choice([b"evil.example", b"[::1", b"", b"127.0.0.1:1"])
        more = rng.choice(
            [b"", b"", b"", b"Content-Encoding: br\r\n", b"X: \xff\r\n", b"Connection: keep-alive\r\n"]
        )
        return b"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nAuthorization: %s\r\n%s" % (
            method, path, host, kind, token, more,
        )  # fmt: skip

    def ask(self, request: bytes, attempts: int = 5) -> str:
        """Return the status; a connection that was closed meanwhile is opened anew."""
        for _ in range(attempts):
            with contextlib.suppress(ConnectionError):
                if self.socket is None:
                    self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=30)
                with contextlib.suppress(ConnectionError):  # refused before all of it was sent
                    self.socket.sendall(request)
                return self.answer()
            self.close()
        return "reset"

    def answer(self) -> str:
        assert self.socket is not None
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.piece()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = {
            line.partition(b":")[0].lower(): line.partition(b":")[2].strip() for line in head.split(b"\r\n")[1:]
        }
        while len(body) < int(lines.get(b"content-length", b"0")):
            body += self.piece()
        if lines.get(b"connection") == b"close":
            self.close()
        return head[9:12].decode()

    def piece(self) -> bytes:
        assert self.socket is not None
        found = self.socket.recv(65_536)
        if not found:
            raise ConnectionResetError
        return found

    def send_garbage(self) -> str:
        """Break HTTP itself, on a connection of its own."""
        rng = self.rng
        good = bytearray(self.head_of(is_json=False) + b"Content-Length: 20\r\n\r\n" + _PROTOBUF[1][:20])
        for _ in range(rng.randrange(1, 6)):
            change(rng, good)
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", self.port), timeout=30) as client,
        ):
            client.sendall(good if rng.random() < 0.7 else rng.randbytes(200))
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass
        return "garbage"

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket = None


class GrpcSender:
    """One channel."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self.port, self.rng = port, rng
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        self.calls = {
            name: self.channel.unary_unary(f"/opentelemetry.proto.collector.{name}/Export")
            for name in (*SERVICES, "metrics.v1.MetricsService")
        } | {"": self.channel.unary_unary("/x/y")}

    def send(self) -> str:
        rng = self.rng
        if rng.random() < 0.01:
            return self.send_garbage()
        name = rng.choice(SERVICES) if rng.random() > 0.04 else rng.choice(list(self.calls))
        metadata = [("authorization", BEARER if rng.random() > 0.04 else rng.choice(["", "Bearer x", "Basic a"]))]
        packing = rng.choice(
            [grpc.Compression.NoCompression] * 5 + [grpc.Compression.Gzip, grpc.Compression.Deflate]
        )
        try:
            self.calls[name](body_of(rng, is_json=False), timeout=30, metadata=metadata, compression=packing)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def send_garbage(self) -> str:
        """Break HTTP/2 itself, on a connection of its own."""
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", self.port), timeout=30) as client,
        ):
            client.sendall(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" * (self.rng.random() < 0.7) + self.rng.randbytes(200)
            )
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass
        return "garbage"

    def close(self) -> None:
        self.channel.close()


class Server:
    """A receiver in a process of its own.

    Attributes:
        ports: of HTTP and gRPC.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.ports: list[int] = json.loads(process.stdout.readline())

    def end(self) -> dict[str, Any]:
        """Stop it and return its report."""
        report, _ = self._process.communicate(timeout=60)
        return json.loads(report) | {"exit": self._process.returncode}


@contextlib.contextmanager
def started_server(limits: dict[str, Any]) -> Iterator[Server]:
    command = [sys.executable, "-m", "tests.fuzz.receiver_server", json.dumps(limits)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def drive(seed: int, count: int) -> dict[str, Any]:
    """Send fuzzed requests, then good ones, and return what the receiver says at its end."""
    with started_server({}) as server:
        http_port, grpc_port = server.ports
        began = time.monotonic()
        senders = [
            kind(port, random.Random(f"{seed}/{kind.__name__}/{n}"))
            for kind, port in ((HttpSender, http_port), (GrpcSender, grpc_port)) for n in range(SENDERS)
        ]  # fmt: skip
        answers = _sent(senders, count)
        seconds = time.monotonic() - began
        good = [good_http(http_port) for _ in range(10)] + [good_grpc(grpc_port) for _ in range(10)]
        report = server.end()
    return report | {"sent": answers.total(), "answers": dict(answers), "good": good, "seconds": round(seconds, 1)}


def _sent(senders: list[Any], count: int) -> Counter[str]:
    answers: Counter[str] = Counter()
    failures: list[BaseException] = []

    def run(sender: Any) -> None:
        own: Counter[str] = Counter()
        try:
            for _ in range(count // len(senders)):
                own[sender.send()] += 1
        except BaseException as error:
            failures.append(error)
        finally:
            sender.close()
            answers.update(own)

    threads = [threading.Thread(target=run, args=(sender,)) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return answers


def good_http(port: int) -> str:
    body = GOOD.SerializeToString()
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
    sender = HttpSender(port, random.Random(0))
    try:
        return sender.ask(
            head + b"Authorization: %s\r\nContent-Length: %d\r\n\r\n" % (BEARER.encode(), len(body)) + body
        )
    finally:
        sender.close()


def good_grpc(port: int) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(f"/opentelemetry.proto.collector.{SERVICES[0]}/Export")
        call(GOOD.SerializeToString(), timeout=30, metadata=[("authorization", BEARER)])
    return "200"


if __name__ == "__main__":
    print(json.dumps(drive(int(sys.argv[1]), int(sys.argv[2])), indent=1))  # noqa: T201 - the report
