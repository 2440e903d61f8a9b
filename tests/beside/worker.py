"""Runs one framework's application under instrumentations in a given order, and prints what came out as JSON.

Usage: ``python worker.py FRAMEWORK [INSTRUMENTATION ...]``. It runs in the environment of ``make test-beside``,
where other instrumentations are installed; this file imports nothing of pytest.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

INSTRUMENTORS = {
    ("openinference", "langchain"): "openinference.instrumentation.langchain:LangChainInstrumentor",
    ("openinference", "llamaindex"): "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
    ("otel-genai", "langchain"): "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
    ("otel-genai", "llamaindex"): "opentelemetry.instrumentation.genai.llama_index:LlamaIndexInstrumentor",
}
KEPT = (
    "ragtrace.run.outcome",
    "ragtrace.pool.ids",
    "ragtrace.selected.ids",
    "ragtrace.selected.ranks",
    "ragtrace.prompt.ids",
    "ragtrace.selection.source",
    "input.value",
    "output.value",
)


def install(framework: str, name: str, provider: TracerProvider) -> None:
    if name == "ragtrace":
        import ragtrace

        ragtrace.configure(content="full", sample_rate=0.0, tracer_provider=provider)
        importlib.import_module(f"ragtrace_{framework}").instrument()
        return
    module, _, instrumentor = INSTRUMENTORS[name, framework].partition(":")
    getattr(importlib.import_module(module), instrumentor)().instrument(tracer_provider=provider)


def told(call: Any) -> dict[str, Any]:
    """Return what an application's call gave, or the exception that left it."""
    try:
        found = call()
        if asyncio.iscoroutine(found):
            found = asyncio.run(found)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"value": found}


def main(framework: str, names: list[str]) -> dict[str, Any]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider())
    for name in names:
        install(framework, name, provider)
    application = importlib.import_module(f"{framework}_application")
    found = {}
    for scenario, call in application.SCENARIOS.items():
        exporter.clear()
        result = told(call)
        provider.force_flush()  # waits for the pipeline
        spans = exporter.get_finished_spans()
        roots = [span for span in spans if span.name.startswith("invoke_workflow") and _scope(span) == "ragtrace"]
        found[scenario] = {
            **result,
            "runs": [{key: (root.attributes or {}).get(key) for key in KEPT} for root in roots],
            "others": sum(_scope(span) != "ragtrace" for span in spans),
        }
    return found


def _scope(span: Any) -> str:
    return span.instrumentation_scope.name


if __name__ == "__main__":
    json.dump(main(sys.argv[1], sys.argv[2:]), sys.stdout)
