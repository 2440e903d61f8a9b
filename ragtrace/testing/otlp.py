"""A real OTLP receiver on loopback, over gRPC and HTTP, that keeps what a test looks at."""

from __future__ import annotations

import gzip
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

Request = TypeVar("Request")
Protocol = Literal["http/protobuf", "grpc"]
_WAIT_S = 10.0
_MOST_BYTES = 4 * 1024 * 1024  # the default limit of a gRPC receiver

_SERVICES = {
    "/v1/traces": (trace_service_pb2, "Trace"),
    "/v1/metrics": (metrics_service_pb2, "Metrics"),
    "/v1/logs": (logs_service_pb2, "Logs"),
}


class OtlpReceiver:
    """Receives OTLP on a free port of loopback; use it with ``with``.

    Set `endpoint` as OTEL_EXPORTER_OTLP_ENDPOINT and `protocol` as OTEL_EXPORTER_OTLP_PROTOCOL. Requests are
    counted and kept as the protobuf messages they were.

    Args:
        protocol: ``http/protobuf`` or ``grpc``.
        status: HTTP status of every answer; 200 receives, others refuse.

    Example:
        >>> with OtlpReceiver() as receiver:
        ...     receiver.endpoint.startswith("http://127.0.0.1:"), receiver.spans
        (True, [])
    """

    def __init__(self, protocol: Protocol = "http/protobuf", *, status: int = 200) -> None:
        self.protocol = protocol
        self.status = status
        self.requests: list[object] = []
        self._arrived = threading.Condition()
        start = _start_grpc if protocol == "grpc" else _start_http
        self.port, self._stop = start(self)

    @property
    def endpoint(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[Span]:
        """Every span received, in order of arrival."""
        return [
            span
            for request in self._of(trace_service_pb2.ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def metrics(self) -> dict[str, Metric]:
        """The last state of every metric received, by name."""
        return {
            metric.name: metric
            for request in self._of(metrics_service_pb2.ExportMetricsServiceRequest)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    @property
    def logs(self) -> list[LogRecord]:
        """Every log record received, in order of arrival."""
        return [
            record
            for request in self._of(logs_service_pb2.ExportLogsServiceRequest)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def resource(self) -> dict[str, Any]:
        """Attributes of the resource of the last request with spans; empty before."""
        requests = list(self._of(trace_service_pb2.ExportTraceServiceRequest))
        return attributes_of(requests[-1].resource_spans[-1].resource.attributes) if requests else {}

    def wait_for(self, condition: Callable[[OtlpReceiver], bool], timeout_s: float = _WAIT_S) -> bool:
        """Block until `condition` holds for what was received; False when the time is over first."""
        with self._arrived:
            return self._arrived.wait_for(lambda: condition(self), timeout_s)

    def take(self, request: object) -> None:
        """Keep one request; called by the servers."""
        with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()

    def close(self) -> None:
        """Stop receiving and free the port."""
        self._stop()

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _of(self, kind: type[Request]) -> Iterator[Request]:
        return (request for request in list(self.requests) if isinstance(request, kind))


def attributes_of(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Return OTLP attributes as a dictionary of plain values.

    Example:
        >>> from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
        >>> attributes_of([KeyValue(key="k", value=AnyValue(int_value=3))])
        {'k': 3}
    """
    return {pair.key: _value_of(pair.value) for pair in pairs}


def _value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value_of(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


def _start_http(receiver: OtlpReceiver) -> tuple[int, Callable[[], None]]:
    class ReceiverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            service = _SERVICES.get(self.path)
            status = 404 if service is None else receiver.status
            answer = b""
            if service is not None and status == 200:
                module, signal = service
                receiver.take(getattr(module, f"Export{signal}ServiceRequest").FromString(body))
                answer = getattr(module, f"Export{signal}ServiceResponse")().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Requests are looked at by the test."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ReceiverHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="otlp-http", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        thread.join(2.0)
        server.server_close()

    return server.server_address[1], stop


def _start_grpc(receiver: OtlpReceiver) -> tuple[int, Callable[[], None]]:
    import grpc  # noqa: PLC0415 - comes with the exporter; only this protocol needs it

    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=4), options=[("grpc.max_receive_message_length", _MOST_BYTES)]
    )
    for module, signal in _SERVICES.values():
        answer = getattr(module, f"Export{signal}ServiceResponse")

        def export(request: Any, context: Any, answer: Any = answer) -> Any:
            if receiver.status != 200:
                context.abort(grpc.StatusCode.UNAVAILABLE, "refused")
            receiver.take(request)
            return answer()

        handler = grpc.unary_unary_rpc_method_handler(
            export,
            request_deserializer=getattr(module, f"Export{signal}ServiceRequest").FromString,
            response_serializer=lambda reply: reply.SerializeToString(),
        )
        name = f"opentelemetry.proto.collector.{signal.lower()}.v1.{signal}Service"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return port, lambda: server.stop(0.2).wait(2.0)
