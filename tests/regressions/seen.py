"""What an application's exporter gets: real spans of the SDK with its default limits, and the ones still open."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace.capture import internal_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

DOCUMENTS = "gen_ai.retrieval.documents"
RERANKED = "ragtrace.rerank.documents"
LATER = 1e12  # seconds on the recorder's clock: every open run has been idle too long


class _Open(SpanProcessor):
    """Spans begun and not ended, by span id."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.names[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        self.names.pop(span.context.span_id, None)


class Seen:
    """The spans of one service, in the order in which they ended."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self._open = _Open()
        self.provider.add_span_processor(self._open)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._losses = internal_errors()

    @property
    def spans(self) -> list[ReadableSpan]:
        ragtrace.flush(30)  # spans are written by the pipeline's thread
        return list(self.exporter.get_finished_spans())

    @property
    def open(self) -> list[str]:
        ragtrace.flush(30)
        return sorted(self._open.names.values())

    @property
    def lost(self) -> dict[str, int]:
        """What was counted as lost since the test began."""
        return {
            site: n - self._losses.get(site, 0)
            for site, n in internal_errors().items()
            if n != self._losses.get(site, 0)
        }

    @property
    def roots(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.parent is None]

    @property
    def root(self) -> ReadableSpan:
        assert len(self.roots) == 1, [span.name for span in self.spans]
        return self.roots[0]

    def of(self, operation: str, root: ReadableSpan | None = None) -> list[ReadableSpan]:
        """Return the steps of one kind (retrieval, rerank, chat or text completion), of one run or of all."""
        names = {"chat", "text_completion"} if operation == "chat" else {operation}
        return [
            span
            for span in self.spans
            if fact(span, "gen_ai.operation.name") in names
            and (root is None or span.context.trace_id == root.context.trace_id)
        ]

    def clear(self) -> None:
        ragtrace.flush(30)
        self.exporter.clear()

    def wire_bytes(self) -> int:
        """Return the size of all spans in OTLP, as the SDK's own exporter would send them."""
        return len(encode_spans(self.spans).SerializeToString())


@contextlib.contextmanager
def watching(**settings: Any) -> Iterator[Seen]:
    """Configure a service that scores nothing, and stop it."""
    seen = Seen()
    ragtrace.configure(
        **{"content": "full", **settings},
        sample_rate=0.0,
        tracer_provider=seen.provider,
        meter_provider=MeterProvider(),
        logger_provider=LoggerProvider(),
    )
    try:
        yield seen
    finally:
        ragtrace.shutdown(5)


def fact(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def read(span: ReadableSpan, name: str) -> Any:
    """Return a JSON attribute, parsed."""
    return json.loads(fact(span, name))


def ids(root: ReadableSpan, which: str) -> list[str]:
    """Return the ids of the run's pool, selected or prompt set."""
    text = fact(root, f"ragtrace.{which}.ids")
    return [] if text is None else json.loads(text)


def asked_and_answered(root: ReadableSpan) -> tuple[Any, Any, Any]:
    return fact(root, "input.value"), fact(root, "output.value"), fact(root, "ragtrace.run.outcome")


def attribute_bytes(span: ReadableSpan) -> int:
    return sum(len(key) + len(str(value).encode()) for key, value in (span.attributes or {}).items())


def assert_json_is_whole(spans: list[ReadableSpan]) -> None:
    """Every attribute that looks like JSON is JSON: a cut in its middle breaks whoever reads it."""
    for span in spans:
        for value in (span.attributes or {}).values():
            if isinstance(value, str) and value[:1] in {"[", "{"}:
                json.loads(value)


def assert_nothing_dropped(spans: list[ReadableSpan]) -> None:
    assert [span.name for span in spans if span.dropped_attributes or span.dropped_events] == []


def in_threads(work: Any, count: int) -> None:
    """Run `work(number)` in so many threads that all begin at once; their first error is raised here."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def one(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # raised below, in the test's thread
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
