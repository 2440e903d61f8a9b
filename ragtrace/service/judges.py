"""Judges, embedders and pair scorers by name, for the service and the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.capture.guard import safe_redact
from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError
from ragtrace.judges.kinds import JudgeParameters
from ragtrace.judges.registry import costs, make_embedder, make_grade_cache, make_judges, make_pairs
from ragtrace.metrics.deep_retrieval import DeepRetriever
from ragtrace.metrics.eval_context import MetricOptions
from ragtrace.metrics.evaluate import is_computable
from ragtrace.metrics.registry import select
from ragtrace.scoring import Scorer
from ragtrace.scoring.first_judge import FirstJudge, asks_judge
from ragtrace.service.rates import second_rates_of
from ragtrace.settings import secret

if TYPE_CHECKING:
    from ragtrace.judges.base import Embedder, Judge, PairScorer
    from ragtrace.judges.limiter import RateLimiter
    from ragtrace.metrics.base import Metric
    from ragtrace.settings import Settings


def is_limited(settings: Settings) -> bool:
    """Return whether judge or embedder cost something; the offline ones have no limits."""
    return costs(settings.judge.name) or costs(settings.embedder)


def build_scorer(
    settings: Settings, limiter: RateLimiter | None = None, *, pairs: PairScorer | None = None
) -> Scorer:
    """Build the scorer of some settings.

    Args:
        settings: who judges what.
        limiter: every call of judge and embedder passes it; None for a person's own run over a file.
        pairs: a pair scorer that is loaded already; default that of the settings.

    Raises:
        ConfigError: an unknown metric, judge, embedder or pair scorer, no key where one is needed, a broken model.
        MissingExtra: a package that one of them needs is not installed.
    """
    parameters = JudgeParameters(
        base_url=settings.judge.base_url,
        api_key=secret(settings.judge.api_key),
        timeout_s=settings.judge.timeout_s,
        grade_batch=settings.metric_options.grade_batch,
        grading=settings.metric_options.grading,
        grade_cache=off_loop(make_grade_cache)(settings.grade_cache, frozen=settings.label_freeze),
        limiter=limiter,
    )
    judge = make_judges(
        settings.judge.name, parameters, repeats=settings.judge.repeats, consensus=settings.consensus
    )
    embedder = off_loop(make_embedder)(settings.embedder, parameters)
    if pairs is None:
        pairs = off_loop(make_pairs)(settings.pairs) if isinstance(settings.pairs, str) else settings.pairs
    options = MetricOptions(
        k_values=settings.metric_options.k_values,
        length_debias=settings.metric_options.length_debias,
        threshold_1to5=settings.metric_options.threshold_1to5,
        hallucination_threshold=settings.metric_options.hallucination_threshold,
    )
    metrics, left_out = _metrics(settings, judge, embedder, pairs)
    return Scorer(
        metrics=metrics,
        judge=judge,
        embedder=embedder,
        pairs=pairs,
        options=options,
        deep_retriever=_deep_retriever(settings),
        left_out=left_out,
    )


def with_first_judge(scorer: Scorer, settings: Settings) -> Scorer:
    """Return a scorer with the first judge of some settings; the same scorer where there is none.

    Raises:
        ConfigError: the first judge costs something, is the judge itself, or its rates are wrong.

    Example:
        >>> from ragtrace.settings import Settings
        >>> local = {"judge": "openai:m", "judge_base_url": "http://localhost:1/v1", "first_judge": "overlap"}
        >>> settings = Settings.resolve(local, environ={})
        >>> first = with_first_judge(build_scorer(settings), settings).first
        >>> first.judge.name, first.lead.name
        ('overlap', 'faithfulness')
    """
    if settings.first_judge is None:
        return scorer
    if costs(settings.first_judge):
        raise ConfigError(
            f"first_judge={settings.first_judge!r} scores every sampled run: take an offline judge, overlap"
        )
    judge = make_judges(settings.first_judge)
    if scorer.judge is None or judge.name == scorer.judge.name:
        raise ConfigError(
            f"first_judge and judge are both {judge.name!r}: set judge to the one for a part, such as openai:MODEL"
        )
    able = tuple(one for one in scorer.metrics if is_computable(one, judge, scorer.embedder, scorer.pairs))
    both = [one for one in able if is_computable(one, scorer.judge, scorer.embedder, scorer.pairs)]
    shared = [one.spec for one in both if asks_judge(one.spec)]
    return replace(
        scorer,
        first=FirstJudge(
            judge=judge,
            metrics=able,
            lead=next((one.outputs[0] for one in shared if one.outputs[0].is_unit), None),
            rates=second_rates_of(settings),
            shared=frozenset(output.name for one in shared for output in one.outputs),
        ),
    )


def left_out_text(scorer: Scorer) -> str:
    """Return one line about default metrics that the judge cannot compute, "" where there are none."""
    if not scorer.left_out or scorer.judge is None:
        return ""
    names, name = ", ".join(scorer.left_out), scorer.judge.name
    return f"left out of the default metrics: {names}, which judge {name!r} cannot compute; openai:MODEL can"


def _metrics(
    settings: Settings, judge: Judge, embedder: Embedder | None, pairs: PairScorer | None
) -> tuple[tuple[Metric, ...], tuple[str, ...]]:
    """Return the metrics, and the names of default ones that these parts can never compute."""
    chosen = tuple(select(settings.metrics))
    if not settings.has_default_metrics:
        return chosen, ()
    metrics = tuple(metric for metric in chosen if is_computable(metric, judge, embedder, pairs))
    return metrics, tuple(metric.spec.name for metric in chosen if metric not in metrics)


def _deep_retriever(settings: Settings) -> DeepRetriever | None:
    if settings.shadow.retrieve is None:
        return None
    return DeepRetriever(
        settings.shadow.retrieve,
        rate=settings.shadow.rate,
        timeout_s=settings.shadow.timeout_s,
        redact=safe_redact(settings.redact),
    )
