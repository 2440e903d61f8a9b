"""What the settings and the draw say of a run, on its evaluation span."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace import semconv
from ragtrace.model import RagRecord
from ragtrace.queues import Unit, from_bytes, to_bytes

if TYPE_CHECKING:
    from pathlib import Path

NEVER = 1e-12  # a share that no trace's number is below


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def start(service: Any, spans: InMemorySpanExporter, **settings: Any) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    service.configure(
        tracer_provider=provider,
        meter_provider=MeterProvider(),
        logger_provider=LoggerProvider(),
        metrics=["faithfulness"],
        **settings,
    )


def evaluated(service: Any, spans: InMemorySpanExporter, answer: str = "In Oslo.", **run: Any) -> dict[str, Any]:
    with ragtrace.query("Where is the lab?", **run) as asked:
        asked.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        asked.answered(answer)
    assert service.flush(30)
    (span,) = [span for span in spans.get_finished_spans() if span.name.startswith("evaluation")]
    return dict(span.attributes or {})


@pytest.mark.parametrize("is_spooled", [False, True], ids=["memory", "spool"])
def test_a_span_says_why_its_run_was_scored(
    service: Any, spans: InMemorySpanExporter, tmp_path: Path, *, is_spooled: bool
) -> None:
    spool = {"spool": str(tmp_path / "spool.sqlite")} if is_spooled else {}
    start(service, spans, sample_rate=NEVER, **spool)
    found = evaluated(service, spans, tags=["ragtrace:score"])
    assert (found[semconv.SAMPLING_DECISION], found[semconv.SAMPLING_REASON]) == ("forced", "user_flag")


def test_a_span_of_a_random_run_gives_no_reason(service: Any, spans: InMemorySpanExporter) -> None:
    start(service, spans, sample_rate=1.0)
    assert semconv.SAMPLING_REASON not in evaluated(service, spans)


def test_a_unit_of_an_older_spool_has_no_reason() -> None:
    unit = Unit(record=RagRecord(id="1"), decision="forced", reason="error")
    facts = json.loads(to_bytes(unit))
    assert from_bytes(json.dumps(facts).encode(), key="k", age_s=0.0, now=0.0).reason == "error"
    del facts["reason"]
    assert from_bytes(json.dumps(facts).encode(), key="k", age_s=0.0, now=0.0).reason is None
