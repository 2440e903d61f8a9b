"""Addresses, limits and certificates of the receiver."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    import os

_MIB = 2**20


class ListenAddress(NamedTuple):
    """Address of one server; port 0 takes any free one.

    Example:
        >>> ListenAddress(port=4317)
        ListenAddress(host='127.0.0.1', port=4317)
    """

    host: str = "127.0.0.1"
    port: int = 0

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def bound(self, protocol: str, *, backlog: int = 1) -> socket.socket:
        """Return a socket that listens here.

        Args:
            protocol: gRPC or HTTP, for the error.
            backlog: most connections that wait to be accepted.

        Raises:
            ConfigError: the address is taken, or this machine does not have it.

        Example:
            >>> with ListenAddress().bound("HTTP") as listener:
            ...     listener.getsockname()[0]
            '127.0.0.1'
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # asyncio turns Nagle's algorithm off where the protocol is named; with it an answer takes 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.host, self.port))
            listener.listen(backlog)
        except OSError as error:
            listener.close()
            stop = "stop the process that listens there, or " if error.errno == errno.EADDRINUSE else ""
            raise ConfigError(
                f"{protocol}: cannot listen on {self}: {error.strerror or error}; {stop}choose another address with"
                f" --{protocol.lower()} HOST:PORT (port 0 takes any free one)"
            ) from None
        return listener


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverLimits:
    """Limits of the receiver, each per request unless it says otherwise.

    Attributes:
        request_bytes: body as sent, and message of gRPC.
        inflated_bytes: body after decompression.
        json_bytes: JSON after decompression.
        span_bytes: one sampled span or log record; a larger one is rejected alone.
        items: spans, log records, resources and scopes.
        nested: attributes and list items (a list of numbers is one) in the evaluation results of a request, and in
            its resources and scopes of more than 64 KiB; lists and objects of a JSON body. Each takes up to 200
            bytes.
        json_depth: nested messages of one JSON item.
        in_flight_bytes: of all requests at once, as sent and inflated; a request beyond it is told to come later.
        connections: HTTP connections at once; one more closes the one that has sent no whole request for longest.
        grpc_connections: gRPC connections at once; one more is refused.
        calls: gRPC calls at once; one more is told to come later.
        workers: gRPC messages that are received at once, since their size is not known before; the other calls wait
            with their message unread.
        head_timeout_s: for the head of an HTTP request, and the first frames of a gRPC connection.
        body_timeout_s: for the body, with both protocols.
        crowded_timeout_s: for the body where other requests wait for its room.
        idle_timeout_s: of a connection between two requests.

    Example:
        >>> ReceiverLimits(request_bytes=4 * 2**20).inflated_bytes // 2**20
        64
    """

    request_bytes: int = 16 * _MIB
    inflated_bytes: int = 64 * _MIB
    json_bytes: int = 8 * _MIB
    span_bytes: int = 4 * _MIB
    items: int = 100_000
    nested: int = 750_000
    json_depth: int = 32
    in_flight_bytes: int = 64 * _MIB
    connections: int = 256
    grpc_connections: int = 640
    calls: int = 1_024
    workers: int = 8
    head_timeout_s: float = 10.0
    body_timeout_s: float = 30.0
    crowded_timeout_s: float = 2.0
    idle_timeout_s: float = 75.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """Certificates of both servers, as PEM files.

    Attributes:
        cert: certificate chain of the server.
        key: its private key, without a passphrase.
        client_ca: certificates that a client's must be signed by; None asks for no client certificate.

    Raises:
        ConfigError: a file cannot be read.
    """

    cert: str | os.PathLike[str]
    key: str | os.PathLike[str]
    client_ca: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("cert", "key", "client_ca"):
            if getattr(self, name) is not None:
                self.read(name)

    def read(self, name: str) -> bytes:
        """Return the contents of one of the files."""
        path = Path(getattr(self, name))
        try:
            return path.read_bytes()
        except OSError as error:
            raise ConfigError(f"tls {name}: cannot read {path}: {error.strerror}; give a PEM file") from None
