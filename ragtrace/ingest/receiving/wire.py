"""Spans and log records of an OTLP request, found without parsing what is not wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawLog, RawSpan
from ragtrace.ingest.nested import Malformed, TooMany, after, count_nested, varint
from ragtrace.ingest.receiving.refusal import ReceiverRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.ingest.nested import Kind
    from ragtrace.ingest.receiving.options import ReceiverLimits

Place: TypeAlias = tuple[int, int]  # start and end of a message within a body

_FIRST, _SECOND = 10, 18  # tags of fields 1 and 2 with a length
_TRACE_ID, _SPAN_ID = b"\x0a\x10", b"\x12\x08"
_TRACE_STATE, _PARENT = 0x1A, 0x22
_NO_TRACE = bytes(16)
PORTION_BYTES = 2**20
_COUNTED_BYTES = 2**16  # of a resource whose nested messages are counted; a smaller one takes 3 MB at most
_MOST_OTHERS = 1_000  # fields that OTLP has not, in one message: a body of them alone would take seconds to walk


class Spans(NamedTuple):
    """Spans of one request or a portion of it: the wanted ones, and counts of skipped roots and rejected spans."""

    wanted: list[RawSpan]
    skipped_roots: int = 0
    rejected: int = 0


class Logs(NamedTuple):
    """Log records of one request or a portion of it that are evaluation results."""

    wanted: list[RawLog]
    rejected: int = 0


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
        at = after(body, at, end)
        others += 1
        if others > _MOST_OTHERS:
            raise Malformed


class _Walk:
    """Walk over the resources and scopes of a request, two levels above its spans or log records."""

    def __init__(self, body: bytes, limits: ReceiverLimits) -> None:
        self._body = body
        self._limits = limits
        self._left = limits.items
        self._left_nested = limits.nested

    def _scopes(self) -> Iterator[tuple[_Resource, Place]]:
        for place in self._split(0, len(self._body))[0]:
            heads, scopes = self._split(*place)
            resource = _Resource(self, heads)
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

    def joined(self, places: list[Place], kind: Kind) -> bytes:
        """Return the bytes of a field; protobuf merges one that comes twice, as if its bytes were joined."""
        most = self._limits.span_bytes
        joined = b"".join(self._body[start:end] for start, end in places)
        if len(joined) > most:
            raise ReceiverRefusal("too_large", f"a resource or a scope is larger than {most} bytes")
        return self.counted(joined, kind)

    def counted(self, message: bytes, kind: Kind) -> bytes:
        """Return a message that may be parsed: what is nested in such messages of a request is bounded.

        The few log records that are wanted are counted whatever their size, since they are read at once.
        """
        if len(message) > _COUNTED_BYTES or kind == "log":
            try:
                self._left_nested -= count_nested(message, kind, self._left_nested)
            except TooMany:
                raise ReceiverRefusal(
                    "too_large",
                    f"more than {self._limits.nested} nested values in the resources or logs of one request;"
                    " send smaller batches",
                ) from None
        return message

    def scope_name(self, places: list[Place]) -> str:
        """Return the name of a scope."""
        return str(InstrumentationScope.FromString(self.joined(places, "scope")).name)


class _Resource:
    """The resource of some spans, parsed when one of them is wanted, and kept by them alone."""

    def __init__(self, walk: _Walk, places: list[Place]) -> None:
        self._walk = walk
        self._places = places

    @property
    def size(self) -> int:
        return sum(end - start for start, end in self._places)

    def parsed(self) -> Resource:
        parsed: Resource = Resource.FromString(self._walk.joined(self._places, "resource"))
        return parsed


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

    The whole request is walked before its first span is parsed. Tiny nested messages take up to 44 times their
    bytes when they are parsed. So a portion holds 1 MiB or one larger span with its resource, and what is nested in
    larger resources is counted before it is parsed.

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
        held = parsed = None  # a resource, parsed for the scopes that follow one another
        for resource, heads, places in scopes:
            if not places:
                continue
            name = self.scope_name(heads)
            size += resource.size
            for start, end in places:
                if found and end - start > PORTION_BYTES:
                    yield Spans(found)
                    found, size = [], 0
                if (span := self._parsed(start, end)) is None:
                    continue
                if parsed is None or held is not resource:
                    held, parsed = resource, None  # the one before is let go first
                    parsed = resource.parsed()
                found.append(RawSpan(span, parsed, name))
                size += end - start
                if size > PORTION_BYTES:
                    del span
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
                at = after(body, at, end)
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


def log_portions(body: bytes, limits: ReceiverLimits, name: bytes) -> Iterator[Logs]:
    """Yield the log records of an ``ExportLogsServiceRequest`` that are events of this name, in portions.

    Raises:
        ReceiverRefusal: the message is malformed or has too many items.
    """
    try:
        yield from _LogWalk(body, limits).portions(name)
    except (Malformed, DecodeError, IndexError):
        raise ReceiverRefusal("malformed", "the body is not a valid ExportLogsServiceRequest") from None


class _LogWalk(_Walk):
    def portions(self, name: bytes) -> Iterator[Logs]:
        body, text = self._body, name.decode()
        found: list[RawLog] = []
        rejected = size = 0
        for resource, scope in self._scopes():
            heads, places = self._split(*scope)
            head = parsed = None
            for start, end in places:
                if body.find(name, start, end) < 0:
                    continue
                if end - start > self._limits.span_bytes:
                    rejected += 1
                    continue
                record = LogRecord.FromString(self.counted(body[start:end], "log"))
                if not _is_event(record, text):
                    continue
                if head is None or parsed is None:
                    head, parsed = self.scope_name(heads), resource.parsed()
                    size += resource.size
                found.append(RawLog(record, parsed, head))
                size += end - start
                if size > PORTION_BYTES:
                    yield Logs(found)
                    found, size = [], 0
        yield Logs(found, rejected)


def _is_event(record: LogRecord, name: str) -> bool:
    """Say whether a log record is an event; before OTLP 1.5 its name was an attribute."""
    return record.event_name == name or any(pair.value.string_value == name for pair in record.attributes)
