"""Installs one instrumentation, by name, on the global tracer provider."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import TracerProvider

# Others follow the convention of OpenTelemetry: an instrumentor with `instrument(tracer_provider=...)`.
INSTRUMENTORS = {
    "openinference-langchain": "openinference.instrumentation.langchain:LangChainInstrumentor",
    "openinference-llama-index": "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
    "openinference-openai": "openinference.instrumentation.openai:OpenAIInstrumentor",
    "traceloop-langchain": "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
    # Leaves OpenAI's models to the instrumentation of their client, which Traceloop's SDK installs beside it.
    "traceloop-llamaindex": "opentelemetry.instrumentation.llamaindex:LlamaIndexInstrumentor"
    " opentelemetry.instrumentation.openai:OpenAIInstrumentor",
    "traceloop-openai": "opentelemetry.instrumentation.openai:OpenAIInstrumentor",
    "genai-langchain": "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
    "genai-llama-index": "opentelemetry.instrumentation.genai.llama_index:LlamaIndexInstrumentor",
    "genai-openai": "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor",
    "genai-openai-v2": "opentelemetry.instrumentation.openai_v2:OpenAIInstrumentor",
}


def install(name: str) -> Callable[[], object]:
    """Install the instrumentation; return the function that sends what is left."""
    dialect, _, framework = name.partition("-")
    if dialect in ALONE:
        return ALONE[dialect](framework)
    provider = _provider()
    if name in INSTRUMENTORS:
        for instrumentor in INSTRUMENTORS[name].split():
            module, _, member = instrumentor.partition(":")
            getattr(importlib.import_module(module), member)().instrument(tracer_provider=provider)
    else:
        _ragtrace(framework, provider)
    return provider.force_flush


def _provider() -> TracerProvider:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def _ragtrace(framework: str, provider: TracerProvider) -> None:
    """Install our capture; its own scores would stand beside those that the traces are to give."""
    import ragtrace

    ragtrace.configure(sample_rate=0.0, tracer_provider=provider)
    importlib.import_module(f"ragtrace_{framework}").instrument()


def _mlflow(framework: str) -> Callable[[], object]:
    """Turn MLflow's tracing on; its own provider sends everything at the end of the process."""
    import mlflow

    getattr(mlflow, framework.replace("-", "_")).autolog()
    return lambda: None


def _langfuse(_: str) -> Callable[[], object]:
    from contextvars import ContextVar

    import langfuse
    from langchain_core.tracers.context import register_configure_hook
    from langfuse.langchain import CallbackHandler

    handler: ContextVar[CallbackHandler | None] = ContextVar("langfuse", default=None)
    handler.set(CallbackHandler())
    register_configure_hook(handler, inheritable=True)
    return langfuse.get_client().flush


# These bring a provider of their own, or a client.
ALONE = {"mlflow": _mlflow, "langfuse": _langfuse}
