"""An application that flushes or shuts down its own tracer provider loses nothing that was finished."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from tests.process.observing import ask, providers, ran

pytestmark = pytest.mark.slow

RUNS = 50


@pytest.mark.parametrize("kind", [BatchSpanProcessor, SimpleSpanProcessor])
@pytest.mark.parametrize("is_registered_first", [True, False])
@pytest.mark.parametrize("method", ["force_flush", "shutdown"])
def test_the_spans_of_finished_runs_are_exported(kind, is_registered_first, method):
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    kept = []
    exporter.export = kept.extend  # type: ignore[method-assign, assignment, func-returns-value]
    if is_registered_first:
        provider.add_span_processor(kind(exporter))
    ragtrace.configure(sample_rate=0.0, **providers(tracer_provider=provider))
    if not is_registered_first:
        provider.add_span_processor(kind(exporter))
    ask(RUNS)
    getattr(provider, method)()
    assert sum(span.name.startswith("invoke_workflow") for span in kept) == RUNS
    assert sum(span.name.startswith("retrieval") for span in kept) == RUNS
    ragtrace.shutdown(5)


ENDS = """
import ragtrace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")))
ragtrace.configure(sample_rate=0.0, tracer_provider=provider)
for number in range(50):
    with ragtrace.query("?") as run:
        run.answered("In Oslo.")
"""


def test_the_end_of_the_process_exports_what_was_finished():
    done = ran("-c", ENDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("invoke_workflow") == RUNS
