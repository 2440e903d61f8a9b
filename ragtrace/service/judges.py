"""Judges and embedders by name, for the service and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.registry import make_embedder, make_judge
from ragtrace.metrics.case import Options
from ragtrace.metrics.registry import select
from ragtrace.scoring import Scorer

if TYPE_CHECKING:
    from ragtrace.settings import Settings


def build_scorer(settings: Settings) -> Scorer:
    """Build the scorer of some settings.

    Raises:
        ConfigError: an unknown metric, judge or embedder, or no key where one is needed.
    """
    metrics = tuple(select(settings.metrics))
    judge = make_judge(
        settings.judge,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        timeout_s=settings.judge_timeout_s,
    )
    embedder = make_embedder(
        settings.embedder,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        timeout_s=settings.judge_timeout_s,
    )
    return Scorer(metrics=metrics, judge=judge, embedder=embedder, options=Options(k_values=settings.k_values))
