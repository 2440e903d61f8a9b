"""Received spans and logs, and the protocol of whatever takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ragtrace import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


class RawSpan(NamedTuple):
    """One received span as OTLP's protobuf message, with its resource and the name of its scope.

    Spans of one request share their `resource` object. Attributes are read when the trace is complete.
    """

    span: Span
    resource: Resource
    scope: str = ""


class RawLog(NamedTuple):
    """One received log record, with its resource and the name of its scope."""

    record: LogRecord
    resource: Resource
    scope: str = ""


class Intake(Protocol):
    """Takes what a receiver decoded. Any thread may call it; no method waits for a network or a judge."""

    def is_wanted(self, trace_id: bytes) -> bool:
        """Say by the trace id alone whether a trace may be drawn; called before a span's attributes are parsed."""
        ...

    def retry_after_s(self) -> float | None:
        """Return the seconds after which a sender may try again, None while there is room."""
        ...

    def put_spans(self, spans: Sequence[RawSpan], *, skipped_roots: int, rejected: int = 0) -> int:
        """Take the spans of one request, or of a part of it; return how many were rejected by their contents.

        Args:
            spans: those whose trace id is wanted.
            skipped_roots: root spans that were left out by their trace id.
            rejected: spans that the receiver itself rejected: without valid ids, or too large.
        """
        ...

    def put_logs(self, logs: Sequence[RawLog]) -> Sequence[str]:
        """Take the log records of one request that are evaluation results; return why each rejected one is."""
        ...


def is_own_evaluation(raw: RawSpan) -> bool:
    """Say whether a span is an evaluation that ragtrace wrote; it belongs to no run."""
    return raw.scope == semconv.SCOPE and raw.span.name.startswith(semconv.SPAN_EVALUATION)
