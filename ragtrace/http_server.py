"""Serve a WSGI application in daemon threads, on loopback by default."""

from __future__ import annotations

import logging
import re
import socket
import threading
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ragtrace.capture import record_internal_error
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_log = logging.getLogger("ragtrace")
_POLL_S = 0.05
_SOCKET_TIMEOUT_S = 10.0
_NAME = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:@,/]+))(?::\d+)?")  # group 1 an IPv6 address, 2 anything else


class HttpServer:
    """Serve a WSGI application for GET and HEAD until it is closed.

    There is no authentication. On loopback a request is refused (403) whose ``Host`` is a name other than `host` or
    localhost, so that no web page reads the answers by a name of its own that points here (DNS rebinding).

    Args:
        setting: what the settings of address and port begin with, ``metrics`` for ``metrics_port``.
        app: called in a thread of its own for each request; one that raises is answered with 500 and counted.
        host: address to bind to; an empty one is loopback, and not every address as sockets have it.
        port: 0 takes any free port; see `port`.
        replaced: servers that are closed soon. This one listens on the socket of the one with the same address, so
            that no request is refused in between.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> def app(environ, start_response):
        ...     start_response("200 OK", [("Content-Type", "text/plain")])
        ...     return [environ["PATH_INFO"].encode()]
        >>> server = HttpServer("metrics", app)
        >>> import urllib.request
        >>> urllib.request.urlopen(server.url + "/a?b").read()
        b'/a'
        >>> server.close()
    """

    def __init__(
        self,
        setting: str,
        app: WSGIApplication,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        replaced: Iterable[HttpServer] = (),
    ) -> None:
        self.host = host or "127.0.0.1"
        self._app = app
        self._setting = setting
        address = self.host, port
        same = [one._server for one in replaced if (one.host, one.port) == address]  # noqa: SLF001 - of this class
        self._server: _Server = _on_socket_of(same[0]) if same else _bound(setting, self.host, port)
        self._server.set_app(self._answer)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name=f"ragtrace-{setting}", daemon=True
        )
        self._thread.start()

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

    def leave_to_parent(self) -> None:
        """Close a forked child's copy of the socket, which would keep the port when the parent closes its own."""
        self._server.socket.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not self._is_host_allowed(environ.get("HTTP_HOST")):
            return text_page(start_response, "403 Forbidden", "the Host of this request is not this server's")
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return text_page(start_response, "405 Method Not Allowed", "use GET")
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        try:
            body = self._app({**environ, "REQUEST_METHOD": "GET"}, start_response)
        except Exception as error:
            record_internal_error(f"ragtrace.http_server.{self._setting}", error)
            body = text_page(start_response, "500 Internal Server Error", f"failed: {type(error).__name__}")
        return [b""] if is_head else body

    def _is_host_allowed(self, host: str | None) -> bool:
        """Say whether a request's ``Host`` may ask: on loopback no name but localhost and the configured one."""
        if host is None or not ip_address(self._server.server_name).is_loopback:  # browsers send one
            return True
        name = _NAME.fullmatch(host.strip().lower())
        if name is None:
            return False
        found = (name[1] or name[2]).removesuffix(".")
        is_local = found in {self.host.lower(), "localhost"} or found.endswith(".localhost")
        return is_local or _is_address(found)


def text_page(start_response: StartResponse, status: str, line: str) -> list[bytes]:
    """Answer a WSGI request with one line of plain text."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [line.encode() + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        # Not HTTPServer's: it looks the host's name up, which can take seconds without a resolver.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.name_after_socket()

    def name_after_socket(self) -> None:
        """Take host, port and the WSGI environment from the socket."""
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the base class's signature
        """Log a client that went away for developers alone."""
        _log.debug("a request was broken off", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _RequestHandler(WSGIRequestHandler):
    timeout = _SOCKET_TIMEOUT_S  # a silent client's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log requests for developers alone."""
        _log.debug(format, *args)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _on_socket_of(server: _Server) -> _Server:
    """Return a second server on the same socket, which goes on listening when the first is closed."""
    server.socket.setblocking(False)  # both wait for a client, and only one of them gets it
    other = type(server)(server.server_address, _RequestHandler, bind_and_activate=False)
    other.socket.close()
    other.socket = server.socket.dup()
    other.name_after_socket()
    return other


def _bound(setting: str, host: str, port: int) -> _Server:
    kind = _Server6 if ":" in host else _Server
    try:
        return kind((host, port), _RequestHandler)
    except OSError as error:
        hint = f"choose another {setting}_port, or 0 for any free one" if port else f"check {setting}_host"
        raise ConfigError(
            f"{setting}_port={port}: cannot listen on {host}: {error.strerror or error}; {hint}"
        ) from None
