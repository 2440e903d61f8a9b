"""How each candidate is installed in a worker, by its documented switches; content capture on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider

from benchmarks.overhead.candidates import FLOOR

# Where a peer's instrumentor lives; content is switched on by the variables in `candidates`.
INSTRUMENTORS = {
    ("openinference", "langchain"): "openinference.instrumentation.langchain:LangChainInstrumentor",
    ("openinference", "llamaindex"): "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
    ("otel-genai", "langchain"): "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
    ("otel-genai", "llamaindex"): "opentelemetry.instrumentation.genai.llama_index:LlamaIndexInstrumentor",
    ("traceloop", "langchain"): "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
    ("traceloop", "llamaindex"): "opentelemetry.instrumentation.llamaindex:LlamaIndexInstrumentor",
}


class Installed:
    """A candidate in force.

    Attributes:
        config: makes the config of one LangChain run.
        without_content: switches content off, None where the figure is not asked for.
        with_content: switches it on again.
        dropped: settings that this commit of ragtrace does not know, with what it says of each.
    """

    def __init__(self, config: Callable[[], dict[str, Any]] = dict) -> None:
        self.config = config
        self.without_content: Callable[[], None] | None = None
        self.with_content: Callable[[], None] | None = None
        self.dropped: dict[str, str] = {}


def install(candidate: str, framework: str, provider: Any) -> Installed:
    """Put one candidate in force in this process; every candidate has the same three SDK providers."""
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider())
    _logs.set_logger_provider(LoggerProvider())
    if candidate == "bare":
        return Installed()
    if candidate == "ours":
        return _ours(framework, provider)
    if candidate == FLOOR:
        return _floor(framework, provider)
    if (candidate, framework) in INSTRUMENTORS:
        return _peer(candidate, framework, provider)
    return _small(candidate, framework, provider)


def _small(candidate: str, framework: str, provider: Any) -> Installed:
    if framework == "langchain":
        from benchmarks.overhead.langchain_minimal import EmptyHandler, MinimalHandler

        empty = candidate == "empty"
        handler = EmptyHandler() if empty else MinimalHandler(provider.get_tracer("minimal"))
        return Installed(lambda: {"callbacks": [handler]})
    from benchmarks.overhead import llamaindex_minimal

    if candidate == "empty":
        llamaindex_minimal.install_empty()
    else:
        llamaindex_minimal.install(provider.get_tracer("minimal"))
    return Installed()


def _floor(framework: str, provider: Any) -> Installed:
    from benchmarks.overhead.floor import LANGCHAIN, LLAMAINDEX, Floor

    if framework == "langchain":
        from benchmarks.overhead.langchain_floor import FloorHandler

        handler = FloorHandler(Floor(provider, LANGCHAIN))
        return Installed(lambda: {"callbacks": [handler]})
    from benchmarks.overhead import llamaindex_floor

    llamaindex_floor.install(Floor(provider, LLAMAINDEX))
    return Installed()


def _ours(framework: str, provider: Any) -> Installed:
    import ragtrace

    dropped: dict[str, str] = {}

    def configure(content: str, **settings: Any) -> None:
        given = {"content": content, "sample_rate": 0.0, "tracer_provider": provider, **settings}
        while True:
            try:
                return ragtrace.configure(**{name: value for name, value in given.items() if name not in dropped})
            except (TypeError, ValueError) as error:
                unknown = [name for name in given if name not in dropped and repr(name) in str(error)]
                if not unknown:
                    raise
                dropped.update(dict.fromkeys(unknown, str(error)))

    configure("full")
    if framework == "langchain":
        from ragtrace_langchain import RagtraceHandler

        handler = RagtraceHandler()
        installed = Installed(lambda: {"callbacks": [handler]})
    else:
        import ragtrace_llamaindex

        ragtrace_llamaindex.instrument()
        installed = Installed()
    installed.dropped = dropped
    installed.without_content = lambda: configure("none")
    installed.with_content = lambda: configure("full")
    return installed


def _peer(candidate: str, framework: str, provider: Any) -> Installed:
    module, _, name = INSTRUMENTORS[candidate, framework].partition(":")
    instrumentor = getattr(importlib.import_module(module), name)()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    return Installed()
