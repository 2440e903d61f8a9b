"""Destinations of scores besides spans: console, OpenMetrics, Phoenix, Langfuse, MLflow, webhooks and yours.

Owns: the scrape endpoint and its text format, and the outbox behind sinks that write to a network.
Imports: telemetry and the rooms below it.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.sinks.annotation import annotator_kind
    from ragtrace.sinks.base import Sink, sinks_of
    from ragtrace.sinks.console import ConsoleSink, run_lines
    from ragtrace.sinks.langfuse import LangfuseSink, langfuse_scores
    from ragtrace.sinks.mlflow import MlflowSink, assessment
    from ragtrace.sinks.outbox import Attempt, Outbox
    from ragtrace.sinks.phoenix import PhoenixSink, span_annotations
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint, OTelCollector, ScrapeReader
    from ragtrace.sinks.rest import Address
    from ragtrace.sinks.webhook import MOST_LISTED, WebhookSink
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "annotation": "annotator_kind",
            "base": "Sink sinks_of",
            "console": "ConsoleSink run_lines",
            "langfuse": "LangfuseSink langfuse_scores",
            "mlflow": "MlflowSink assessment",
            "outbox": "Attempt Outbox",
            "phoenix": "PhoenixSink span_annotations",
            "prometheus": "OTelCollector OpenMetricsEndpoint ScrapeReader",
            "rest": "Address",
            "webhook": "MOST_LISTED WebhookSink",
        },
    )

__all__ = ["LangfuseSink", "MlflowSink", "PhoenixSink", "Sink", "WebhookSink"]
