"""Export requests for the receiver's tests, and an intake that keeps what it gets."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.ingest import RawLog, RawSpan


class Kept:
    """An intake that keeps what it gets.

    Attributes:
        wants: says which traces are wanted.
        wait_s: seconds of back-pressure, None for none.
        keeps: whether spans are kept, or counted alone.
    """

    def __init__(self, wants: Callable[[bytes], bool] = lambda _: True, *, keeps: bool = True) -> None:
        self.wants, self.keeps = wants, keeps
        self.wait_s: float | None = None
        self.spans: list[RawSpan] = []
        self.logs: list[RawLog] = []
        self.taken = self.skipped_roots = self.rejects = self.requests = 0
        self._lock = threading.Lock()

    def is_wanted(self, trace_id: bytes) -> bool:
        return self.wants(trace_id)

    def retry_after_s(self) -> float | None:
        return self.wait_s

    def put_spans(self, spans: Sequence[RawSpan], *, skipped_roots: int, rejected: int = 0) -> int:
        with self._lock:
            self.requests += 1
            self.taken += len(spans)
            self.skipped_roots += skipped_roots
            if self.keeps:
                self.spans += spans
        return self.rejects

    def put_logs(self, logs: Sequence[RawLog]) -> list[str]:
        self.logs += logs
        return ["it has no name"] * self.rejects

    @property
    def names(self) -> list[str]:
        return sorted(raw.span.name for raw in self.spans)


def pair(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def span(
    rng: random.Random, name: str = "chat", *, is_root: bool = False, state: str = "", documents: int = 2
) -> Span:
    return Span(
        trace_id=rng.randbytes(16),
        span_id=rng.randbytes(8),
        trace_state=state,
        parent_span_id=b"" if is_root else rng.randbytes(8),
        flags=257,
        name=name,
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=1_700_000_000_000_000_000,
        end_time_unix_nano=1_700_000_001_000_000_000,
        attributes=[
            pair("input.value", "Where is the lab?"),
            KeyValue(key="llm.token_count.total", value=AnyValue(int_value=812)),
            KeyValue(key="score", value=AnyValue(double_value=0.5)),
            KeyValue(key="ok", value=AnyValue(bool_value=True)),
            KeyValue(
                key="ids",
                value=AnyValue(
                    array_value=ArrayValue(values=[AnyValue(string_value=str(n)) for n in range(documents)])
                ),
            ),
        ],
        events=[Span.Event(name="first token", time_unix_nano=1_700_000_000_500_000_000)],
    )


def spans_request(
    spans: Sequence[Span], *, service: str = "shop", scope: str = "tests"
) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.append(pair("service.name", service))
    of_scope = resource.scope_spans.add()
    of_scope.scope.name = scope
    of_scope.spans.extend(spans)
    return request


def some_spans(seed: int = 1, count: int = 20) -> ExportTraceServiceRequest:
    rng = random.Random(seed)
    return spans_request(
        [span(rng, f"s{n}", is_root=n % 4 == 0, state="a=b" if n % 3 == 0 else "") for n in range(count)]
    )


def logs_request(*names: str, as_attribute: bool = False) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.append(pair("service.name", "shop"))
    records = resource.scope_logs.add().log_records
    for name in names:
        record = records.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
        if as_attribute:
            record.attributes.append(pair("event.name", name))
        else:
            record.event_name = name
        record.attributes.append(pair("gen_ai.evaluation.name", "relevance"))
    return request


def field(number: int, value: bytes) -> bytes:
    """A protobuf field with a length."""
    size, length = len(value), bytearray()
    while True:
        length.append(size & 0x7F | (0x80 if size > 0x7F else 0))
        size >>= 7
        if not size:
            break
    tag = number << 3 | 2
    head = bytes([tag]) if tag < 128 else bytes([tag & 0x7F | 0x80, tag >> 7])
    return head + bytes(length) + value
