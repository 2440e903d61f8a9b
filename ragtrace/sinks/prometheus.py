"""The scrape endpoint: a small HTTP server on loopback that shows every metric, with exemplars."""

from __future__ import annotations

import logging
import os
import socket
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import MetricReader

from ragtrace.capture import lost
from ragtrace.errors import ConfigError
from ragtrace.sinks.openmetrics import OPENMETRICS, PLAIN, Exemplars, render

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

_log = logging.getLogger("ragtrace")
_POLL_S = 0.05
_SOCKET_TIMEOUT_S = 10.0
PATH = "/metrics"


class ScrapeReader(MetricReader):
    """Collects when it is asked to; cumulative, as Prometheus wants it.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> reader = ScrapeReader()
        >>> MeterProvider(metric_readers=[reader]).get_meter("x").create_counter("asked").add(1)
        >>> "asked_total 1" in reader.scrape()
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._scrape_lock = threading.Lock()
        self._data: MetricsData | None = None
        self._exemplars = Exemplars()

    def scrape(self, *, is_openmetrics: bool = True) -> str:
        """Collect and return the text of one scrape."""
        with self._scrape_lock:
            self._data = None
            self.collect()
            return render(self._data, self._exemplars, is_openmetrics=is_openmetrics)

    def _receive_metrics(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 10_000,  # noqa: ARG002 - the SDK's signature
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        self._data = metrics_data

    def force_flush(self, timeout_millis: float = 10_000) -> bool:  # noqa: ARG002
        """Do nothing: a scrape collects for itself."""
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Do nothing: the endpoint is closed by its owner."""


class OpenMetricsEndpoint:
    """Serves ``GET /metrics``: OpenMetrics 1.0 with exemplars, or text 0.0.4 for a client that asks for it alone.

    Give `reader` to a `MeterProvider`; the server runs in daemon threads. It binds to loopback unless told
    otherwise: metrics carry workflow and model names, and there is no authentication.

    Args:
        host: address to bind to.
        port: 0 takes any free port; see `port`.
        reader: what to show; default a new `ScrapeReader`.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> endpoint = OpenMetricsEndpoint(port=0)
        >>> endpoint.url.startswith("http://127.0.0.1:")
        True
        >>> endpoint.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 9464, *, reader: ScrapeReader | None = None) -> None:
        self.reader = reader or ScrapeReader()
        self.host = host
        self._server = _bound(host, port, self.reader)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="ragtrace-metrics", daemon=True
        )
        self._thread.start()
        close_in_children(self._server)

    @property
    def url(self) -> str:
        """Address of the scrape."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"

    def close(self) -> None:
        """Stop serving and free the port, in well under a second; a second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(1.0)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    reader: ScrapeReader

    def server_bind(self) -> None:
        # Not HTTPServer's: it looks the host's name up, which can take seconds without a resolver.
        socket_server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        """A client that went away is no news."""
        _log.debug("a scrape was broken off", exc_info=True)


def socket_server_bind(server: ThreadingHTTPServer) -> None:
    """Bind a server's socket with SO_REUSEADDR and nothing else."""
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.socket.bind(server.server_address)
    server.server_address = server.socket.getsockname()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SOCKET_TIMEOUT_S

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def _answer(self, *, has_body: bool) -> None:
        status, kind, body = self._page()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def _page(self) -> tuple[int, str, bytes]:
        if self.path.split("?", 1)[0] != PATH:
            return 404, "text/plain; charset=utf-8", f"metrics are at {PATH}\n".encode()
        server = self.server
        if not isinstance(server, _Server):  # never so: the class is private to this module
            return 500, "text/plain; charset=utf-8", b""
        is_openmetrics = wants_openmetrics(self.headers.get("Accept", ""))
        try:
            text = server.reader.scrape(is_openmetrics=is_openmetrics)
        except Exception as error:
            lost("ragtrace.sinks.prometheus.scrape", error)
            return 500, "text/plain; charset=utf-8", f"the scrape failed: {type(error).__name__}\n".encode()
        return 200, OPENMETRICS if is_openmetrics else PLAIN, text.encode("utf-8", "replace")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests are not logged."""
        _log.debug(format, *args)


def wants_openmetrics(accept: str) -> bool:
    """Say by an Accept header whether to answer in OpenMetrics; the default, unless text/plain is wanted more.

    Example:
        >>> wants_openmetrics("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
        True
        >>> wants_openmetrics("text/plain"), wants_openmetrics("*/*")
        (False, True)
    """
    wishes: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        wishes[kind] = max(wishes.get(kind, 0.0), _quality(parameters))
    plain = wishes.get("text/plain", 0.0)
    return wishes.get("application/openmetrics-text", 0.0) >= plain if plain else True


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _bound(host: str, port: int, reader: ScrapeReader) -> _Server:
    kind = type("_Server6", (_Server,), {"address_family": socket.AF_INET6}) if ":" in host else _Server
    try:
        server: _Server = kind((host, port), _Handler)
    except OSError as error:
        hint = "choose another metrics_port, or 0 for any free one" if port else "check metrics_host"
        raise ConfigError(
            f"metrics_port={port}: cannot listen on {host}: {error.strerror or error}; {hint}"
        ) from None
    server.reader = reader
    return server


def close_in_children(server: ThreadingHTTPServer) -> None:
    """Close a forked child's copy of the socket: it would keep the port, and clients would wait for nobody."""
    if hasattr(os, "register_at_fork"):
        found = weakref.ref(server)

        def close() -> None:
            inherited = found()
            if inherited is not None:
                inherited.socket.close()

        os.register_at_fork(after_in_child=close)
