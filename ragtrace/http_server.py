"""The one way to answer GET over HTTP: a small server in daemon threads, on loopback unless told otherwise."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, NamedTuple

from ragtrace.capture.forking import in_children
from ragtrace.errors import ConfigError

_log = logging.getLogger("ragtrace")
_POLL_S = 0.05
_SOCKET_TIMEOUT_S = 10.0


class Page(NamedTuple):
    """What is answered."""

    status: int
    kind: str
    body: bytes


_REFUSED = Page(403, "text/plain", b"the Host of this request is not this server's\n")
_NAME = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:@,/]+))(?::\d+)?")  # group 1 an IPv6 address, 2 anything else
Answer = Callable[[str, Message], Page]
"""Gives the page of a path, which comes without its query, for a request with some headers. Must not raise."""


class HttpServer:
    """Answers GET and HEAD until it is closed; a forked child lets go of the socket.

    There is no authentication. On loopback a request is refused (403) whose ``Host`` is a name other than `host` or
    localhost, so that no web page reads the answers by a name of its own that points here (DNS rebinding).

    Args:
        setting: what the settings of address and port begin with, ``metrics`` for ``metrics_port``.
        answer: called in a thread of its own for each connection.
        host: address to bind to; an empty one is loopback, and not every address as sockets have it.
        port: 0 takes any free port; see `port`.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> server = HttpServer("metrics", lambda path, headers: Page(200, "text/plain", path.encode()))
        >>> import urllib.request
        >>> urllib.request.urlopen(server.url + "/a?b").read()
        b'/a'
        >>> server.close()
    """

    def __init__(self, setting: str, answer: Answer, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host or "127.0.0.1"
        self._server = _bound(setting, self.host, port)
        self._server.answer = answer
        self._server.name = self.host.lower()
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name=f"ragtrace-{setting}", daemon=True
        )
        self._thread.start()
        in_children(self._server.let_go)

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def close(self) -> None:
        """Stop serving and free the port, in well under a second; a second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(1.0)
        self._server.server_close()
        self._server.hang_up()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    answer: Answer
    name = ""

    def __init__(self, *args: Any) -> None:
        self._connections: dict[int, socket.socket] = {}
        self.is_over = False
        super().__init__(*args)

    def server_bind(self) -> None:
        # Not HTTPServer's: it looks the host's name up, which can take seconds without a resolver.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def is_for_us(self, host: str | None) -> bool:
        """Say whether a request's ``Host`` may ask: on loopback no name but localhost and the configured one."""
        if host is None or not ip_address(self.server_name).is_loopback:  # browsers send one
            return True
        name = _NAME.fullmatch(host.strip().lower())
        if name is None:
            return False
        found = (name[1] or name[2]).removesuffix(".")
        return found in {self.name, "localhost"} or found.endswith(".localhost") or _is_address(found)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own."""
        self._connections[id(request)] = request
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._connections.pop(id(request), None)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that clients keep: who asks on one would hear of a service that is no more.

        What is being answered is answered to its end.
        """
        self.is_over = True
        for connection in list(self._connections.values()):
            with suppress(OSError):  # it has just ended by itself
                connection.shutdown(socket.SHUT_RD)

    def let_go(self) -> None:
        """Close a forked child's copy of the socket: it would keep the port, and clients would wait for nobody."""
        self.socket.close()
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        """A client that went away is no news."""
        _log.debug("a request was broken off", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SOCKET_TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def _answer(self, *, has_body: bool) -> None:
        if self.server.is_over:
            self.close_connection = True
            return
        if self.server.is_for_us(self.headers.get("Host")):
            page = self.server.answer(self.path.split("?", 1)[0], self.headers)
        else:
            page = _REFUSED
        self.send_response(page.status)
        self.send_header("Content-Type", page.kind)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if has_body:
            self.wfile.write(page.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests are not logged."""
        _log.debug(format, *args)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _bound(setting: str, host: str, port: int) -> _Server:
    kind = _Server6 if ":" in host else _Server
    try:
        return kind((host, port), _Handler)
    except OSError as error:
        hint = f"choose another {setting}_port, or 0 for any free one" if port else f"check {setting}_host"
        raise ConfigError(
            f"{setting}_port={port}: cannot listen on {host}: {error.strerror or error}; {hint}"
        ) from None
