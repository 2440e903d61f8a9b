"""Spans as OTLP has them, made of plain values."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragtrace.ingest import RawSpan

TRACE = bytes(range(16))
_SECOND = 1_000_000_000


def any_value(value: Any) -> AnyValue:
    """Return a plain value as OTLP's; lone surrogates have no UTF-8 and become bytes."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    return AnyValue() if value is None else AnyValue(string_value=value)


def pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    """Return attributes as OTLP's pairs."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(
    number: int, attributes: dict[str, Any], *, under: int = 0, at: tuple[float, float] = (1, 2), **facts: Any
) -> RawSpan:
    """Return span `number` of the one trace; times are seconds, `under` is the parent's number."""
    made = Span(
        trace_id=TRACE,
        span_id=number.to_bytes(8),
        parent_span_id=under.to_bytes(8) if under else b"",
        name=facts.get("name", f"span {number}"),
        start_time_unix_nano=int(at[0] * _SECOND),
        end_time_unix_nano=int(at[1] * _SECOND),
        attributes=pairs(attributes),
        events=[Span.Event(name=name, attributes=pairs(given)) for name, given in facts.get("events", ())],
        status=Status(code=Status.STATUS_CODE_ERROR if facts.get("is_error") else Status.STATUS_CODE_UNSET),
        trace_state=facts.get("trace_state", ""),
    )
    return RawSpan(made, Resource(attributes=pairs(facts.get("resource", {}))), facts.get("scope", ""))
