"""Spans and log records of OTLP/JSON as protobuf messages."""

from __future__ import annotations

import base64
import binascii
import math
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawLog, RawSpan
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.ingest.receiving.wire import PORTION_BYTES, Logs, Spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from google.protobuf.descriptor import Descriptor, EnumDescriptor
    from google.protobuf.message import Message

    from ragtrace.ingest.receiving.options import ReceiverLimits

M = TypeVar("M", bound="Message")
_COUNTED_BYTES = 4 * 2**20  # counting takes a third of the time of reading
_IDS = frozenset({"trace_id", "span_id", "parent_span_id"})
_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}


class _Invalid(Exception):
    """A value does not fit its field."""


def read_spans(body: bytes, limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]) -> Spans:
    """Return the wanted spans of an ``ExportTraceServiceRequest`` in JSON.

    Raises:
        ReceiverRefusal: the JSON is malformed, too deep, or has too many items.
    """
    portions = list(span_portions(body, limits, is_wanted))
    return portions[-1]._replace(wanted=[raw for portion in portions for raw in portion.wanted])


def span_portions(body: bytes, limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]) -> Iterator[Spans]:
    """Yield the wanted spans of an ``ExportTraceServiceRequest`` in JSON, in portions as those of protobuf.

    Raises:
        ReceiverRefusal: the JSON is malformed, too deep, or has too many items.
    """
    try:
        yield from _span_portions(_loaded(body, limits), limits, is_wanted)
    except (_Invalid, ValueError, TypeError):
        raise ReceiverRefusal(
            "malformed", "the body is not a valid ExportTraceServiceRequest in OTLP/JSON"
        ) from None


def read_logs(body: bytes, limits: ReceiverLimits, name: bytes) -> Logs:
    """Return the log records of an ``ExportLogsServiceRequest`` in JSON that are events of this name.

    Raises:
        ReceiverRefusal: the JSON is malformed, too deep, or has too many items.
    """
    try:
        return _read_logs(_loaded(body, limits), limits, name.decode())
    except (_Invalid, ValueError, TypeError):
        raise ReceiverRefusal(
            "malformed", "the body is not a valid ExportLogsServiceRequest in OTLP/JSON"
        ) from None


def _loaded(body: bytes, limits: ReceiverLimits) -> dict[str, Any]:
    if len(body) > limits.json_bytes:
        raise ReceiverRefusal(
            "too_large", f"JSON of more than {limits.json_bytes} bytes; send smaller batches, or protobuf"
        )
    # Lists and objects take up to 200 bytes each, and 40 times theirs, so that a smaller body takes 160 MB at most.
    if len(body) > _COUNTED_BYTES and body.count(b"{") + body.count(b"[") > limits.nested:
        raise ReceiverRefusal(
            "too_large",
            f"JSON of more than {limits.nested} lists and objects; send smaller batches, or protobuf",
        )
    try:
        loaded = orjson.loads(body)  # refuses more than 1,024 levels
    except orjson.JSONDecodeError:
        raise _Invalid from None
    if not isinstance(loaded, dict):
        raise _Invalid
    return loaded


def _span_portions(
    request: dict[str, Any], limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]
) -> Iterator[Spans]:
    found: list[RawSpan] = []
    roots = rejected = size = 0
    known: dict[bytes, bool] = {}
    for resource, scope, spans in _scopes(request, ("resourceSpans", "scopeSpans", "spans"), limits):
        name = ""
        for span in spans:
            trace_id = _trace_id(span)
            if not trace_id:
                rejected += 1
                continue
            if trace_id not in known:
                known[trace_id] = is_wanted(trace_id)
            if not known[trace_id]:
                roots += not _of(span, "parentSpanId")
                continue
            message = _message(Span, span, limits)
            bytes_of_span = message.ByteSize()
            if len(message.span_id) != 8 or bytes_of_span > limits.span_bytes:
                rejected += 1
                continue
            name = name or _message(InstrumentationScope, scope, limits).name
            found.append(RawSpan(message, resource(), name))
            size += bytes_of_span
            if size > PORTION_BYTES:
                del message
                yield Spans(found)
                found, size = [], 0
    yield Spans(found, roots, rejected)


def _trace_id(span: dict[str, Any]) -> bytes:
    """Return the id of a span's trace, empty when it is not a valid one."""
    given = _of(span, "traceId")
    if not isinstance(given, str):
        return b""
    try:
        trace_id = bytes.fromhex(given)
    except ValueError:
        return b""
    return trace_id if len(trace_id) == 16 and any(trace_id) else b""


def _read_logs(request: dict[str, Any], limits: ReceiverLimits, name: str) -> Logs:
    found: list[RawLog] = []
    for resource, scope, records in _scopes(request, ("resourceLogs", "scopeLogs", "logRecords"), limits):
        if events := [record for record in records if _is_event(record, name)]:
            head = _message(InstrumentationScope, scope, limits).name
            found += [RawLog(_message(LogRecord, record, limits), resource(), head) for record in events]
    return Logs(found)


def _is_event(record: dict[str, Any], name: str) -> bool:
    """Say whether a log record is an event; before OTLP 1.5 its name was an attribute."""
    if _of(record, "eventName") == name:
        return True
    for pair in _list(record, "attributes"):
        value = pair.get("value")
        if isinstance(value, dict) and _of(value, "stringValue") == name:
            return True
    return False


def _scopes(
    request: dict[str, Any], names: tuple[str, str, str], limits: ReceiverLimits
) -> Iterator[tuple[Callable[[], Resource], dict[str, Any], list[dict[str, Any]]]]:
    left = limits.items
    of_resources = _list(request, names[0])
    left -= len(of_resources)
    for of_resource in of_resources if left > 0 else ():
        resource = cache(lambda given=of_resource: _message(Resource, _of(given, "resource") or {}, limits))
        of_scopes = _list(of_resource, names[1])
        left -= len(of_scopes)
        for of_scope in of_scopes if left > 0 else ():
            items = _list(of_scope, names[2])
            left -= len(items)
            if left >= 0:
                yield resource, _of(of_scope, "scope") or {}, items
    if left < 0:
        raise ReceiverRefusal("too_large", f"more than {limits.items} items in one request; send smaller batches")


def _of(given: Mapping[str, Any], name: str) -> Any:
    """Return a field by its camelCase name, or by the snake_case name of the protobuf file."""
    return given[name] if name in given else given.get(_snake(name))


@cache
def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _list(given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = _of(given, name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise _Invalid
    return found


def _message(kind: type[M], given: Any, limits: ReceiverLimits) -> M:
    message: M = kind()
    _fill(message, given, limits.json_depth)
    return message


def _fill(message: Message, given: Any, depth: int) -> None:
    """Set the fields of a message from a JSON object; unknown ones are ignored."""
    if not isinstance(given, dict) or depth < 0:
        raise _Invalid
    known = _fields(message.DESCRIPTOR)
    for name, value in given.items():
        field = known.get(name)
        if field is None or value is None:
            continue
        if field.message_type is not None:
            _fill_messages(message, field, value, depth)
        elif field.is_repeated:
            getattr(message, field.name).extend(_scalar(field, item) for item in _items(value))
        else:
            setattr(message, field.name, _scalar(field, value))


def _fill_messages(message: Message, field: FieldDescriptor, value: Any, depth: int) -> None:
    inner = getattr(message, field.name)
    if field.is_repeated:
        for item in _items(value):
            _fill(inner.add(), item, depth - 1)
    else:
        inner.SetInParent()
        _fill(inner, value, depth - 1)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Invalid
    return value


@cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    """Return the fields of a message by both of their names."""
    return {name: field for field in descriptor.fields for name in (field.name, field.json_name)}


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return _text(field, value)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field.enum_type, value)
    if kind in _WHOLE:
        return _whole(value, *_WHOLE[kind])
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            raise _Invalid
        return value
    return _float(value)


def _text(field: FieldDescriptor, value: Any) -> str | bytes:
    if not isinstance(value, str):
        raise _Invalid
    if field.type == FieldDescriptor.TYPE_STRING:
        return value
    try:
        return bytes.fromhex(value) if field.name in _IDS else base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise _Invalid from None


def _whole(value: Any, lowest: int, above: int) -> int:
    """Return an integer, which proto3's JSON writes as a string where it has 64 bits."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            raise _Invalid from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value < above:
        raise _Invalid
    return value


def _enum(kind: EnumDescriptor, value: Any) -> int:
    if isinstance(value, str) and value in kind.values_by_name:
        return int(kind.values_by_name[value].number)
    return _whole(value, *_WHOLE[FieldDescriptor.CPPTYPE_INT32])


def _float(value: Any) -> float:
    if isinstance(value, str) and len(value) <= 40:
        try:
            return float(value)
        except ValueError:
            raise _Invalid from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Invalid
    return float(value)
