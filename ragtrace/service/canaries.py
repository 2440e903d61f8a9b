"""The canaries of some settings: how often, and within which budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.registry import costs
from ragtrace.scoring.canary.canaries import METRIC, Canaries
from ragtrace.service.judges import build_scorer
from ragtrace.service.limits import build_limiter

if TYPE_CHECKING:
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.settings import Settings

DEFAULT_EVERY_S = 6 * 3_600.0
ACCOUNT = "canary"


def canary_period_s(settings: Settings) -> float | None:
    """Return the seconds between rounds; None = no canaries.

    Where nothing is set: 6 h for a judge that asks a model, none for overlap, which obeys nobody.

    Example:
        >>> from ragtrace.settings import Settings
        >>> canary_period_s(Settings.resolve({}, environ={})) is None
        True
        >>> canary_period_s(Settings.resolve({"judge": "openai:m"}, environ={}))
        21600.0
    """
    if settings.canary.every_s is not None:
        return settings.canary.every_s or None
    return DEFAULT_EVERY_S if costs(settings.judge.name) else None


def canary_settings(settings: Settings) -> Settings:
    """Return the settings of the canaries' judge and limiter: their own small budget, and each judge asked once.

    Example:
        >>> from ragtrace.settings import Settings
        >>> canary_settings(Settings.resolve({}, environ={})).budget.usd_per_day
        0.5
    """
    return settings.with_changes(
        budget_usd_per_day=settings.canary.usd_per_day,
        budget_tokens_per_day=settings.canary.tokens_per_day,
        concurrency=1,
        judge_repeats=1,
        metrics=(METRIC,),
        # A round needs none of these, and some are files or models that would be loaded twice.
        embedder="overlap",
        pairs=None,
        grade_cache="off",
    )


def build_canaries(settings: Settings, beside: JudgeLimiter | None = None) -> Canaries | None:
    """Build the canaries of some settings, with a judge and a limiter of their own; None when they are off.

    Their calls share the server's rates with all others, and their budget with the canaries of other processes on
    the same spool.

    Args:
        settings: of the service.
        beside: the scorer's limiter: of a server that fails or is busy both ask less.

    Raises:
        ConfigError: as for the scorer of these settings.
    """
    every_s = canary_period_s(settings)
    if every_s is None:
        return None
    own = canary_settings(settings)
    limiter = build_limiter(own, account=ACCOUNT, beside=beside)
    judge = build_scorer(own, limiter).judge
    return None if judge is None else Canaries(judge, every_s=every_s, closed=limiter.close)
