"""Judges, embedders and pair scorers by name, for the service and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.registry import make_embedder, make_judges, make_pairs
from ragtrace.metrics.case import Options
from ragtrace.metrics.registry import select
from ragtrace.scoring import Scorer

if TYPE_CHECKING:
    from ragtrace.settings import Settings


def build_scorer(settings: Settings) -> Scorer:
    """Build the scorer of some settings.

    Raises:
        ConfigError: an unknown metric, judge, embedder or pair scorer, no key where one is needed, a broken model.
        MissingExtra: a package that one of them needs is not installed.
    """
    metrics = tuple(select(settings.metrics))
    judge = make_judges(
        settings.judge,
        repeats=settings.judge_repeats,
        consensus=settings.consensus,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        timeout_s=settings.judge_timeout_s,
        grade_batch=settings.grade_batch,
        grading=settings.grading,
        batch_metrics=settings.batch_metrics,
    )
    embedder = make_embedder(
        settings.embedder,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        timeout_s=settings.judge_timeout_s,
    )
    pairs = make_pairs(settings.pairs) if isinstance(settings.pairs, str) else settings.pairs
    options = Options(
        k_values=settings.k_values,
        length_debias=settings.length_debias,
        threshold_1to5=settings.threshold_1to5,
        hallucination_threshold=settings.hallucination_threshold,
    )
    return Scorer(metrics=metrics, judge=judge, embedder=embedder, pairs=pairs, options=options)
