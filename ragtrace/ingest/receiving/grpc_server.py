"""OTLP over gRPC."""

from __future__ import annotations

import threading
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

from ragtrace.errors import ConfigError
from ragtrace.ingest.receiving.refusal import ReceiverRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.ingest.receiving.exporting import ExportService, Signal
    from ragtrace.ingest.receiving.options import ListenAddress, ServerTls

_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
_PACKED = (b"\x1f\x8b", b"\x78")  # gzip, and zlib for gRPC's deflate; no OTLP message begins so
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_MINUTE_MS = 60_000


class GrpcServer:
    """Serve the trace and the logs service with grpcio's threads.

    A call is handled as a stream of requests, of which the first is read: the token and the room are checked before
    the message is received, and a slow sender can be cut. On the wire both kinds of call are alike.

    Args:
        service: takes the requests.
        address: to bind to.
        tls: certificates, None for plain text.

    Raises:
        ConfigError: the address cannot be bound, or a certificate is broken.
    """

    def __init__(self, service: ExportService, address: ListenAddress, tls: ServerTls | None) -> None:
        limits = service.limits
        self._service = service
        self._cutter = _Cutter(limits.body_timeout_s)
        self._pool = futures.ThreadPoolExecutor(limits.workers, thread_name_prefix="ragtrace-otlp-grpc")
        self._server = grpc.server(
            self._pool,
            handlers=[
                grpc.method_handlers_generic_handler(name, self._methods(_SERVICES[name])) for name in _SERVICES
            ],
            options=_options(limits.request_bytes),
            maximum_concurrent_rpcs=limits.calls,
        )
        try:
            if tls is None:
                self.port: int = self._server.add_insecure_port(str(address))
            else:
                self.port = self._server.add_secure_port(str(address), _credentials(tls))
        except RuntimeError:
            hint = ", and check the certificates" if tls is not None else ""
            raise ConfigError(f"gRPC: cannot listen on {address}; choose a free port, or 0{hint}") from None

    def start(self) -> None:
        """Begin to serve."""
        self._cutter.start()
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Stop serving; calls under way have a grace in seconds."""
        self._server.stop(grace_s).wait(grace_s + 1.0)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._cutter.stop()

    def _methods(self, signal: Signal) -> dict[str, Any]:
        def export(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            try:
                return self._export(signal, requests, context)
            except ReceiverRefusal as refusal:
                self._service.count(refusal)
                _abort(context, refusal)

        return {"Export": grpc.stream_unary_rpc_method_handler(export)}

    def _export(self, signal: Signal, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        service = self._service
        service.authorize(_authorization(context))
        service.admit()
        with service.hold() as held:
            with self._cutter.watch(context.cancel):
                body = next(requests, None)
            if body is None:
                raise ReceiverRefusal("malformed", "the call has no message")
            held.add(len(body))
            response = service.export(signal, body, held, is_packed=body.startswith(_PACKED))
            return bytes(response.SerializeToString())


def _options(request_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", request_bytes),
        ("grpc.per_message_decompression", 0),  # grpc inflates without a limit; `inflate` has one
        ("grpc.http2.bdp_probe", 0),  # else each connection buffers megabytes before a worker reads
        ("grpc.so_reuseport", 0),  # a taken port is an error
        ("grpc.max_concurrent_streams", 100),
        ("grpc.max_connection_idle_ms", 15 * _MINUTE_MS),
        ("grpc.max_connection_age_ms", 60 * _MINUTE_MS),
        ("grpc.max_connection_age_grace_ms", _MINUTE_MS),
        ("grpc.keepalive_time_ms", _MINUTE_MS),  # finds dead peers
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    client_ca = None if tls.client_ca is None else tls.read("client_ca")
    return grpc.ssl_server_credentials(
        [(tls.read("key"), tls.read("cert"))], client_ca, require_client_auth=client_ca is not None
    )


def _authorization(context: grpc.ServicerContext) -> bytes:
    for key, value in context.invocation_metadata():
        if key == "authorization":
            return value if isinstance(value, bytes) else value.encode()
    return b""


def _abort(context: grpc.ServicerContext, refusal: ReceiverRefusal) -> NoReturn:
    details = [("grpc-status-details-bin", refusal.status().SerializeToString())]
    if (info := refusal.retry_info()) is not None:
        details.append(("google.rpc.retryinfo-bin", info.SerializeToString()))  # read by Python's exporter
    context.set_trailing_metadata(tuple(details))
    context.abort(_CODES[refusal.rpc_code], refusal.message)
    raise AssertionError  # abort raises


class _Cutter:
    """Cancel calls whose message does not arrive in time."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._watched: dict[object, tuple[float, Callable[[], Any]]] = {}
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="ragtrace-otlp-cutter", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def watch(self, cancel: Callable[[], Any]) -> _CallDeadline:
        return _CallDeadline(self._watched, time.monotonic() + self._timeout_s, cancel)

    def _run(self) -> None:
        while not self._stopped.wait(min(1.0, self._timeout_s / 4)):
            now = time.monotonic()
            for until, cancel in list(self._watched.values()):
                if now > until:
                    cancel()


class _CallDeadline:
    def __init__(
        self, watched: dict[object, tuple[float, Callable[[], Any]]], until: float, cancel: Callable[[], Any]
    ) -> None:
        self._watched = watched
        self._entry = until, cancel

    def __enter__(self) -> None:
        self._watched[self] = self._entry

    def __exit__(self, *_: object) -> None:
        del self._watched[self]
