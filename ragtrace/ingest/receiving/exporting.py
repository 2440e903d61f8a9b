"""One export request: admitted, decompressed, decoded, and put into the intake."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragtrace.capture import record_internal_error
from ragtrace.ingest.receiving import otlp_json, wire
from ragtrace.ingest.receiving.inflate import inflated
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.semconv import EVENT_EVALUATION_RESULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from types import TracebackType

    from ragtrace.ingest.base import Intake
    from ragtrace.ingest.receiving.options import ReceiverLimits

Signal = Literal["traces", "logs"]
Response: TypeAlias = ExportTraceServiceResponse | ExportLogsServiceResponse

_EVENT = EVENT_EVALUATION_RESULT.encode()
_MOST_REASONS = 5  # in the message to a sender


class ByteBudget:
    """Bytes of all requests at once, and the requests that are still being received, the first first."""

    def __init__(self, capacity: int, crowded_s: float) -> None:
        self._free = capacity
        self._crowded_s = crowded_s
        self._lock = threading.Lock()
        self._receiving: dict[Held, Callable[[], object]] = {}

    def take(self, size: int) -> bool:
        """Take bytes when there is room for them; else end those that have been received for too long."""
        with self._lock:
            if size <= self._free:
                self._free -= size
                return True
            until_s = time.monotonic() - self._crowded_s
            wanted, ends = size - self._free, []
            for held in list(self._receiving):
                if wanted <= 0 or held.since_s > until_s:
                    break
                if held.size:
                    wanted -= held.size
                    ends.append(self._receiving.pop(held))
        for end in ends:
            end()
        return False

    def give(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._free += size

    @contextmanager
    def receiving(self, held: Held, end: Callable[[], object]) -> Iterator[None]:
        """Receive a body within the block; `end` is called in any thread when others need its room."""
        with self._lock:
            self._receiving[held] = end
        try:
            yield
        finally:
            with self._lock:
                self._receiving.pop(held, None)


class Held:
    """Bytes of one request, given back at the end of its block, or of its work where that begins in the block."""

    def __init__(self, room: ByteBudget) -> None:
        self._room = room
        self.size = 0
        self.since_s = time.monotonic()
        self._work: Future[Any] | None = None

    def __enter__(self) -> Held:
        return self

    def add(self, size: int) -> None:
        """Hold more bytes.

        Raises:
            ReceiverRefusal: the requests under way hold as much as they may.
        """
        if not self._room.take(size):
            raise ReceiverRefusal("busy", "too many bytes are being received at once", retry_after_s=1.0)
        self.size += size

    def receiving(self, end: Callable[[], object]) -> AbstractContextManager[None]:
        """Return the block in which the body is received; `end` is called when others need its room."""
        return self._room.receiving(self, end)

    def until(self, work: Future[Any]) -> None:
        """Hold the bytes until some work is done, though its request may have ended before."""
        self._work = work
        work.add_done_callback(lambda _: self._room.give(self.size))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._work is None:
            self._room.give(self.size)


class ExportService:
    """Takes the requests of both servers.

    Attributes:
        limits: of one request and of all.
        is_stopping: refuses every request with 503 or UNAVAILABLE.
        refused: refusals by reason since the start.
    """

    def __init__(
        self, intake: Intake, limits: ReceiverLimits, token: str | None, say: Callable[[str], None]
    ) -> None:
        self.limits = limits
        self.is_stopping = False
        self.refused: Counter[str] = Counter()
        self._say = say
        self._intake = intake
        self._token = None if token is None else b"bearer " + token.encode()
        self._room = ByteBudget(limits.in_flight_bytes, limits.crowded_timeout_s)
        # Python decodes one request at a time anyway, and memory is bounded by it.
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="ragtrace-otlp-decoder")

    def close(self) -> None:
        """End the thread that decodes."""
        self._decoder.shutdown(wait=False, cancel_futures=True)

    def authorize(self, given: bytes) -> None:
        """Check the value of a request's ``Authorization``, in constant time.

        Raises:
            ReceiverRefusal: it is not the bearer token.
        """
        if self._token is None:
            return
        scheme, _, token = given.partition(b" ")
        if not hmac.compare_digest(scheme.lower() + b" " + token.strip(), self._token):
            raise ReceiverRefusal(
                "unauthenticated", "send the header 'Authorization: Bearer TOKEN' with the receiver's token"
            )

    def admit(self) -> None:
        """Check that a request may come in, before its body is read.

        Raises:
            ReceiverRefusal: the receiver stops, or the intake is full.
        """
        if self.is_stopping:
            raise ReceiverRefusal("stopping", "the receiver is stopping", retry_after_s=1.0)
        if (wait_s := self._intake.retry_after_s()) is not None:
            raise ReceiverRefusal("busy", "too many traces are waiting", retry_after_s=wait_s)

    def hold(self) -> Held:
        """Return the block in which a request holds its bytes."""
        return Held(self._room)

    async def exported(
        self, signal: Signal, body: bytes, held: Held, *, is_json: bool = False, is_packed: bool = False
    ) -> Response:
        """Return what `export` returns, from the thread that decodes.

        Raises:
            ReceiverRefusal: the request is not taken.
        """
        try:
            work = self._decoder.submit(self.export, signal, body, held, is_json=is_json, is_packed=is_packed)
        except RuntimeError:  # it was closed
            raise ReceiverRefusal("stopping", "the receiver is stopping", retry_after_s=1.0) from None
        held.until(work)
        del body
        return await asyncio.wrap_future(work)

    def export(
        self, signal: Signal, body: bytes, held: Held, *, is_json: bool = False, is_packed: bool = False
    ) -> Response:
        """Decode a request and put it into the intake.

        Args:
            signal: which spans or logs it holds.
            body: as sent.
            held: gets the decompressed bytes.
            is_json: OTLP/JSON, else protobuf.
            is_packed: gzip or zlib.

        Returns:
            The response, with the number of rejected items.

        Raises:
            ReceiverRefusal: the request is not taken; nothing else is raised.
        """
        limits = self.limits
        try:
            if is_packed:
                body = inflated(body, limits.json_bytes if is_json else limits.inflated_bytes, held.add)
            decode = self._spans if signal == "traces" else self._logs
            return decode(body, is_json=is_json)
        except ReceiverRefusal:
            raise
        except Exception as error:
            record_internal_error("ragtrace.ingest.receiving", error)
            raise ReceiverRefusal("internal", f"the receiver failed: {type(error).__name__}") from None

    def count(self, refusal: ReceiverRefusal) -> None:
        """Count one refusal, and say the first of its reason."""
        self.refused[refusal.reason] += 1  # a lost count in a race is harmless
        if self.refused[refusal.reason] == 1:
            self._say(f"refused a request ({refusal.reason}): {refusal.message}")

    def _spans(self, body: bytes, *, is_json: bool) -> ExportTraceServiceResponse:
        asked = body, self.limits, self._intake.is_wanted
        rejected = 0
        for spans in (otlp_json if is_json else wire).span_portions(*asked):
            rejected += spans.rejected + self._intake.put_spans(
                spans.wanted, skipped_roots=spans.skipped_roots, rejected=spans.rejected
            )
            del spans  # before the next portion is parsed
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            limit = f"they exceed {self.limits.span_bytes} bytes"
            response.partial_success.error_message = f"spans were rejected: their ids are invalid, or {limit}"
        return response

    def _logs(self, body: bytes, *, is_json: bool) -> ExportLogsServiceResponse:
        asked = body, self.limits, _EVENT
        why: Counter[str] = Counter()
        for logs in [otlp_json.read_logs(*asked)] if is_json else wire.log_portions(*asked):
            if logs.rejected:
                why[f"larger than {self.limits.span_bytes} bytes"] += logs.rejected
            why.update(self._intake.put_logs(logs.wanted) if logs.wanted else ())
            del logs  # before the next portion is parsed
        response = ExportLogsServiceResponse()
        if why:
            shown = "; ".join(f"{n} times: {reason}" for reason, n in why.most_common(_MOST_REASONS))
            response.partial_success.rejected_log_records = why.total()
            response.partial_success.error_message = f"evaluation results were rejected: {shown}"
        return response
