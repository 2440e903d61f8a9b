"""The canaries of some settings: how often, and within which budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.canaries import Canaries

if TYPE_CHECKING:
    from ragtrace.judges.base import Judge
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
    if settings.canary_every_s is not None:
        return settings.canary_every_s or None
    return None if settings.judge.strip() == "overlap" else DEFAULT_EVERY_S


def canary_settings(settings: Settings) -> Settings:
    """Return the settings of the canaries' judge and gate: their own small budget, and each judge asked once.

    Example:
        >>> from ragtrace.settings import Settings
        >>> canary_settings(Settings.resolve({}, environ={})).budget_usd_per_day
        0.5
    """
    return settings.with_changes(
        budget_usd_per_day=settings.canary_usd_per_day,
        budget_tokens_per_day=settings.canary_tokens_per_day,
        judge_repeats=1,
        judge_calls=1,
    )


def build_canaries(settings: Settings, judge: Judge | None) -> Canaries | None:
    """Build the canaries of some settings; None when they are off or nobody judges.

    Args:
        settings: how often.
        judge: made of `canary_settings`, behind a gate of the account `ACCOUNT`; theirs to close.
    """
    every_s = canary_period_s(settings)
    return Canaries(judge, every_s=every_s) if every_s is not None and judge is not None else None
