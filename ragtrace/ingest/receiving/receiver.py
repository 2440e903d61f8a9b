"""The receiver: both servers over one intake."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

from ragtrace.errors import MissingExtra
from ragtrace.ingest.receiving.options import ReceiverLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ragtrace.ingest.base import Intake
    from ragtrace.ingest.receiving.grpc_server import GrpcServer
    from ragtrace.ingest.receiving.http_server import OtlpHttpServer
    from ragtrace.ingest.receiving.options import ListenAddress, ServerTls

_log = logging.getLogger("ragtrace")
_PACKAGES = {"grpc": "grpcio", "uvicorn": "uvicorn"}


class Receiver:
    """Receive OTLP over gRPC and HTTP, and call an intake with the sampled spans.

    The constructor binds the addresses, so that ports are known; `start` serves. Any thread may call the methods.

    Args:
        intake: gets spans and logs, from the servers' threads.
        grpc: address of the gRPC server, None for none.
        http: address of the HTTP server, None for none.
        limits: of sizes, times and connections.
        token: bearer token that each request must have; None asks for none.
        tls: certificates of both servers; None speaks plain text.
        say: takes one line for a person; each is said once.

    Raises:
        MissingExtra: a package of the extra ``server`` is missing.
        ConfigError: an address cannot be bound, or a certificate is broken.

    Example:
        >>> from ragtrace.ingest.receiving import ListenAddress
        >>> class Skipping:
        ...     def is_wanted(self, trace_id): return False
        ...     def retry_after_s(self): return None
        ...     def put_spans(self, spans, *, skipped_roots, rejected): return 0
        ...     def put_logs(self, logs): return []
        >>> with Receiver(Skipping(), http=ListenAddress()) as receiver:
        ...     import urllib.request
        ...     request = urllib.request.Request(
        ...         f"http://127.0.0.1:{receiver.http_port}/v1/traces", b'{"resourceSpans": []}',
        ...         {"Content-Type": "application/json"})
        ...     urllib.request.urlopen(request).read()
        b'{}'
    """

    def __init__(
        self,
        intake: Intake,
        *,
        grpc: ListenAddress | None = None,
        http: ListenAddress | None = None,
        limits: ReceiverLimits | None = None,
        token: str | None = None,
        tls: ServerTls | None = None,
        say: Callable[[str], None] = _log.warning,
    ) -> None:
        _require_extra()
        from ragtrace.ingest.receiving.exporting import ExportService  # noqa: PLC0415 - of the extra

        self._service = ExportService(intake, limits or ReceiverLimits(), token or None, say)
        self._grpc: GrpcServer | None = None
        self._http: OtlpHttpServer | None = None
        try:
            self._bind(grpc, http, tls)
        except BaseException:
            self.stop(0.0)
            raise
        for address in (grpc, http):
            if warning := _warning_of(address, token, tls):
                say(warning)

    def _bind(self, grpc: ListenAddress | None, http: ListenAddress | None, tls: ServerTls | None) -> None:
        if http is not None:
            from ragtrace.ingest.receiving.http_server import OtlpHttpServer  # noqa: PLC0415 - uvicorn

            self._http = OtlpHttpServer(self._service, http, tls)
        if grpc is not None:
            from ragtrace.ingest.receiving.grpc_server import GrpcServer  # noqa: PLC0415 - grpcio

            self._grpc = GrpcServer(self._service, grpc, tls)

    @property
    def grpc_port(self) -> int | None:
        """Bound port of the gRPC server."""
        return None if self._grpc is None else self._grpc.port

    @property
    def http_port(self) -> int | None:
        """Bound port of the HTTP server."""
        return None if self._http is None else self._http.port

    @property
    def refused(self) -> Mapping[str, int]:
        """Requests that were refused since the start, by reason."""
        return dict(self._service.refused)

    def start(self) -> None:
        """Begin to serve; returns when both servers take requests."""
        for server in (self._http, self._grpc):
            if server is not None:
                server.start()

    def stop(self, grace_s: float = 5.0) -> None:
        """Refuse new requests with 503 or UNAVAILABLE, wait for those under way, and close the ports.

        Args:
            grace_s: most seconds to wait for requests under way.
        """
        self._service.is_stopping = True
        for server in (self._grpc, self._http):
            if server is not None:
                server.stop(grace_s)
        self._service.close()

    def __enter__(self) -> Receiver:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _require_extra() -> None:
    for module, package in _PACKAGES.items():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            raise MissingExtra(package, "server") from None


def _warning_of(address: ListenAddress | None, token: str | None, tls: ServerTls | None) -> str | None:
    """Return a warning of a server that other machines reach without protection."""
    if address is None or address.is_loopback:
        return None
    has_token = token is not None or (tls is not None and tls.client_ca is not None)
    risks = ["without a token any sender is taken"] * (not has_token)
    risks += ["without TLS traces and the token travel in plain text"] * (tls is None)
    return f"warning: {address} is not loopback: {', and '.join(risks)}" if risks else None
