"""Anchors of a service: their pace, judge and budget from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.evaluate import expected
from ragtrace.scoring.anchors.rounds import AnchorRounds
from ragtrace.service.anchors.falls import Falls
from ragtrace.service.anchors.monitor import AnchorMonitor, anchors_period_s
from ragtrace.service.baseline_monitor import watched
from ragtrace.service.judges import build_scorer, is_limited
from ragtrace.service.limits import build_limiter

if TYPE_CHECKING:
    from ragtrace.model import MetricResult
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.settings import Settings
    from ragtrace.stores.anchor_table import AnchorTable

ACCOUNT = "anchors"


def anchor_settings(settings: Settings, scorer: Scorer) -> Settings:
    """Return the settings of the anchors' scorer: their own budget, no cached grades, and judged metrics alone.

    All judged metrics are computed, also those that are not watched: one call may answer for several.
    """
    return settings.with_changes(
        budget_usd_per_day=settings.anchors.usd_per_day,
        budget_tokens_per_day=settings.anchors.tokens_per_day,
        concurrency=1,
        grade_cache="off",
        shadow=None,
        metrics=judged_metrics(scorer),
    )


def judged_metrics(scorer: Scorer) -> tuple[str, ...]:
    """Return the names of a scorer's metrics that its judge computes."""
    outputs = {result.name for result in _judged(scorer)}
    return tuple(
        metric.spec.name for metric in scorer.metrics if outputs & {output.name for output in metric.spec.outputs}
    )


def reference_signature(scorer: Scorer) -> str:
    """Return judge, metrics and versions of a reference; scores of another signature do not belong into it."""
    judge = scorer.judge.name if scorer.judge is not None else ""
    return " ".join([judge, *sorted(f"{result.name}@{result.version}" for result in _judged(scorer))])


def watched_metrics(scorer: Scorer) -> frozenset[str]:
    """Return the names of a scorer's outputs that are watched for a drop."""
    return frozenset(watched({output.name: output for metric in scorer.metrics for output in metric.spec.outputs}))


def build_anchors(
    settings: Settings, scorer: Scorer, table: AnchorTable, beside: JudgeLimiter | None = None
) -> tuple[AnchorRounds | None, Falls | None]:
    """Build the rounds of some settings, and what hurries them where a mean falls; None and None when they are off.

    The rounds have a judge and a budget of their own.

    Args:
        settings: of the service.
        scorer: its scorer.
        table: the anchors.
        beside: the scorer's limiter: of a server that fails or is busy both ask less.

    Raises:
        ConfigError: as for the scorer of these settings.
    """
    every_s = anchors_period_s(settings)
    if every_s is None or not judged_metrics(scorer):
        return None, None
    own = anchor_settings(settings, scorer)
    limiter = build_limiter(own, account=ACCOUNT, beside=beside) if is_limited(own) else None
    rounds = AnchorRounds(
        table,
        build_scorer(own, limiter, pairs=scorer.pairs),
        watched=watched_metrics(scorer),
        every_s=every_s,
        limiter=limiter,
    )
    return rounds, Falls(AnchorMonitor(table, every_s=every_s))


def _judged(scorer: Scorer) -> list[MetricResult]:
    """Return a stand-in of each output that the judge gives."""
    name = scorer.judge.name if scorer.judge is not None else None
    found = expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs)
    return [result for result in found if result.judge is not None and result.judge.model == name]
