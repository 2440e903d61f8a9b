"""Runs the application until Ctrl-C, or in a thread beside the demo."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address
from typing import TYPE_CHECKING

import uvicorn

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_STOP_S = 2


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any free one.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror or error}") from None
    bound = socket.socket(family, kind, proto)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"cannot listen at {host}:{port}: {error.strerror or error}; choose another --port"
        ) from None
    return bound


def url_of(bound: socket.socket) -> str:
    """Return the address for a browser, on this machine or another that reaches the host."""
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = _own_address()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _own_address() -> str:
    """Return the address by which other machines reach this one; loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # kept for documentation; chooses a route and sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


class Server(uvicorn.Server):
    """uvicorn on a socket that listens already."""

    def __init__(self, app: ASGIApp, bound: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=_STOP_S,
            )
        )
        self._bound = bound

    def serve_until_stopped(self) -> None:
        """Serve in this thread until SIGINT or SIGTERM."""
        self.run(sockets=[self._bound])

    def start(self) -> threading.Thread:
        """Serve in a daemon thread, until `should_exit` is set."""
        thread = threading.Thread(target=self.serve_until_stopped, name="ragtrace-ui", daemon=True)
        thread.start()
        return thread
