"""Records of the spans in a file, whichever dialect wrote them."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragtrace.batch.rows import json_text
from ragtrace.errors import InputError
from ragtrace.ingest.base import RawSpan
from ragtrace.ingest.reading import read_trace
from ragtrace.model.codec import record_to_json
from ragtrace.text import valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ragtrace.batch.readers import PlacedRow

    Records = Callable[[Iterable[PlacedRow], Callable[[str], None]], Iterator[Mapping[str, Any]]]

_MOST_NS = 2**63


def records_by(read: Callable[[Mapping[str, Any]], Iterable[RawSpan]]) -> Records:
    """Return what turns the rows of a file into records, by the spans that `read` gives of a row.

    An InputError of it is told with the row's place; the row's spans before it count.
    """

    def records(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
        return records_of(span for place, row in rows for span in spans(place, row, broken))

    def spans(place: str, row: Mapping[str, Any], broken: Callable[[str], None]) -> Iterator[RawSpan]:
        try:
            yield from read(row)
        except InputError as error:
            broken(f"{place}: {error}")

    return records


def records_of(spans: Iterable[RawSpan]) -> Iterator[dict[str, object]]:
    """Yield the records of spans, trace by trace in the order of their first spans.

    The spans are taken for whole traces. Of a trace whose other spans lie in another file, both files give a record
    of what they have.
    """
    traces: defaultdict[bytes, list[RawSpan]] = defaultdict(list)
    for raw in spans:
        traces[raw.span.trace_id].append(raw)
    for trace in traces.values():
        for run in read_trace(trace):
            yield record_to_json(run.record)


def raw_span(
    trace_id: str,
    span_id: str,
    parent_id: str | None,
    attributes: Mapping[str, Any],
    *,
    name: str = "",
    started: object = None,
    ended: object = None,
    is_error: bool = False,
) -> RawSpan:
    """Build a span from a row of an export.

    Args:
        trace_id: hexadecimal, with or without dashes; another text is hashed.
        span_id: in the same way.
        parent_id: None or "" for the root.
        attributes: nested lists and objects are flattened with dots, as OpenInference does.
        name: of the operation.
        started: a time, or a text of ISO 8601.
        ended: in the same way.
        is_error: whether its status is an error.

    Example:
        >>> raw = raw_span("t", "s", None, {"retrieval.documents": [{"document.content": "Oslo."}]})
        >>> raw.span.attributes[0].key, len(raw.span.trace_id)
        ('retrieval.documents.0.document.content', 16)
    """
    return RawSpan(
        Span(
            trace_id=_identity(trace_id, 16),
            span_id=_identity(span_id, 8),
            parent_span_id=_identity(parent_id, 8) if parent_id else b"",
            name=name,
            start_time_unix_nano=_nanoseconds(started),
            end_time_unix_nano=_nanoseconds(ended),
            attributes=[KeyValue(key=key, value=_any(value)) for key, value in _flat("", attributes)],
            status=Status(code=Status.STATUS_CODE_ERROR if is_error else Status.STATUS_CODE_UNSET),
        ),
        Resource(),
    )


def _identity(text: str, size: int) -> bytes:
    try:
        given = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        given = b""
    return given if len(given) == size else sha256(text.encode()).digest()[:size]


def _nanoseconds(value: object) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    found = int(value.timestamp() * 1e9) if isinstance(value, datetime) else 0
    return found if 0 <= found < _MOST_NS else 0


def _flat(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, item in enumerate(value):
            yield from _flat(f"{prefix}.{place}", item)
    elif value is not None:
        yield prefix, value


def _any(value: object) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and abs(value) < _MOST_NS:
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    text = value if isinstance(value, str) else json_text(value)
    return AnyValue(string_value=valid(text))
