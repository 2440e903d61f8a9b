"""Settings that stand in for what a run does not say."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace import semconv


def test_workflow_and_corpus_of_the_settings_stand_on_the_root() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ragtrace.configure(workflow="support", corpus="faq", sample_rate=0.0, tracer_provider=provider)
    try:
        with ragtrace.query("Where?") as run:
            run.answered("Here.")
        with ragtrace.query("Where?", corpus="wiki") as run:
            run.answered("Here.")
        assert ragtrace.flush(10)
    finally:
        ragtrace.shutdown(5)
    roots = [dict(span.attributes or {}) for span in exporter.get_finished_spans()]
    assert [root[semconv.CORPUS_NAME] for root in roots] == ["faq", "wiki"]
    assert {root[semconv.GEN_AI_WORKFLOW_NAME] for root in roots} == {"support"}
