"""A real HTTP server on loopback that answers as a test tells it to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Scripted:
    """Answers each request with the next status of `statuses`, then 200 for ever.

    A status of 0 breaks the connection off. While `gate` is clear, no answer is given. `replies` gives the status and
    body of a method, a path and a body where the statuses are over.
    """

    def __init__(
        self,
        statuses: tuple[int, ...] = (),
        headers: dict[str, str] | None = None,
        replies: Callable[[str, str, Any], tuple[int, Any]] = lambda *_: (200, {}),
    ) -> None:
        self.methods: list[str] = []
        self.bodies: list[bytes] = []
        self._replies = replies
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.arrived = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self._statuses = list(statuses)
        self._headers = headers or {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.answer(self)

            do_GET = do_PATCH = do_POST  # noqa: N815 - as BaseHTTPRequestHandler names them

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        sent = json.loads(body or b"null")
        self.methods.append(handler.command)
        self.bodies.append(body)
        self.requests.append((handler.path, dict(handler.headers), sent))
        self.arrived.set()
        self.gate.wait(20)
        status, reply = 0, {}
        if self._statuses:
            status = self._statuses.pop(0)
        else:
            status, reply = self._replies(handler.command, handler.path, sent)
        if status == 0:
            handler.connection.close()
            return
        answer = json.dumps(reply).encode()
        handler.send_response(status)
        for name, value in self._headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, _, body in self.requests for row in body["data"]]

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
