"""Records and scores into OpenTelemetry: spans, events, instruments, and the providers behind them.

Owns: what goes on the wire, its byte budgets, and our own delivery deadlines.
Imports: capture, semconv, model, errors; of third parties OpenTelemetry alone (numpy never: the
application's process stays light).
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.telemetry.metrics.clusters import LIFETIME_S, ClusterSums
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.metrics.series import Window, WindowMean
    from ragtrace.telemetry.setup.collector import default_listener
    from ragtrace.telemetry.setup.delivery import (
        CountedLogs,
        CountedMetrics,
        CountedSpans,
        Delivery,
        TakenSpans,
        batches,
    )
    from ragtrace.telemetry.setup.exporters import OwnProvider, exporter_names
    from ragtrace.telemetry.setup.flushing import DrainProcessor, unended
    from ragtrace.telemetry.setup.providers import Providers, providers
    from ragtrace.telemetry.setup.receipts import Receipts, collection_began
    from ragtrace.telemetry.setup.resource import own_resource
    from ragtrace.telemetry.spans.budget import Budget, Limit, Lists
    from ragtrace.telemetry.spans.documents import Documents, Reranked
    from ragtrace.telemetry.spans.evaluation import EvaluationWriter, event_key, input_digest
    from ragtrace.telemetry.spans.messages import Messages
    from ragtrace.telemetry.spans.writer import SpanWriter
    from ragtrace.telemetry.wire import clean_value, remote_context, to_json
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "metrics.clusters": "ClusterSums LIFETIME_S",
            "metrics.instruments": "Instruments",
            "metrics.series": "Window WindowMean",
            "setup.collector": "default_listener",
            "setup.delivery": "CountedLogs CountedMetrics CountedSpans Delivery TakenSpans batches",
            "setup.exporters": "OwnProvider exporter_names",
            "setup.flushing": "DrainProcessor unended",
            "setup.providers": "Providers providers",
            "setup.receipts": "Receipts collection_began",
            "setup.resource": "own_resource",
            "spans.budget": "Budget Limit Lists",
            "spans.documents": "Documents Reranked",
            "spans.evaluation": "EvaluationWriter event_key input_digest",
            "spans.messages": "Messages",
            "spans.writer": "SpanWriter",
            "wire": "clean_value remote_context to_json",
        },
    )
