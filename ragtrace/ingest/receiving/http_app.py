"""OTLP over HTTP as an ASGI application."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from functools import partial
from io import BytesIO
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

from ragtrace.capture import record_internal_error
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.model.printable import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from google.protobuf.message import Message

    from ragtrace.ingest.receiving.exporting import ExportService, Held, Signal
    from ragtrace.ingest.receiving.options import ListenAddress

    Event = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Event]]
    Send = Callable[[Event], Awaitable[None]]

_PATHS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_PROTOBUF, _JSON = b"application/x-protobuf", b"application/json"
_MOST_DRAINED = 2**20  # a refused sender that still writes would see a reset connection instead of the answer
_DRAIN_S = 2.0
_MOST_PATH_CHARS = 80
_NAME = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([^\s:@,/\[\]]+))(?::\d+)?")


class HttpApp:
    """Answer ``POST /v1/traces`` and ``POST /v1/logs``.

    Args:
        service: takes the requests.
        address: bound by the server; on loopback a ``Host`` that is another name is refused (DNS rebinding).
    """

    def __init__(self, service: ExportService, address: ListenAddress) -> None:
        self._service = service
        self._address = address

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        is_json = not _media_type(headers).startswith(_PROTOBUF)
        body = _Body(receive, self._service.limits.body_timeout_s)
        try:
            await _answer(send, 200, await self._exported(scope, headers, body), is_json=is_json)
        except _Gone:
            return
        except ReceiverRefusal as refusal:
            await self._refused(send, refusal.released(), body, is_json=is_json)
        except Exception as error:
            record_internal_error("ragtrace.ingest.receiving.http", error)
            failed = ReceiverRefusal("internal", f"the receiver failed: {type(error).__name__}")
            await self._refused(send, failed, body, is_json=is_json)

    async def _exported(self, scope: Event, headers: dict[bytes, bytes], body: _Body) -> Message:
        service = self._service
        _check_host(headers.get(b"host"), self._address)
        service.authorize(headers.get(b"authorization", b""))
        signal = _signal(scope)
        is_json, is_packed = _is_json(headers), _is_packed(headers)
        service.admit()
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > service.limits.request_bytes:
            raise _too_large(service.limits.request_bytes)
        with service.hold() as held:
            payload = await body.read(service.limits.request_bytes, held)
            return await service.exported(signal, payload, held, is_json=is_json, is_packed=is_packed)

    async def _refused(self, send: Send, refusal: ReceiverRefusal, body: _Body, *, is_json: bool) -> None:
        self._service.count(refusal)
        headers: list[tuple[bytes, bytes]] = []
        if refusal.retry_after is not None:
            headers.append((b"retry-after", str(refusal.retry_after).encode()))
        if refusal.reason == "unauthenticated":
            headers.append((b"www-authenticate", b"Bearer"))
        if refusal.reason == "method":
            headers.append((b"allow", b"POST"))
        if not await body.drain():
            headers.append((b"connection", b"close"))
        await _answer(send, refusal.http_status, refusal.status(), headers, is_json=is_json)


class _Gone(Exception):
    """The sender closed the connection."""


class _Body:
    """Body of one request, read within its deadline."""

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._timeout_s = timeout_s
        self._is_whole = self._is_crowded_out = False

    async def read(self, most: int, held: Held) -> bytes:
        """Return the whole body."""
        whole = BytesIO()
        size = 0
        try:
            async with asyncio.timeout(self._timeout_s) as timeout:
                end = partial(asyncio.get_running_loop().call_soon_threadsafe, self._crowd_out, timeout)
                with held.receiving(end):
                    while not self._is_whole:
                        piece = await self._next()
                        size += len(piece)
                        if size > most:
                            raise _too_large(most)
                        held.add(len(piece))
                        whole.write(piece)
        except TimeoutError:
            if self._is_crowded_out:
                raise ReceiverRefusal(
                    "busy", "the body is slow, and others need its room", retry_after_s=1.0
                ) from None
            raise ReceiverRefusal("timeout", f"the body took more than {self._timeout_s:g} s") from None
        return whole.getvalue()

    def _crowd_out(self, timeout: asyncio.Timeout) -> None:
        with suppress(RuntimeError):  # the body ended meanwhile
            timeout.reschedule(0.0)
            self._is_crowded_out = True

    async def drain(self) -> bool:
        """Read what is left of a refused request within limits, and say whether that was all of it."""
        size = 0
        try:
            async with asyncio.timeout(min(_DRAIN_S, self._timeout_s)):
                while not self._is_whole and size < _MOST_DRAINED:
                    size += len(await self._next())
        except (TimeoutError, _Gone):
            return False
        return self._is_whole

    async def _next(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise _Gone
        self._is_whole = not event.get("more_body", False)
        return bytes(event.get("body", b""))


def _signal(scope: Event) -> Signal:
    path = scope["path"]
    if path == "/v1/metrics":
        raise ReceiverRefusal(
            "not_found", "metrics are not taken here; send /v1/traces and /v1/logs, and metrics elsewhere"
        )
    if path not in _PATHS:
        shown = printable(path if len(path) <= _MOST_PATH_CHARS else f"{path[:_MOST_PATH_CHARS]}...")
        raise ReceiverRefusal(
            "not_found",
            f"there is no {shown}; send to /v1/traces or /v1/logs (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT needs the"
            " path /v1/traces, and OTEL_EXPORTER_OTLP_ENDPOINT no path)",
        )
    if scope["method"] != "POST":
        raise ReceiverRefusal("method", "use POST")
    return _PATHS[path]


def _media_type(headers: dict[bytes, bytes]) -> bytes:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower()


def _is_json(headers: dict[bytes, bytes]) -> bool:
    kind = _media_type(headers)
    if kind not in {_PROTOBUF, _JSON}:
        raise ReceiverRefusal("media_type", "Content-Type is neither application/x-protobuf nor application/json")
    return kind == _JSON


def _is_packed(headers: dict[bytes, bytes]) -> bool:
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding not in {b"", b"identity", b"gzip"}:
        raise ReceiverRefusal("media_type", "Content-Encoding is neither gzip nor identity")
    return encoding == b"gzip"


def _too_large(most: int) -> ReceiverRefusal:
    return ReceiverRefusal("too_large", f"the body is larger than {most} bytes; send smaller batches")


def _check_host(host: bytes | None, address: ListenAddress) -> None:
    """Refuse a web page that reaches loopback by a name of its own (DNS rebinding)."""
    if host is None or not address.is_loopback:
        return
    name = _NAME.fullmatch(host.strip().lower())
    if name is None or not _is_local((name[1] or name[2]).decode("latin-1").removesuffix("."), address):
        raise ReceiverRefusal("host", "the Host of this request is not this server's")


def _is_local(name: str, address: ListenAddress) -> bool:
    if name in {address.host.lower(), "localhost"} or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def _answer(
    send: Send, status: int, message: Message, headers: list[tuple[bytes, bytes]] | None = None, *, is_json: bool
) -> None:
    body = json_format.MessageToJson(message, indent=None).encode() if is_json else message.SerializeToString()
    head = [
        (b"content-type", _JSON if is_json else _PROTOBUF),
        (b"content-length", str(len(body)).encode()),
        *(headers or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
