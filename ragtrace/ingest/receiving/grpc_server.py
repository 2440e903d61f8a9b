"""OTLP over gRPC."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import grpc
import grpc.aio

from ragtrace.errors import ConfigError
from ragtrace.ingest.receiving.refusal import ReceiverRefusal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from ragtrace.ingest.receiving.exporting import ExportService, Signal
    from ragtrace.ingest.receiving.options import ListenAddress, ReceiverLimits, ServerTls

    Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

T = TypeVar("T")

_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
_PACKED = (b"\x1f\x8b", b"\x78")  # gzip, and zlib for gRPC's deflate; no OTLP message begins so
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_MINUTE_MS = 60_000
_LEAST_PATIENCE_S = 0.05
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_STREAMS = 16  # of one connection; a Collector's sender has 10


class GrpcServer:
    """Serve the trace and the logs service in an event loop of its own.

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
        self._service = service
        self._calls = _Calls(service.limits)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="ragtrace-otlp-grpc", daemon=True)
        self._thread.start()
        try:
            self._server, self.port = self._wait_for(self._bound(address, tls))
        except BaseException:
            self._end_loop()
            raise

    def start(self) -> None:
        """Begin to serve."""
        _keep_freed_memory()
        self._wait_for(self._server.start())

    def stop(self, grace_s: float) -> None:
        """Stop serving; calls under way have a grace in seconds."""
        if self._thread.is_alive():
            self._wait_for(self._server.stop(grace_s))
            self._end_loop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)

    async def _bound(self, address: ListenAddress, tls: ServerTls | None) -> tuple[grpc.aio.Server, int]:
        limits = self._service.limits
        server = grpc.aio.server(
            handlers=[
                grpc.method_handlers_generic_handler(name, self._methods(_SERVICES[name])) for name in _SERVICES
            ],
            options=_options(limits),
        )
        try:
            if tls is None:
                return server, server.add_insecure_port(str(address))
            return server, server.add_secure_port(str(address), _credentials(tls))
        except RuntimeError:
            hint = ", and check the certificates" if tls is not None else ""
            raise ConfigError(f"gRPC: cannot listen on {address}; choose a free port, or 0{hint}") from None

    def _methods(self, signal: Signal) -> dict[str, Any]:
        async def export(_requests: object, context: Context) -> bytes:
            try:
                return await self._export(signal, context)
            except ReceiverRefusal as error:
                refusal = error.released()
            self._service.count(refusal)
            await _abort(context, refusal)
            raise AssertionError  # abort raises

        return {"Export": grpc.stream_unary_rpc_method_handler(export)}

    async def _export(self, signal: Signal, context: Context) -> bytes:
        service = self._service
        service.authorize(_authorization(context))
        service.admit()
        with service.hold() as held, self._calls.counted():
            body = await self._calls.read(context)
            held.add(len(body))
            work = service.exported(signal, body, held, is_packed=body.startswith(_PACKED))
            del body
            response = await work
            return bytes(response.SerializeToString())


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits for its turn to be read, or is read."""

    turn: asyncio.Future[None]
    timeout: asyncio.Timeout
    is_crowded_out: bool = False


class _Calls:
    """Calls within their limits, in one event loop; the first is read first.

    The size of a message is not known before it is received, so few are received at once. A call that sends nothing
    would hold its place: it loses it when others wait, so that the last of them gets its turn within
    `crowded_timeout_s`, or later beside hundreds of calls.
    """

    def __init__(self, limits: ReceiverLimits) -> None:
        self._limits = limits
        self._count = 0
        self._reading: dict[_Call, float] = {}  # since when; the first first
        self._waiting: dict[_Call, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call within the block.

        Raises:
            ReceiverRefusal: there are too many.
        """
        if self._count >= self._limits.calls:
            raise _crowded()
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def read(self, context: Context) -> bytes:
        """Return the message of a call, when it is its turn.

        Raises:
            ReceiverRefusal: it has none, or it does not come in time.
        """
        limits = self._limits
        call = _Call(asyncio.get_running_loop().create_future(), asyncio.timeout(limits.body_timeout_s))
        try:
            async with call.timeout:
                self._waiting[call] = asyncio.get_running_loop().time()
                self._take_turns()
                await call.turn
                body = await context.read()
        except TimeoutError:
            if call.is_crowded_out:
                raise _crowded() from None
            raise ReceiverRefusal("timeout", f"the message took more than {limits.body_timeout_s:g} s") from None
        finally:
            self._leave(call)
        if not isinstance(body, bytes):
            raise ReceiverRefusal("malformed", "the call has no message")
        return body

    def _take_turns(self) -> None:
        """Begin to read the calls that waited for longest, in the place of slow ones too."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop, most = asyncio.get_running_loop(), self._limits.workers
        while self._waiting:
            if len(self._reading) >= most:
                slow, since_s = next(iter(self._reading.items()))
                until_s = since_s + self._patience_s(loop.time())
                if loop.time() < until_s:
                    self._timer = loop.call_at(until_s, self._take_turns)
                    return
                del self._reading[slow]
                slow.is_crowded_out = True
                slow.timeout.reschedule(0.0)
            call = next(iter(self._waiting))
            del self._waiting[call]
            if not call.turn.done():  # else its time is over, and it is about to leave
                self._reading[call] = loop.time()
                call.turn.set_result(None)

    def _patience_s(self, now_s: float) -> float:
        """Return how long a message may take while others wait, so that the last of them gets its turn in time."""
        rounds = -(-len(self._waiting) // self._limits.workers)
        last_s = next(reversed(self._waiting.values()))
        return max((last_s + self._limits.crowded_timeout_s - now_s) / rounds, _LEAST_PATIENCE_S)

    def _leave(self, call: _Call) -> None:
        self._waiting.pop(call, None)
        self._reading.pop(call, None)
        self._take_turns()


def _crowded() -> ReceiverRefusal:
    return ReceiverRefusal("busy", "too many calls at once", retry_after_s=1.0)


def _keep_freed_memory() -> None:
    """Tell glibc to keep what a message took for the next one.

    The loop's thread allocates and frees one message after the other, and glibc would give each back to the kernel:
    3 MB then cost up to 1,000 page faults and 1.5 ms more, a third of the whole request.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 8 * 2**20)
        mallopt(_M_TRIM_THRESHOLD, 16 * 2**20)


def _options(limits: ReceiverLimits) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_allowed_incoming_connections", limits.grpc_connections),
        ("grpc.server_handshake_timeout_ms", int(limits.head_timeout_s * 1_000)),  # TLS and the first frames
        ("grpc.per_message_decompression", 0),  # grpc inflates without a limit; `inflate` has one
        ("grpc.http2.bdp_probe", 0),  # else each connection buffers megabytes before a worker reads
        ("grpc.so_reuseport", 0),  # a taken port is an error
        ("grpc.max_concurrent_streams", _STREAMS),
        ("grpc.max_connection_idle_ms", int(limits.idle_timeout_s * 1_000)),
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


def _authorization(context: Context) -> bytes:
    for key, value in context.invocation_metadata():
        if key == "authorization":
            return value if isinstance(value, bytes) else value.encode()
    return b""


async def _abort(context: Context, refusal: ReceiverRefusal) -> None:
    details = [("grpc-status-details-bin", refusal.status().SerializeToString())]
    if (info := refusal.retry_info()) is not None:
        details.append(("google.rpc.retryinfo-bin", info.SerializeToString()))  # read by Python's exporter
    await context.abort(_CODES[refusal.rpc_code], refusal.message, tuple(details))
