"""A real HTTP server on loopback that answers as a test tells it to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Scripted:
    """Answers each POST with the next status of `statuses`, then 200 for ever.

    A status of 0 breaks the connection off. While `gate` is clear, no answer is given.
    """

    def __init__(self, statuses: tuple[int, ...] = (), headers: dict[str, str] | None = None) -> None:
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

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests.append((handler.path, dict(handler.headers), json.loads(body)))
        self.arrived.set()
        self.gate.wait(20)
        status = self._statuses.pop(0) if self._statuses else 200
        if status == 0:
            handler.connection.close()
            return
        handler.send_response(status)
        for name, value in self._headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, _, body in self.requests for row in body["data"]]

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
