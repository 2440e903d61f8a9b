"""A real HTTP server on loopback that speaks as much of the OpenAI protocol as a test tells it to."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None  # answered only when set
    drip_until: threading.Event | None = None  # sends a blank now and then, and never ends by itself
    drop: bool = False  # close the connection in the middle of the body


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    text: str

    @cached_property
    def body(self) -> dict[str, Any]:
        return json.loads(self.text)  # type: ignore[no-any-return]


def completion(
    content: Any, *, finish_reason: str = "stop", refusal: str | None = None, usage: Any = None
) -> dict[str, Any]:
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
            }
        ],
        "usage": usage
        if usage is not None
        else {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127},
    }


SUPPORTED = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}


def refusal(status: int, message: str, **error: Any) -> Answer:
    return Answer(status, {"error": {"message": message, **error}})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up is part of the tests
            super().handle_error(request, client_address)


class JudgeServer:
    """Answers with `answers` in order, then with what `always` makes of the request."""

    def __init__(
        self, always: Callable[[Request], Answer] = lambda _: Answer(500, {"error": {"message": "no answer"}})
    ) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = []
        self.always = always
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its headers

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:  # the client was killed before it had sent all: nothing was asked
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, body.decode())
                outer.requests.append(request)
                outer._answer(self, outer.answers.pop(0) if outer.answers else outer.always(request))

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: Any) -> None:
                """Keep the test's output clean."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        if answer.hold is not None:
            answer.hold.wait(10)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        try:
            handler.send_response(answer.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header(
                "Content-Length", str(len(body) + (0 if not answer.drop and answer.drip_until is None else 1000))
            )
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.end_headers()
            while answer.drip_until is not None and not answer.drip_until.wait(0.02):
                handler.wfile.write(b" ")
            handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):  # the client gave up, as the test wanted
            handler.close_connection = True
        if answer.drop:
            handler.close_connection = True
