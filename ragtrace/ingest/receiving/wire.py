"""Spans and log records of an OTLP request, found without parsing what is not wanted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawLog, RawSpan
from ragtrace.ingest.receiving.refusal import ReceiverRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.ingest.receiving.options import ReceiverLimits

Place: TypeAlias = tuple[int, int]  # start and end of a message within a body

_FIRST, _SECOND = 10, 18  # tags of fields 1 and 2 with a length
_TRACE_ID, _SPAN_ID = b"\x0a\x10", b"\x12\x08"
_TRACE_STATE, _PARENT = 0x1A, 0x22
_NO_TRACE = bytes(16)
_PORTION_BYTES = 4 * 2**20
_MOST_OTHERS = 1_000  # fields that OTLP has not, in one message: a body of them alone would take seconds to walk


class Spans(NamedTuple):
    """Spans of one request or a portion of it: the wanted ones, and counts of skipped roots and rejected spans."""

    wanted: list[RawSpan]
    skipped_roots: int = 0
    rejected: int = 0


class Logs(NamedTuple):
    """Log records of one request that are evaluation results."""

    wanted: list[RawLog]
    rejected: int = 0


class Malformed(Exception):
    """A length or tag leads out of the message."""


def varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it.

    Raises:
        Malformed: it takes more than 10 bytes, or leads past the end.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise Malformed


def fields(body: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield tag, start and end of each field that has a length; other fields are passed over.

    Raises:
        Malformed: a tag or a length is broken.
    """
    others = 0
    while at < end:
        tag, start = varint(body, at, end)
        if tag & 7 == 2 and tag > 8:
            size, start = varint(body, start, end)
            at = start + size
            if at > end:
                raise Malformed
            yield tag, start, at
            continue
        at = _after(body, at, end)
        others += 1
        if others > _MOST_OTHERS:
            raise Malformed


def _after(body: bytes, at: int, end: int) -> int:
    """Return the place after a field of any kind."""
    tag, at = varint(body, at, end)
    kind = tag & 7
    if tag < 8:
        raise Malformed
    if kind in {0, 2}:
        size, at = varint(body, at, end)
        at += size if kind == 2 else 0
    else:
        at += {1: 8, 5: 4}.get(kind, end + 1)  # groups, which OTLP has never had, are malformed
    if at > end:
        raise Malformed
    return at


class _Walk:
    """Walk over the resources and scopes of a request, two levels above its spans or log records."""

    def __init__(self, body: bytes, limits: ReceiverLimits) -> None:
        self._body = body
        self._limits = limits
        self._left = limits.items

    def _scopes(self) -> Iterator[tuple[_Resource, Place]]:
        for place in self._split(0, len(self._body))[0]:
            heads, scopes = self._split(*place)
            resource = _Resource(self._body, heads, self._limits.span_bytes)
            for scope in scopes:
                yield resource, scope

    def _split(self, start: int, end: int) -> tuple[list[Place], list[Place]]:
        """Return the places of fields 1 and of fields 2."""
        heads: list[Place] = []
        items: list[Place] = []
        for tag, first, last in fields(self._body, start, end):
            if tag == _SECOND:
                items.append((first, last))
            elif tag == _FIRST:
                heads.append((first, last))
            self._count(1)
        return heads, items

    def _count(self, items: int) -> None:
        self._left -= items
        if self._left < 0:
            raise ReceiverRefusal(
                "too_large", f"more than {self._limits.items} items in one request; send smaller batches"
            )


class _Resource:
    """The resource of some spans, parsed when one of them is wanted."""

    def __init__(self, body: bytes, places: list[Place], most: int) -> None:
        self._body = body
        self._places = places
        self._most = most

    @property
    def size(self) -> int:
        return sum(end - start for start, end in self._places)

    @cached_property
    def parsed(self) -> Resource:
        parsed: Resource = Resource.FromString(_joined(self._body, self._places, self._most))
        return parsed


def _joined(body: bytes, places: list[Place], most: int) -> bytes:
    """Return the bytes of a field; protobuf merges one that comes twice, as if its bytes were joined."""
    joined = b"".join(body[start:end] for start, end in places)
    if len(joined) > most:
        raise ReceiverRefusal("too_large", f"a resource or a scope is larger than {most} bytes")
    return joined


def read_spans(body: bytes, limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]) -> Spans:
    """Return the wanted spans of an ``ExportTraceServiceRequest``.

    Raises:
        ReceiverRefusal: the message is malformed or has too many items.
    """
    portions = list(span_portions(body, limits, is_wanted))
    wanted = [raw for portion in portions for raw in portion.wanted]
    return portions[-1]._replace(wanted=wanted)  # the last one has the counts


def span_portions(body: bytes, limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]) -> Iterator[Spans]:
    """Yield the wanted spans of an ``ExportTraceServiceRequest``, in portions that are let go one by one.

    The whole request is walked before its first span is parsed. Tiny nested messages take 28 times their bytes when
    they are parsed, so a portion bounds the memory of a hostile request.

    Raises:
        ReceiverRefusal: the message is malformed or has too many items.
    """
    walk = _SpanWalk(body, limits, is_wanted)
    try:
        yield from walk.portions()
    except (Malformed, DecodeError, IndexError):
        raise ReceiverRefusal("malformed", "the body is not a valid ExportTraceServiceRequest") from None


class _SpanWalk(_Walk):
    def __init__(self, body: bytes, limits: ReceiverLimits, is_wanted: Callable[[bytes], bool]) -> None:
        super().__init__(body, limits)
        self._is_wanted = is_wanted
        self._known: dict[bytes, bool] = {}
        self._roots = self._rejected = 0

    def portions(self) -> Iterator[Spans]:
        scopes = [(resource, *self._wanted(*scope)) for resource, scope in self._scopes()]
        found: list[RawSpan] = []
        size = 0
        for resource, heads, places in scopes:
            if not places:
                continue
            name = InstrumentationScope.FromString(_joined(self._body, heads, self._limits.span_bytes)).name
            size += resource.size
            for start, end in places:
                if (span := self._parsed(start, end)) is None:
                    continue
                found.append(RawSpan(span, resource.parsed, name))
                size += end - start
                if size > _PORTION_BYTES:
                    yield Spans(found)
                    found, size = [], 0
        yield Spans(found, self._roots, self._rejected)

    def _wanted(self, at: int, end: int) -> tuple[list[Place], list[Place]]:
        """Return the places of a scope's head and of its wanted spans, as `_split` would, inlined for speed."""
        body, known = self._body, self._known
        heads: list[Place] = []
        wanted: list[Place] = []
        fields_seen = roots = 0
        left = self._left
        while at < end:
            tag, size, start = body[at], body[at + 1], at + 2
            fields_seen += 1
            if fields_seen > left:
                break
            if tag not in {_FIRST, _SECOND}:
                at = _after(body, at, end)
                continue
            if size >= 0x80:
                more = body[start]
                size, start = (size + (more << 7) - 0x80, start + 1) if more < 0x80 else varint(body, at + 1, end)
            at = start + size
            if at > end:
                raise Malformed
            if tag == _FIRST:
                heads.append((start, at))
            elif size < 30 or body[start : start + 2] != _TRACE_ID:
                wanted.append((start, at))  # parsed to see its id
            else:
                trace_id = body[start + 2 : start + 18]
                verdict = known.get(trace_id)
                if verdict or (verdict is None and self._asked(trace_id)):
                    wanted.append((start, at))
                elif body[start + 28] != _PARENT or body[start + 19] != 8:
                    roots += self._is_root(start, at)
        self._count(fields_seen)
        self._roots += roots
        return heads, wanted

    def _asked(self, trace_id: bytes) -> bool:
        """Ask once for each trace; an invalid id is let through, and rejected when its span is parsed."""
        verdict = trace_id == _NO_TRACE or self._is_wanted(trace_id)
        self._known[trace_id] = verdict
        return verdict

    def _parsed(self, start: int, end: int) -> Span | None:
        """Parse a span; one whose id was not where it is looked for may turn out to be unwanted here."""
        if end - start > self._limits.span_bytes:
            self._rejected += 1
            return None
        span: Span = Span.FromString(self._body[start:end])
        if len(span.trace_id) != 16 or span.trace_id == _NO_TRACE or len(span.span_id) != 8:
            self._rejected += 1
        elif self._known.get(span.trace_id) or self._asked(span.trace_id):
            return span
        else:
            self._roots += not span.parent_span_id
        return None

    def _is_root(self, start: int, end: int) -> bool:
        """Say whether a skipped span has no parent, from the order in which every known sender writes."""
        body, at = self._body, start + 28
        if body[start + 18 : start + 20] != _SPAN_ID or at > end:
            return False
        if at < end and body[at] == _TRACE_STATE:
            size, at = varint(body, at + 1, end)
            at += size
        return at >= end or body[at] != _PARENT or body[at + 1 : at + 2] == b"\0"


def read_logs(body: bytes, limits: ReceiverLimits, name: bytes) -> Logs:
    """Return the log records of an ``ExportLogsServiceRequest`` that are events of this name.

    Raises:
        ReceiverRefusal: the message is malformed or has too many items.
    """
    try:
        return _LogWalk(body, limits).run(name)
    except (Malformed, DecodeError, IndexError):
        raise ReceiverRefusal("malformed", "the body is not a valid ExportLogsServiceRequest") from None


class _LogWalk(_Walk):
    def run(self, name: bytes) -> Logs:
        body, text = self._body, name.decode()
        found: list[RawLog] = []
        rejected = 0
        for resource, scope in self._scopes():
            heads, places = self._split(*scope)
            for start, end in places:
                if body.find(name, start, end) < 0:
                    continue
                if end - start > self._limits.span_bytes:
                    rejected += 1
                    continue
                record = LogRecord.FromString(body[start:end])
                if _is_event(record, text):
                    head = InstrumentationScope.FromString(_joined(body, heads, self._limits.span_bytes))
                    found.append(RawLog(record, resource.parsed, head.name))
        return Logs(found, rejected)


def _is_event(record: LogRecord, name: str) -> bool:
    """Say whether a log record is an event; before OTLP 1.5 its name was an attribute."""
    return record.event_name == name or any(pair.value.string_value == name for pair in record.attributes)
