"""Senders that say nothing, or a byte a second, keep honest ones out of neither protocol."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from ragtrace.testing.otlp import OtlpReceiver
from tests.ingest.serve.serving import serving
from tests.unit.ingest.receiving.requests import some_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ingest.serve.serving import Serve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are set on Linux"),
]
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SENDERS = 300  # of each kind
HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9000\r\n\r\n"


def frame(kind: int, payload: bytes, *, flags: int = 0, stream: int = 0) -> bytes:
    """Return a frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header field of HTTP/2 that needs no table."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(4, b"")
    + frame(
        1,
        literal(b":method", b"POST")
        + literal(b":scheme", b"http")
        + literal(b":path", EXPORT.encode())
        + literal(b":authority", b"localhost")
        + literal(b"te", b"trailers")  # codespell:ignore te
        + literal(b"content-type", b"application/grpc"),
        flags=4,
        stream=1,
    )
    + frame(0, b"\0" + (9_000).to_bytes(4, "big"), stream=1)
)
_BYTE = {"HTTP": b"x", "GRPC": frame(0, b"x", stream=1)}
_START = {"HTTP": HEAD, "GRPC": CALL}


@contextlib.contextmanager
def slow_senders(port: int, kind: str) -> Iterator[None]:
    """Hold 300 connections that drip a byte a second, and 300 of which a third each sent nothing, a head, and half a head."""
    starts = [_START[kind]] * SENDERS
    starts += [(b"", _START[kind], _START[kind][:30])[number % 3] for number in range(SENDERS)]
    held, stop = [], threading.Event()
    for start in starts:
        sender = socket.create_connection(("127.0.0.1", port), timeout=30)
        with contextlib.suppress(OSError):
            sender.sendall(start)
        held.append(sender)

    def drip() -> None:
        while not stop.wait(1.0):
            for sender in held[:SENDERS]:
                with contextlib.suppress(OSError):
                    sender.sendall(_BYTE[kind])

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        yield
    finally:
        stop.set()
        dripping.join()
        for sender in held:
            sender.close()


def export(serve: Serve, kind: str, body: bytes) -> str:
    """Send a request on a connection of its own, as a sender with the usual timeout does."""
    if kind == "HTTP":
        return str(serve.post(body))
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{serve.ports['GRPC']}", options=options) as channel:
        try:
            channel.unary_unary(EXPORT)(body, timeout=10)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("kinds", [("HTTP",), ("GRPC",), ("HTTP", "GRPC")])
def test_honest_senders_are_answered_beside_600_slow_ones(kinds: tuple[str, ...]) -> None:
    body = some_spans(count=200).SerializeToString()
    with OtlpReceiver() as backend, serving(backend.endpoint) as serve, contextlib.ExitStack() as held:
        resource.prlimit(serve.process.pid, resource.RLIMIT_NOFILE, (1_024, 1_024))
        for kind in kinds:
            held.enter_context(slow_senders(serve.ports[kind], kind))
        said = []
        for _ in range(15):
            said += [export(serve, kind, body) for kind in ("HTTP", "GRPC")]
            time.sleep(0.2)
        files = len(list(Path(f"/proc/{serve.process.pid}/fd").iterdir()))
    assert said == ["200", "OK"] * 15
    assert files < 1_000


@pytest.mark.parametrize("kind", ["HTTP", "GRPC"])
def test_bodies_that_are_held_back_make_room(kind: str) -> None:
    """Each of twelve holds 8 MiB of a body whose rest does not come; 64 MiB may be in flight."""
    body = some_spans().SerializeToString()
    with OtlpReceiver() as backend, serving(backend.endpoint) as serve, contextlib.ExitStack() as held:
        for _ in range(12):
            sender = held.enter_context(socket.create_connection(("127.0.0.1", serve.ports["HTTP"]), timeout=5))
            with contextlib.suppress(OSError):
                sender.sendall(HEAD.replace(b"9000", b"9000000") + bytes(8 * 2**20))
        time.sleep(2.5)
        export(serve, kind, body)  # may be told to come again in a second
        time.sleep(1.0)
        said = {export(serve, kind, body) for _ in range(3)}
    assert said <= {"200", "OK"}
