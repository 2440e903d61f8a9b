"""Providers in memory."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """A tracer and what it exported."""

    def __init__(self, **options):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("ragtrace", "1")

    @property
    def finished(self):
        return self.exporter.get_finished_spans()

    def named(self, prefix):
        return [span for span in self.finished if span.name.startswith(prefix)]

    def one(self, prefix):
        (span,) = self.named(prefix)
        return span


@pytest.fixture
def spans():
    return Spans()


@pytest.fixture
def make_spans():
    return Spans
