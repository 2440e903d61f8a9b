"""A real HTTP server on loopback that speaks OpenAI's chat protocol, streams included."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Reply = Callable[[dict[str, Any]], "str | dict[str, Any]"]

USAGE = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}


class ModelServer(ThreadingHTTPServer):
    """Answers a chat with what `reply` makes of the request: a text, or a message with tool calls.

    A stream stops after its third piece until `go_on` is set.
    """

    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.requests: list[dict[str, Any]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        said = self.server.reply(request)
        message = {"role": "assistant", "content": said} if isinstance(said, str) else said
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if request.get("stream") else "application/json")
        self.end_headers()
        try:
            for piece in self._chunks(message) if request.get("stream") else [self._whole(message)]:
                self.wfile.write(piece)
        except ConnectionError:  # a client that left is part of the tests
            self.close_connection = True

    def _whole(self, message: dict[str, Any]) -> bytes:
        reason = "tool_calls" if "tool_calls" in message else "stop"
        return json.dumps(
            {
                "id": "c", "object": "chat.completion", "created": 0, "model": "loopback", "usage": USAGE,
                "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            }
        ).encode()  # fmt: skip

    def _chunks(self, message: dict[str, Any]) -> Iterator[bytes]:
        for number, word in enumerate(re.findall(r"\S+\s*", message["content"])):
            if number == 3:
                self.server.go_on.wait(30)
            yield self._chunk({"role": "assistant", "content": word}, None)
        yield self._chunk({}, "stop")
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None) -> bytes:
        chunk = {
            "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "loopback",
            "choices": [{"index": 0, "finish_reason": finish_reason, "delta": delta}],
        }  # fmt: skip
        return f"data: {json.dumps(chunk)}\n\n".encode()

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def model_server(reply: Reply) -> Iterator[ModelServer]:
    """Serve a model until the block ends."""
    server = ModelServer(reply)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.go_on.set()
        server.shutdown()
        server.server_close()


def asked(request: dict[str, Any]) -> str:
    """Return the messages of a request as one text."""
    return json.dumps(request["messages"], ensure_ascii=False)
