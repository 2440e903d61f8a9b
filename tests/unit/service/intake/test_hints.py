"""Lines about traces without scores name the instrumentation that made them."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawSpan
from ragtrace.ingest.reading import read_trace
from ragtrace.service.intake.hints import Hints


def test_openllmetry_without_texts_names_its_own_variable() -> None:
    given = {
        "traceloop.span.kind": "task",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": "[]",
    }
    pairs = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in given.items()]
    span = Span(trace_id=bytes(range(16)), span_id=b"12345678", attributes=pairs)
    (run,) = read_trace([RawSpan(span, Resource())])
    said: list[str] = []
    Hints(said.append).lacking(run)
    assert run.dialects == ("genai", "traceloop")
    assert said[0].endswith("In the application: unset TRACELOOP_TRACE_CONTENT")
