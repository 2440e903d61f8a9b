"""The only room that builds the object graph from settings.

Owns: the process's one recorder, and what stands behind it. Imports: every room below it.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.service.runtime import configure, current, flush, query, recorder, shutdown

if TYPE_CHECKING:
    from ragtrace.service.anchors.build import anchor_settings, build_anchors, judged_metrics
    from ragtrace.service.anchors.monitor import AnchorMonitor
    from ragtrace.service.baseline_monitor import BaselineMonitor, watched
    from ragtrace.service.baselines import watched_outputs
    from ragtrace.service.canaries import build_canaries, canary_period_s
    from ragtrace.service.gauges import Accounts, ServiceGauges, coverage, ledger_points
    from ragtrace.service.health import HealthChecks, HealthEndpoint, longest_quiet_s, reasons_of
    from ragtrace.service.intake.foreign import ForeignScores
    from ragtrace.service.intake.hints import Hints
    from ragtrace.service.intake.intake import TraceIntake
    from ragtrace.service.judges import build_scorer, is_limited, left_out_text
    from ragtrace.service.limits import build_limiter, build_prices
    from ragtrace.service.means.combined import CombinedMeans
    from ragtrace.service.means.mix import MixMonitor
    from ragtrace.service.pipeline import Pipeline
    from ragtrace.service.rates import second_rates_of
    from ragtrace.service.score_handler import ScoreHandler
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.service.service import Service
    from ragtrace.service.shutdown_report import ShutdownReport
    from ragtrace.service.storing import Storing
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "anchors.build": "anchor_settings build_anchors judged_metrics",
            "anchors.monitor": "AnchorMonitor",
            "baseline_monitor": "BaselineMonitor watched",
            "baselines": "watched_outputs",
            "canaries": "build_canaries canary_period_s",
            "gauges": "Accounts ServiceGauges coverage ledger_points",
            "health": "HealthChecks HealthEndpoint longest_quiet_s reasons_of",
            "intake.foreign": "ForeignScores",
            "intake.hints": "Hints",
            "intake.intake": "TraceIntake",
            "judges": "build_scorer is_limited left_out_text",
            "limits": "build_limiter build_prices",
            "means.combined": "CombinedMeans",
            "means.mix": "MixMonitor",
            "pipeline": "Pipeline",
            "rates": "second_rates_of",
            "score_handler": "ScoreHandler",
            "score_outbox": "ScoreOutbox",
            "service": "Service",
            "shutdown_report": "ShutdownReport",
            "storing": "Storing",
        },
    )

__all__ = [
    "configure",
    "current",
    "flush",
    "query",
    "recorder",
    "shutdown",
]
