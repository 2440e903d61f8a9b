"""Serialized spans of open and closed traces.

A parsed span takes many times its bytes, so a trace holds the bytes of its own spans alone.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, overload

from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawSpan
from ragtrace.ingest.nested import NESTED_BYTES, Malformed, TooMany, count_nested

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

# Of the Python objects around one of them; measured with and without spans of no bytes.
SPAN_OVERHEAD_BYTES = 320
TRACE_OVERHEAD_BYTES = 800
PLACE_OVERHEAD_BYTES = 260  # of a span within a closed trace
TOKEN_OVERHEAD_BYTES = 120
DIGEST_OVERHEAD_BYTES = 260
_ORIGIN_OVERHEAD_BYTES = 300
_MOST_NESTED = 500_000  # messages in the spans of one trace that is read; as plain values they take up to 100 MB
# A zlib level: passages repeat in retriever, prompt and root, so that a trace shrinks to about 1/4.
_FASTEST = 1


class Origin(NamedTuple):
    """Serialized resource of spans, and the name of their scope."""

    resource: bytes
    scope: str

    @property
    def size_bytes(self) -> int:
        """Approximate memory, as bytes and, where it is more, parsed: a trace's resources are parsed together."""
        try:
            nested = count_nested(self.resource, "resource", _MOST_NESTED)
        except (TooMany, Malformed, IndexError):
            nested = _MOST_NESTED
        return len(self.resource) + sys.getsizeof(self.scope) + nested * NESTED_BYTES + _ORIGIN_OVERHEAD_BYTES


class StoredSpan(NamedTuple):
    """One span as bytes; spans share their origin."""

    span_id: bytes
    span: bytes
    origin: Origin


@dataclass(slots=True)
class OpenTrace:
    """A trace that still takes spans; times are seconds of the assembler's clock.

    Attributes:
        before: its spans at its first end, compressed.
        size_bytes: of all its spans and origins, each as if no other trace had it.
        held_bytes: what it takes itself; the assembler counts origins, which traces share.
    """

    first_s: float
    last_s: float
    has_root: bool = False
    spans: dict[bytes, StoredSpan] = field(default_factory=dict)
    origins: set[Origin] = field(default_factory=set)
    tokens: dict[Hashable, None] = field(default_factory=dict)
    before: ClosedTrace | None = None
    size_bytes: int = TRACE_OVERHEAD_BYTES
    held_bytes: int = TRACE_OVERHEAD_BYTES

    def is_known(self, span_id: bytes) -> bool:
        """Return whether the trace has this span."""
        return span_id in self.spans or (self.before is not None and span_id in self.before.places)


class ClosedTrace(NamedTuple):
    """A closed trace that late spans may change, with its spans compressed.

    Attributes:
        places: by the ids of its spans, in order: the size of each, and its origin.
        full_bytes: of its spans and origins, as an open trace counts them.
        size_bytes: approximate memory.
    """

    blob: bytes
    places: Mapping[bytes, tuple[int, Origin]]
    has_root: bool
    digests: Mapping[str, str]
    full_bytes: int
    size_bytes: int

    def reopened(self, now: float) -> OpenTrace:
        """Return the open trace of the next revision; its spans stay compressed."""
        held = TRACE_OVERHEAD_BYTES + self.size_bytes
        return OpenTrace(now, now, has_root=self.has_root, before=self, size_bytes=self.full_bytes, held_bytes=held)

    def spans(self) -> list[StoredSpan]:
        """Return its spans as they were."""
        text, at, found = zlib.decompress(self.blob), 0, []
        for span_id, (size, origin) in self.places.items():
            found.append(StoredSpan(span_id, text[at : at + size], origin))
            at += size
        return found


def closed_trace(spans: Sequence[StoredSpan], digests: Mapping[str, str], *, has_root: bool) -> ClosedTrace:
    """Compress the spans of a closed trace.

    Example:
        >>> closed = closed_trace([StoredSpan(b"1" * 8, b"text" * 100, Origin(b"", ""))], {}, has_root=True)
        >>> closed.size_bytes < 2_000, [stored.span_id for stored in closed.spans()]
        (True, [b'11111111'])
    """
    blob = zlib.compress(b"".join(stored.span for stored in spans), _FASTEST)
    origins = sum(origin.size_bytes for origin in {stored.origin for stored in spans})
    around = TRACE_OVERHEAD_BYTES + origins
    return ClosedTrace(
        blob=blob,
        places={stored.span_id: (len(stored.span), stored.origin) for stored in spans},
        has_root=has_root,
        digests=digests,
        full_bytes=around + sum(len(stored.span) + SPAN_OVERHEAD_BYTES for stored in spans),
        size_bytes=around + len(blob) + PLACE_OVERHEAD_BYTES * len(spans) + DIGEST_OVERHEAD_BYTES * len(digests),
    )


class ParsedSpans(Sequence[RawSpan]):
    """Stored spans that are parsed each time they are asked for, so that one at a time takes memory.

    Spans of one resource share its message. A span is not among them when the trace would have too many messages
    within its spans.

    Example:
        >>> stored = StoredSpan(b"1" * 8, Span(name="chat").SerializeToString(), Origin(b"", "lib"))
        >>> ParsedSpans([stored])[0].span.name
        'chat'
    """

    def __init__(self, spans: Iterable[StoredSpan]) -> None:
        self._spans = _readable(list(spans))
        self._resources: dict[Origin, Resource] = {}

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, at: int) -> RawSpan: ...
    @overload
    def __getitem__(self, at: slice) -> list[RawSpan]: ...
    def __getitem__(self, at: int | slice) -> RawSpan | list[RawSpan]:
        """Parse one span, or some."""
        if isinstance(at, slice):
            return [self._parsed(stored) for stored in self._spans[at]]
        return self._parsed(self._spans[at])

    def _parsed(self, stored: StoredSpan) -> RawSpan:
        origin = stored.origin
        resource = self._resources.get(origin)
        if resource is None:
            resource = self._resources[origin] = Resource.FromString(origin.resource)
        return RawSpan(Span.FromString(stored.span), resource, origin.scope)


def _readable(spans: list[StoredSpan]) -> list[StoredSpan]:
    if sum(len(stored.span) for stored in spans) <= 2 * _MOST_NESTED:  # a message takes two bytes at least
        return spans
    left, found = _MOST_NESTED, []
    for stored in spans:
        try:
            left -= count_nested(stored.span, "span", left)
        except (TooMany, Malformed, IndexError):
            continue
        found.append(stored)
    return found
