"""Serialized spans of open and closed traces.

A parsed span keeps the memory of its whole request alive, so a trace holds the bytes of its own spans alone.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawSpan

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

SPAN_OVERHEAD_BYTES = 320  # of the Python objects around one span; measured
# A zlib level: passages repeat in retriever, prompt and root, so that a trace shrinks to about 1/4.
_FASTEST = 1


class StoredSpan(NamedTuple):
    """One span as bytes; the spans of a trace share the bytes of their resource."""

    span_id: bytes
    span: bytes
    resource: bytes
    scope: str


@dataclass(slots=True)
class OpenTrace:
    """A trace that still takes spans; times are seconds of the assembler's clock."""

    first_s: float
    last_s: float
    revision: int = 0
    has_root: bool = False
    spans: dict[bytes, StoredSpan] = field(default_factory=dict)
    tokens: dict[Hashable, None] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    size_bytes: int = 0

    def add(self, stored: StoredSpan, *, is_root: bool, now: float) -> int:
        """Take a span and return the bytes that it costs."""
        cost = len(stored.span) + SPAN_OVERHEAD_BYTES
        self.spans[stored.span_id] = stored
        self.has_root |= is_root
        self.last_s = now
        self.size_bytes += cost
        return cost


class ClosedTrace(NamedTuple):
    """A closed trace that late spans may change, with its spans compressed."""

    blob: bytes
    places: tuple[tuple[bytes, int, bytes, str], ...]
    has_root: bool
    digests: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        """Approximate memory."""
        return len(self.blob) + 200 * len(self.places)

    def is_known(self, span_id: bytes) -> bool:
        """Return whether the trace had this span."""
        return any(span_id == place[0] for place in self.places)

    def reopened(self, now: float) -> OpenTrace:
        """Return the open trace of the next revision."""
        opened, text, at = OpenTrace(now, now, revision=1, digests=self.digests), zlib.decompress(self.blob), 0
        for span_id, size, resource, scope in self.places:
            opened.add(StoredSpan(span_id, text[at : at + size], resource, scope), is_root=self.has_root, now=now)
            at += size
        return opened


def closed_trace(spans: Sequence[StoredSpan], digests: Mapping[str, str], *, has_root: bool) -> ClosedTrace:
    """Compress the spans of a closed trace.

    Example:
        >>> closed = closed_trace([StoredSpan(b"1" * 8, b"text" * 100, b"", "")], {}, has_root=True)
        >>> closed.size_bytes < 400, list(closed.reopened(0.0).spans)
        (True, [b'11111111'])
    """
    return ClosedTrace(
        blob=zlib.compress(b"".join(stored.span for stored in spans), _FASTEST),
        places=tuple((stored.span_id, len(stored.span), stored.resource, stored.scope) for stored in spans),
        has_root=has_root,
        digests=digests,
    )


def parsed(spans: Iterable[StoredSpan]) -> list[RawSpan]:
    """Return stored spans as protobuf messages; spans of one resource share its message.

    Example:
        >>> stored = StoredSpan(b"1" * 8, Span(name="chat").SerializeToString(), b"", "lib")
        >>> parsed([stored])[0].span.name
        'chat'
    """
    resources: dict[bytes, Resource] = {}
    found = []
    for stored in spans:
        resource = resources.get(stored.resource)
        if resource is None:
            resource = resources[stored.resource] = Resource.FromString(stored.resource)
        found.append(RawSpan(Span.FromString(stored.span), resource, stored.scope))
    return found
