"""Spans of a complete trace, as plain values that dialects read."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.trace.v1.trace_pb2 import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    from ragtrace.ingest.base import RawSpan

_MOST_DEPTH = 16
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """One event of a span; times are Unix ns."""

    name: str
    time_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """One received span.

    Attributes:
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        parent_id: 16 hex digits, "" for the root of its trace.
        kind: number of OTLP's enumeration SpanKind.
        is_error: whether its status is an error.
        attributes: plain values: texts, numbers, booleans, and lists of them.
        resource: attributes of its resource.
        scope: name of the instrumentation scope.
        trace_state: W3C tracestate.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    kind: int = 0
    started_ns: int = 0
    ended_ns: int = 0
    is_error: bool = False
    status_message: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    trace_state: str = ""


def received_spans(spans: Iterable[RawSpan]) -> Iterator[ReceivedSpan]:
    """Yield the plain forms of protobuf spans; those of one resource share its attributes.

    Example:
        >>> from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        >>> from opentelemetry.proto.trace.v1.trace_pb2 import Span
        >>> from ragtrace.ingest.base import RawSpan
        >>> shop = Resource()
        >>> one, other = received_spans([RawSpan(Span(name="chat"), shop), RawSpan(Span(name="search"), shop)])
        >>> one.resource is other.resource
        True
    """
    known: dict[int, tuple[Resource, Mapping[str, Any]]] = {}
    for raw in spans:
        _, resource = known.get(id(raw.resource), (None, None))
        if resource is None:
            resource = plain_attributes(raw.resource.attributes)
            known[id(raw.resource)] = raw.resource, resource
        yield received_span(raw, resource)


def received_span(raw: RawSpan, resource: Mapping[str, Any] | None = None) -> ReceivedSpan:
    """Return the plain form of one protobuf span, with the attributes of its resource where they are known.

    Example:
        >>> from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        >>> from opentelemetry.proto.trace.v1.trace_pb2 import Span
        >>> from ragtrace.ingest.base import RawSpan
        >>> received_span(RawSpan(Span(trace_id=bytes(16), span_id=b"12345678", name="chat"), Resource())).name
        'chat'
    """
    span = raw.span
    return ReceivedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if span.parent_span_id.strip(b"\0") else "",
        name=span.name,
        kind=span.kind,
        started_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        is_error=span.status.code == Status.STATUS_CODE_ERROR,
        status_message=span.status.message,
        attributes=plain_attributes(span.attributes),
        events=tuple(
            SpanEvent(
                name=event.name,
                time_ns=event.time_unix_nano,
                attributes=plain_attributes(event.attributes) if event.attributes else _NOTHING,
            )
            for event in span.events
        ),
        resource=plain_attributes(raw.resource.attributes) if resource is None else resource,
        scope=raw.scope,
        trace_state=span.trace_state,
    )


def plain_attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Return attributes as a dictionary of plain values; nested values below depth 16 are left out.

    Example:
        >>> from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
        >>> plain_attributes([KeyValue(key="gen_ai.request.top_k", value=AnyValue(int_value=5))])
        {'gen_ai.request.top_k': 5}
    """
    return {pair.key: _plain(pair.value, 0) for pair in pairs}


def _plain(value: AnyValue, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _MOST_DEPTH:
        return None
    if kind == "array_value":
        return [_plain(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _plain(pair.value, depth + 1) for pair in value.kvlist_value.values}
    return getattr(value, kind)
