"""The SDK's span pipeline of a worker: spans go nowhere, into a list, or over OTLP to another process."""

from __future__ import annotations

from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult

QUEUE = 16_384  # the most spans of one turn; the default of 2,048 would drop a peer's and flatter it


class NullExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class Keeper(SpanProcessor):
    """Keeps the spans of one look."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class Exact(SpanExporter):
    """Counts what the exporter took and what it failed at: a figure over lost spans is none."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.sent = self.failed = 0

    def export(self, spans: Any) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        else:
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class Switch(SpanProcessor):
    """Hands each span that ends to the processor in force."""

    def __init__(self, endpoint: str) -> None:
        self.exact = Exact(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=30))
        self._choices: dict[str, SpanProcessor] = {
            "null": SimpleSpanProcessor(NullExporter()),
            "otlp": BatchSpanProcessor(self.exact, max_queue_size=QUEUE),
        }
        self._now = self._choices["null"]

    def use(self, measure: str) -> None:
        self._now = self._choices[measure]

    def keep(self) -> Keeper:
        """Keep spans from now on, until `use` is called."""
        self._now = keeper = Keeper()
        return keeper

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._now.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        self._now.on_end(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._now.force_flush(timeout_millis)

    def shutdown(self) -> None:
        for one in self._choices.values():
            one.shutdown()


def tracer_provider(switch: Switch) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(switch)
    return provider


def wire_bytes(spans: list[ReadableSpan]) -> int:
    """Return the size of the OTLP request with these spans: protobuf, not compressed."""
    return encode_spans(spans).ByteSize() if spans else 0


def written_in(spans: list[ReadableSpan]) -> str:
    """Return every text on these spans, attributes and events."""
    texts = [str(value) for span in spans for value in (span.attributes or {}).values()]
    texts += [str(value) for span in spans for event in span.events for value in (event.attributes or {}).values()]
    return "\n".join(texts)
