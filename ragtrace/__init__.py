"""ragtrace: traces RAG applications into OpenTelemetry, scores them, and tells a real drop from noise.

The names below are the whole public interface; each is imported when it is first used, so that
``import ragtrace`` costs an application next to nothing.

=================  ==============================================================================
`configure`        settings, once, at start-up; without it the environment decides at first use
`query`            capture one RAG run by hand: ``with ragtrace.query("...") as run:``
`feedback`         keep what a person said of a trace
`evidence`         say of a tool or a function that what it gives is evidence
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
from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace import batch
    from ragtrace.batch.display import display
    from ragtrace.capture.decorated import evidence
    from ragtrace.metrics.base import MetricSpec, Output
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.metrics.registry import metric
    from ragtrace.model import MetricResult, Passage, RagRecord, Score
    from ragtrace.service.feedback.taking import feedback
    from ragtrace.service.runtime import configure, flush, query, recorder, shutdown

__all__ = [
    "EvalContext",
    "MetricResult",
    "MetricSpec",
    "Output",
    "Passage",
    "RagRecord",
    "Score",
    "__version__",
    "batch",
    "configure",
    "display",
    "evidence",
    "feedback",
    "flush",
    "metric",
    "query",
    "recorder",
    "shutdown",
]

_given = lazy_names(
    __name__,
    {
        "batch.display": "display",
        "capture.decorated": "evidence",
        "metrics.base": "MetricSpec Output",
        "metrics.eval_context": "EvalContext",
        "metrics.registry": "metric",
        "model": "MetricResult Passage RagRecord Score",
        "service.feedback.taking": "feedback",
        "service.runtime": "configure flush query recorder shutdown",
    },
)


def __getattr__(name: str) -> object:
    return importlib.import_module("ragtrace.batch") if name == "batch" else _given(name)


def __dir__() -> list[str]:
    return sorted(__all__)
