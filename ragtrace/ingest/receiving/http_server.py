"""uvicorn in a thread, with deadlines for slow clients."""

from __future__ import annotations

import logging
import math
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragtrace.errors import ConfigError
from ragtrace.ingest.receiving.http_app import HttpApp

if TYPE_CHECKING:
    import asyncio

    from ragtrace.ingest.receiving.exporting import ExportService
    from ragtrace.ingest.receiving.options import ListenAddress, ReceiverLimits, ServerTls

_log = logging.getLogger("ragtrace.ingest.receiving.http")
_log.setLevel(logging.ERROR)  # uvicorn warns of each broken request, and strangers would fill the log
_BACKLOG = 128
_START_S = 10.0


class OtlpHttpServer:
    """Serve the ASGI application in a daemon thread.

    Args:
        service: takes the requests.
        address: to bind to.
        tls: certificates, None for plain text.

    Raises:
        ConfigError: the address cannot be bound, or a certificate is broken.
    """

    def __init__(self, service: ExportService, address: ListenAddress, tls: ServerTls | None) -> None:
        self._socket = address.bound("HTTP", backlog=_BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self._server = _UvicornServer(_config(HttpApp(service, address), service.limits, tls))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="ragtrace-otlp-http", daemon=True
        )

    def start(self) -> None:
        """Begin to serve, and return when requests are taken."""
        self._thread.start()
        until = time.monotonic() + _START_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)

    def stop(self, grace_s: float) -> None:
        """Stop serving; requests under way have a grace in seconds."""
        self._server.config.timeout_graceful_shutdown = math.ceil(grace_s)
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(grace_s + 2.0)
        self._socket.close()


def _config(app: HttpApp, limits: ReceiverLimits, tls: ServerTls | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=_protocol(limits),
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=math.ceil(limits.idle_timeout_s),
        h11_max_incomplete_event_size=32 * 2**10,
        ssl_certfile=None if tls is None else tls.cert,
        ssl_keyfile=None if tls is None else str(tls.key),
        ssl_ca_certs=None if tls is None or tls.client_ca is None else str(tls.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if tls is None or tls.client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except ssl.SSLError as error:
        raise ConfigError(f"tls: the certificate or the key is not valid: {error.reason}") from None
    return config


class _UvicornServer(uvicorn.Server):
    async def on_tick(self, counter: int) -> bool:
        """Look for slow connections twice a second; uvicorn ticks ten times."""
        if counter % 5 == 0:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, _LimitedProtocol):
                    connection.cut_if_slow(now)
        return await super().on_tick(counter)


class _LimitedProtocol(H11Protocol):
    """uvicorn's connection, with a limit of connections and deadlines, of which uvicorn has none."""

    limits: ReceiverLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self._waits_since: float | None = time.monotonic()  # for the rest of a head
        self._request: tuple[object, float] | None = None
        self.whole_s = time.monotonic()  # of the last whole request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make room for a connection: beyond the limit the one goes that has sent no whole request for longest."""
        super().connection_made(transport)  # type: ignore[arg-type]
        if len(self.connections) > self.limits.connections:
            others = [
                other for other in self.connections
                if isinstance(other, _LimitedProtocol) and other is not self and not other.has_whole_request
            ]  # fmt: skip
            min(others, key=lambda other: other.whole_s, default=self).break_off()

    @property
    def has_whole_request(self) -> bool:
        """Whether a request was received and is not answered yet."""
        return self._is_answering() and self.conn.their_state is h11.DONE

    def break_off(self) -> None:
        """End the connection; it counts no more from here on."""
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except Exception:  # a broken request behind one that is being answered
            self.transport.abort()
        if self.conn.their_state is h11.DONE:
            self.whole_s = time.monotonic()
        if self._is_answering():
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = time.monotonic()

    def cut_if_slow(self, now: float) -> None:
        """Break the connection off when its head, its body or its reader takes too long."""
        limits = self.limits
        if self._is_answering():
            if self._request is None or self._request[0] is not self.cycle:
                self._request = self.cycle, now
            elif now - self._request[1] > 2 * limits.body_timeout_s:
                self.transport.abort()
        elif self._waits_since is not None and now - self._waits_since > limits.head_timeout_s:
            self.transport.abort()

    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete


def _protocol(limits: ReceiverLimits) -> type[_LimitedProtocol]:
    """Return the connection's class with its limits, since uvicorn makes the objects."""
    return type("LimitedProtocol", (_LimitedProtocol,), {"limits": limits})
