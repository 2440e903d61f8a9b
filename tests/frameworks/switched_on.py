"""Plugin of a framework's pytest: ragtrace is on for the process, scores every run offline and exports nowhere.

Each process writes what it captured into a file of the folder FRAMEWORKS_CAPTURED.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
import ragtrace_langchain
from ragtrace.capture import internal_errors

_spans = InMemorySpanExporter()


class _Scored:
    """Counts the runs that the scorer has scored."""

    runs = 0

    def emit(self, record: Any, scores: Any) -> None:
        self.runs += 1


_scored = _Scored()


def pytest_configure() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_spans))
    ragtrace.configure(sample_rate=1.0, content="full", tracer_provider=provider, sinks=_scored)
    ragtrace_langchain.instrument()


def pytest_unconfigure() -> None:
    ragtrace.shutdown()
    captured = {
        "spans": len(_spans.get_finished_spans()),
        "scored": _scored.runs,
        "internal_errors": internal_errors(),
    }
    (Path(os.environ["FRAMEWORKS_CAPTURED"]) / f"{os.getpid()}.json").write_text(json.dumps(captured))
