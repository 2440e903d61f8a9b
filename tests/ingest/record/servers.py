"""Loopback servers of a recording: a model with scripted answers, and an OTLP/HTTP receiver."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.ingest.record.application import shop

if TYPE_CHECKING:
    from collections.abc import Iterator


class LoopbackServer(ThreadingHTTPServer):
    """Serves a model on ``/v1`` and keeps the trace requests that arrive elsewhere."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.exports: list[ExportTraceServiceRequest] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/chat/completions"):
            self._reply(completion(json.loads(body)))
        elif self.path.endswith("/v1/traces"):
            self.server.exports.append(ExportTraceServiceRequest.FromString(body))
            self._reply({})
        elif self.path.endswith(("/v1/metrics", "/v1/logs")):
            self._reply({})
        else:
            self.send_error(404)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":  # as Node's exporter sends it
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _reply(self, value: dict[str, Any]) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
        pass


def completion(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a chat completion by the question that its prompt holds."""
    prompt = json.dumps(request["messages"], ensure_ascii=False)
    answer = shop.asked_in(prompt).answer
    read, written = len(prompt) // 4, len(answer) // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"{shop.MODEL}-2024-07-18",
        "choices": [{
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": answer},
        }],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }  # fmt: skip


@contextmanager
def loopback() -> Iterator[LoopbackServer]:
    """Serve while the block lasts."""
    server = LoopbackServer()
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
