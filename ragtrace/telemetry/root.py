"""The root span of a run: begun with the run, so that its ids are known; ended once, with the run's own time."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from ragtrace import semconv
from ragtrace.telemetry.wire import clean_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.trace import Span, Tracer


OPENING_BYTES = 256  # of the attributes that a root is opened with, and that are not written again


class Root:
    """A started root span and what is known of its trace.

    Attributes:
        span: the span; ended through `end` alone.
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        context: an OpenTelemetry context with the root as its span, the explicit parent of all children.
        is_recording: whether the span is recorded and sampled, and so will be exported.
        workflow: the name it was opened with.
        linked: span contexts of the retrieval and model spans, for the links of the evaluation span.
        data_source: name of the first data source that was searched.
        response_id: the id of the last model response.
        ended_ns: Unix ns at which the run ended; None before.
    """

    __slots__ = (
        "context", "data_source", "ended_ns", "is_recording", "linked",
        "response_id", "span", "span_id", "trace_id", "workflow",
    )  # fmt: skip

    def __init__(self, span: Span, identity: SpanContext, workflow: str) -> None:
        self.span = span
        self.trace_id = trace.format_trace_id(identity.trace_id)
        self.span_id = trace.format_span_id(identity.span_id)
        self.context = trace.set_span_in_context(span, Context())
        self.is_recording = span.is_recording() and identity.trace_flags.sampled
        self.workflow = workflow
        self.linked: Sequence[SpanContext] = ()
        self.data_source: str | None = None
        self.response_id: str | None = None
        self.ended_ns: int | None = None

    def end(self, ended_ns: int) -> None:
        """End the span at a Unix time in ns; a second call does nothing."""
        if self.ended_ns is None:
            self.ended_ns = ended_ns
            self.span.end(ended_ns)


def open_root(tracer: Tracer, workflow: str, started_ns: int) -> Root:
    """Start the root span of a run as a child of whatever span is current in this moment.

    The context is read once and nothing is ever attached to it. A tracer that makes no spans of its own (a
    no-op) gives a root with made-up ids, so that records have an identity.
    """
    ambient = get_current()
    name = clean_value(workflow)
    span = tracer.start_span(
        f"{semconv.SPAN_WORKFLOW} {name}" if name else semconv.SPAN_WORKFLOW,
        context=ambient,
        kind=SpanKind.INTERNAL,
        attributes={
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_WORKFLOW,
            semconv.GEN_AI_WORKFLOW_NAME: name,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
        },
        start_time=started_ns,
    )
    return Root(span, _identity(span, trace.get_current_span(ambient)), workflow)


def _identity(span: Span, ambient: Span) -> SpanContext:
    given, outer = span.get_span_context(), ambient.get_span_context()
    # A no-op tracer hands the parent's own context back: two runs under it would share one identity.
    if given.is_valid and given.span_id != outer.span_id:
        return given
    return SpanContext(
        trace_id=given.trace_id if given.is_valid else secrets.randbits(128) or 1,
        span_id=secrets.randbits(64) or 1,
        is_remote=False,
    )


def remote_context(trace_id: str, span_id: str, *, is_sampled: bool) -> Context:
    """Return a context whose span is a finished one, known by its ids alone; empty for ids that are none.

    Example:
        >>> bool(remote_context("", "", is_sampled=True))
        False
    """
    found = span_context(trace_id, span_id, is_sampled=is_sampled)
    return Context() if found is None else trace.set_span_in_context(NonRecordingSpan(found), Context())


def span_context(trace_id: str, span_id: str, *, is_sampled: bool) -> SpanContext | None:
    """Return the span context of hex ids, None for ids that are none.

    Example:
        >>> span_context("0" * 31 + "1", "0" * 15 + "2", is_sampled=True).span_id
        2
    """
    try:
        numbers = int(trace_id, 16), int(span_id, 16)
    except ValueError:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)
    found = SpanContext(trace_id=numbers[0], span_id=numbers[1], is_remote=False, trace_flags=flags)
    return found if found.is_valid else None
