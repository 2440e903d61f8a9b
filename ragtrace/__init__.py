"""ragtrace: traces RAG applications into OpenTelemetry, scores them, and tells a real drop from noise.

The names below are the whole public interface; each is imported when it is first used, so that
``import ragtrace`` costs an application next to nothing.

=================  ==============================================================================
`configure`        settings, once, at start-up; without it the environment decides at first use
`JudgeOptions`     typed options of `configure`; also Budget-, Drift-, Server- and StoreOptions
`query`            capture one RAG run by hand: ``with ragtrace.query("...") as run:``
`feedback`         keep what a person said of a trace
`recorder`         the recorder that integrations write to
`flush`            wait until everything offered so far is scored and exported
`shutdown`         the same, and then stop, within a deadline
`batch`            ``batch.score(table)``: the scores of a table, for Ray, Spark and Dask
`display`          scored runs in a notebook: ``display("scored.jsonl")``
`metric`           register a metric of your own, a function or a class
`EvalContext`      what a metric reads: the record, the judge, the embedder
`MetricSpec`       facts about a metric: its needs, its outputs, its source
`Output`           one number that a metric exports
`MetricResult`     one number of a metric for one record, or the reason for none
`Passage`          one retrieved piece of text
`RagRecord`        everything one run leaves behind
`Score`            a metric's result for one trace
=================  ==============================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ragtrace._version import __version__

if TYPE_CHECKING:
    from ragtrace import batch
    from ragtrace.batch.display import display
    from ragtrace.metrics.base import MetricSpec, Output
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.metrics.registry import metric
    from ragtrace.model import MetricResult, Passage, RagRecord, Score
    from ragtrace.options import BudgetOptions, DriftOptions, JudgeOptions, ServerOptions, StoreOptions
    from ragtrace.service.feedback.taking import feedback
    from ragtrace.service.runtime import configure, flush, query, recorder, shutdown

__all__ = [
    "BudgetOptions",
    "DriftOptions",
    "EvalContext",
    "JudgeOptions",
    "MetricResult",
    "MetricSpec",
    "Output",
    "Passage",
    "RagRecord",
    "Score",
    "ServerOptions",
    "StoreOptions",
    "__version__",
    "batch",
    "configure",
    "display",
    "feedback",
    "flush",
    "metric",
    "query",
    "recorder",
    "shutdown",
]

_HOMES = {
    "EvalContext": "ragtrace.metrics.eval_context",
    "MetricResult": "ragtrace.model",
    "MetricSpec": "ragtrace.metrics.base",
    "Output": "ragtrace.metrics.base",
    "StoreOptions": "ragtrace.options",
    "ServerOptions": "ragtrace.options",
    "JudgeOptions": "ragtrace.options",
    "DriftOptions": "ragtrace.options",
    "BudgetOptions": "ragtrace.options",
    "Passage": "ragtrace.model",
    "RagRecord": "ragtrace.model",
    "Score": "ragtrace.model",
    "configure": "ragtrace.service.runtime",
    "display": "ragtrace.batch.display",
    "feedback": "ragtrace.service.feedback.taking",
    "flush": "ragtrace.service.runtime",
    "metric": "ragtrace.metrics.registry",
    "query": "ragtrace.service.runtime",
    "recorder": "ragtrace.service.runtime",
    "shutdown": "ragtrace.service.runtime",
}


def __getattr__(name: str) -> object:
    if name == "batch":
        return importlib.import_module("ragtrace.batch")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ragtrace' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
