"""Assemble the spans of traces, and tell when a trace is complete."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.ingest.assembly.kept import (
    SPAN_OVERHEAD_BYTES,
    TOKEN_OVERHEAD_BYTES,
    ClosedTrace,
    OpenTrace,
    Origin,
    ParsedSpans,
    StoredSpan,
    closed_trace,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from ragtrace.ingest.base import RawSpan

TraceEnd = Literal["complete", "no_root", "evicted", "shutdown"]
_HAS_REMOTE_PARENT = 0x300  # SpanFlags: whether the parent is remote is known, and it is
_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8
_ID_BYTES = 160  # of a closed trace's id; 100 were measured
_GIVEN_UP_BYTES = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyLimits:
    """Bounds of an assembler; times are seconds.

    Attributes:
        settle_s: from the last span of a trace whose root was seen to its close.
        longest_s: from the first span of a trace to its close, whatever is missing or still comes.
        late_s: for which late spans may change a closed trace.
        traces: most open ones.
        size_bytes: most memory of all that is held, the Python objects included: open traces with their resources
            and scopes, closed ones, which go first, and ids.
        trace_bytes: most memory of one trace; further spans of it are left out.
        kept_bytes: most memory of closed traces that late spans may change, compressed.
        remembered: most ids of closed traces, so that their late spans open no second one.
    """

    settle_s: float = 10.0
    longest_s: float = 300.0
    late_s: float = 900.0
    traces: int = 20_000
    size_bytes: int = 67_108_864
    trace_bytes: int = 16_777_216
    kept_bytes: int = 16_777_216
    remembered: int = 100_000


@dataclass(slots=True)
class _Shared:
    """An origin, and how many open traces have it."""

    origin: Origin
    size_bytes: int
    traces: int = 0


class Taken(NamedTuple):
    """The outcome of one put.

    Attributes:
        rejected: spans without valid ids.
        holders: open traces that hold the put's token since this put; each gives it back once.
    """

    rejected: int
    holders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledTrace:
    """A trace that takes no more spans, or one that was given up and has none.

    Attributes:
        trace_id: 16 bytes.
        end: ``complete``; ``no_root`` after the longest wait; ``evicted`` and ``shutdown`` have no spans.
        tokens: of the puts that it had spans of.
        revision: 1 for a trace that late spans changed.
        digests: of a revision, what `Assembler.keep` was given for the trace before.
    """

    trace_id: bytes
    end: TraceEnd
    tokens: tuple[Hashable, ...] = ()
    revision: int = 0
    digests: Mapping[str, str] = field(default_factory=dict)
    stored: tuple[StoredSpan, ...] = field(default=(), repr=False)
    before: ClosedTrace | None = field(default=None, repr=False)

    @property
    def spans(self) -> Sequence[RawSpan]:
        """Its spans; each is parsed when it is asked for."""
        return ParsedSpans(self.all_stored()) if self.stored or self.before else []

    @property
    def size(self) -> int:
        """Number of its spans; those that are too large to be read are not in `spans`."""
        return len(self.stored) + (len(self.before.places) if self.before is not None else 0)

    def all_stored(self) -> list[StoredSpan]:
        """Return its spans as bytes, those of before first."""
        return [*(self.before.spans() if self.before is not None else ()), *self.stored]


class Assembler:
    """Holds the spans of open traces within bounds. Thread-safe; it has no thread and waits for nothing.

    A trace is complete when its root was seen and no span came for the settle time. A span whose parent is remote
    counts as root too, since that parent may report elsewhere. Late spans open the trace again as revision 1, if
    `keep` was called for it; it closes like any other, and further spans are ``late``.

    A put of a full assembler gives up the oldest open traces. `fill` tells before, so that senders can wait.

    Args:
        limits: its bounds.
        clock: seconds; of `put`, and of `due` without an argument.

    Attributes:
        limits: its bounds.

    Example:
        >>> from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        >>> from opentelemetry.proto.trace.v1.trace_pb2 import Span
        >>> from ragtrace.ingest.base import RawSpan
        >>> assembler = Assembler(clock=lambda: 0.0)
        >>> root = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="chain")
        >>> assembler.put([RawSpan(root, Resource())], token=7)
        Taken(rejected=0, holders=1)
        >>> [(trace.end, trace.tokens, trace.spans[0].span.name) for trace in assembler.due(10.0)]
        [('complete', (7,), 'chain')]
    """

    def __init__(
        self, limits: AssemblyLimits | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits or AssemblyLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[bytes, OpenTrace] = {}  # by first span
        self._closed: dict[bytes, float] = {}  # when, the first first
        self._kept: OrderedDict[bytes, ClosedTrace] = OrderedDict()
        self._origins: dict[Origin, _Shared] = {}  # of open traces
        self._given_up: list[AssembledTrace] = []
        self._open_bytes = self._kept_bytes = self._origin_bytes = 0
        self._counts: Counter[str] = Counter()

    @property
    def fill(self) -> float:
        """Share of the bounds that open traces use; 1 and above is full. Closed ones make room for them."""
        room = max(self.limits.size_bytes - self._id_bytes, 1)
        return max(len(self._open) / self.limits.traces, (self._open_bytes + self._origin_bytes) / room)

    @property
    def open_traces(self) -> int:
        """Number of traces that take spans."""
        return len(self._open)

    @property
    def rootless_traces(self) -> int:
        """Number of traces that are complete but for their root, which has not come within the settle time."""
        with self._lock:
            since_s = self._clock() - self.limits.settle_s
            return sum(not trace.has_root and trace.last_s <= since_s for trace in self._open.values())

    def take_counts(self) -> Counter[str]:
        """Return the numbers since the last call.

        They are of spans: ``duplicate``, ``late``, ``oversized`` (left out of a trace that is too large),
        ``invalid``; and of traces: ``evicted``, ``no_root``.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    def count(self, reason: Literal["invalid", "oversized"], spans: int) -> None:
        """Count spans that were rejected before they came here, or left out when their trace was read."""
        with self._lock:
            self._counts[reason] += spans

    def put(self, spans: Sequence[RawSpan], token: Hashable = None) -> Taken:
        """Take spans of any traces, and remember the token for each trace that takes one of them."""
        resources: dict[int, bytes] = {}
        rejected = holders = 0
        with self._lock:
            now = self._clock()
            for raw in spans:
                span = raw.span
                if not _is_valid(span):
                    rejected += 1
                    continue
                trace = self._trace_of(span, now)
                if trace is None:
                    continue
                resource = resources.get(id(raw.resource))
                if resource is None:
                    resource = resources[id(raw.resource)] = raw.resource.SerializeToString()
                self._add(trace, raw, Origin(resource, raw.scope), now)
                if token is not None and token not in trace.tokens:
                    trace.tokens[token] = None
                    trace.held_bytes += TOKEN_OVERHEAD_BYTES
                    self._open_bytes += TOKEN_OVERHEAD_BYTES
                    holders += 1
                self._make_room(now)
            self._counts["invalid"] += rejected
        return Taken(rejected, holders)

    def due(
        self, now: float | None = None, *, is_ending: bool = False, most: int | None = None
    ) -> list[AssembledTrace]:
        """Return the traces that are complete or were given up; each is returned once.

        Args:
            now: seconds of the clock.
            is_ending: no more spans will come: traces with a root are complete at once, the others given up.
            most: complete traces to return, and no more of them than a trace may be large; the others stay within
                the bounds until the next call.
        """
        with self._lock:
            now = self._clock() if now is None else now
            found, self._given_up = self._given_up, []
            ends = (
                (trace_id, end, trace.size_bytes)
                for trace_id, trace in self._open.items()
                if (end := self._end_of(trace, now, is_ending=is_ending)) is not None
            )
            room = self.limits.trace_bytes
            chosen: list[tuple[bytes, TraceEnd]] = []
            for trace_id, end, size in islice(ends, most):
                if most is not None and chosen and size > room:
                    break
                room -= size
                chosen.append((trace_id, end))
            found += [self._close(trace_id, end, now) for trace_id, end in chosen]
            self._forget_old(now)
        return found

    def keep(self, trace: AssembledTrace, digests: Mapping[str, str]) -> None:
        """Keep a closed trace for late spans, with any texts that tell whether they changed it.

        A revision is not kept: there is one.
        """
        if trace.revision:
            return
        closed = closed_trace(trace.stored, digests, has_root=trace.end == "complete")
        with self._lock:
            if trace.trace_id in self._open or trace.trace_id not in self._closed:
                return
            self._kept[trace.trace_id] = closed
            self._kept_bytes += closed.size_bytes
            while self._kept and self._kept_bytes > self.limits.kept_bytes:
                self._unkeep(next(iter(self._kept)))
            self._make_room(self._clock())

    @property
    def _id_bytes(self) -> int:
        return _ID_BYTES * len(self._closed) + _GIVEN_UP_BYTES * len(self._given_up)

    @property
    def _held_bytes(self) -> int:
        return self._open_bytes + self._origin_bytes + self._kept_bytes + self._id_bytes

    def _trace_of(self, span: Span, now: float) -> OpenTrace | None:
        """Return the open trace of a span that it does not have, or None."""
        trace_id = span.trace_id
        trace = self._open.get(trace_id)
        kept = self._kept.get(trace_id)
        if (trace is not None and trace.is_known(span.span_id)) or (
            kept is not None and span.span_id in kept.places
        ):
            self._counts["duplicate"] += 1
            return None
        if trace is not None:
            return trace
        if kept is not None:
            self._unkeep(trace_id)
            trace = kept.reopened(now)
        elif trace_id in self._closed:
            self._counts["late"] += 1
            return None
        else:
            trace = OpenTrace(now, now)
        self._open_bytes += trace.held_bytes
        self._open[trace_id] = trace
        return trace

    def _add(self, trace: OpenTrace, raw: RawSpan, origin: Origin, now: float) -> None:
        span = raw.span
        trace.last_s = now
        shared = self._origins.get(origin) or _Shared(origin, origin.size_bytes)
        is_new = shared.origin not in trace.origins
        cost = span.ByteSize() + SPAN_OVERHEAD_BYTES
        size = trace.size_bytes + cost + is_new * shared.size_bytes
        if size > self.limits.trace_bytes:
            self._counts["oversized"] += 1
            return
        trace.has_root |= (
            not span.parent_span_id.strip(b"\0") or span.flags & _HAS_REMOTE_PARENT == _HAS_REMOTE_PARENT
        )
        trace.spans[span.span_id] = StoredSpan(span.span_id, span.SerializeToString(), shared.origin)
        trace.size_bytes = size
        trace.held_bytes += cost
        self._open_bytes += cost
        if is_new:
            trace.origins.add(shared.origin)
            if not shared.traces:
                self._origins[shared.origin] = shared
                self._origin_bytes += shared.size_bytes
            shared.traces += 1

    def _make_room(self, now: float) -> None:
        limits = self.limits
        while self._kept and self._held_bytes > limits.size_bytes:
            self._unkeep(next(iter(self._kept)))
        while self._open and (len(self._open) > limits.traces or self._held_bytes > limits.size_bytes):
            self._given_up.append(self._close(next(iter(self._open)), "evicted", now))

    def _end_of(self, trace: OpenTrace, now: float, *, is_ending: bool) -> TraceEnd | None:
        is_over = now - trace.first_s >= self.limits.longest_s
        if trace.has_root:
            is_settled = now - trace.last_s >= self.limits.settle_s
            return "complete" if is_settled or is_over or is_ending else None
        if is_over:
            return "no_root"
        return "shutdown" if is_ending else None

    def _close(self, trace_id: bytes, end: TraceEnd, now: float) -> AssembledTrace:
        trace = self._open.pop(trace_id)
        self._open_bytes -= trace.held_bytes
        for origin in trace.origins:
            shared = self._origins[origin]
            shared.traces -= 1
            if not shared.traces:
                del self._origins[origin]
                self._origin_bytes -= shared.size_bytes
        self._closed.pop(trace_id, None)
        self._closed[trace_id] = now
        if end != "complete":
            self._counts[end] += 1
        is_read = end in {"complete", "no_root"}
        return AssembledTrace(
            trace_id=trace_id,
            end=end,
            tokens=tuple(trace.tokens),
            revision=0 if trace.before is None else 1,
            digests={} if trace.before is None else trace.before.digests,
            stored=tuple(trace.spans.values()) if is_read else (),
            before=trace.before if is_read else None,
        )

    def _unkeep(self, trace_id: bytes) -> None:
        kept = self._kept.pop(trace_id, None)
        if kept is not None:
            self._kept_bytes -= kept.size_bytes

    def _forget_old(self, now: float) -> None:
        while self._closed:
            trace_id, closed_s = next(iter(self._closed.items()))
            if now - closed_s < self.limits.late_s and len(self._closed) <= self.limits.remembered:
                return
            del self._closed[trace_id]
            self._unkeep(trace_id)


def _is_valid(span: Span) -> bool:
    has_lengths = len(span.trace_id) == _TRACE_ID_BYTES and len(span.span_id) == _SPAN_ID_BYTES
    return has_lengths and bool(span.trace_id.strip(b"\0") and span.span_id.strip(b"\0"))
