"""The limiter before the judge's server, from settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragtrace.judges.openai.transport import DEFAULT_BASE_URL
from ragtrace.scoring.limits import Caps, JudgeLimiter, Prices
from ragtrace.scoring.limits.judge_limiter import BACKFILL_PATIENCE_S, PATIENCE_S

if TYPE_CHECKING:
    from ragtrace.settings import Settings

BACKFILL = "backfill"
"""The account of a backfill."""


def build_limiter(settings: Settings, *, account: str = "scoring") -> JudgeLimiter:
    """Build the limiter that judge and embedder of one server share.

    With a spool its books are the file beside it, ``<spool>.limits``, which every process of the host shares. With
    a queue on the network it is ``<store>.limits``. Without a file they are this process's own, and end with it.
    Each limit is multiplied by `budget_share`, see decision 0026.

    Args:
        settings: limits, prices, spool and base URL.
        account: whose budget; a backfill has one of its own, of the same size, and more patience with rates.

    Raises:
        ConfigError: one of the two prices without the other.

    Example:
        >>> from ragtrace.settings import Settings
        >>> build_limiter(Settings.resolve({"judge_base_url": "http://10.0.0.7:8000/v1"}, environ={})).host
        '10.0.0.7:8000'
    """
    share = settings.budget_share
    caps = Caps(
        usd_per_day=settings.budget_usd_per_day * share,
        tokens_per_day=_part(settings.budget_tokens_per_day, share),
        requests_per_minute=settings.judge_rpm * share,
        tokens_per_minute=settings.judge_tpm * share,
    )
    # Beside a queue on the network the store's file is the one that outlives this process.
    kept = settings.spool or (settings.store if settings.queue else None)
    beside = Path(kept) if kept else None
    return JudgeLimiter(
        host=urlsplit(settings.judge_base_url or DEFAULT_BASE_URL).netloc.rpartition("@")[2],
        caps=caps,
        path=beside.with_name(f"{beside.name}.limits") if beside else None,
        prices=build_prices(settings),
        account=account,
        calls=settings.judge_calls,
        patience_s=BACKFILL_PATIENCE_S if account == BACKFILL else PATIENCE_S,
    )


def _part(tokens: int, share: float) -> int:
    """Return a share of a budget, rounded down; at least 1, as 0 would turn the limit off."""
    return max(int(tokens * share), 1) if tokens else 0


def build_prices(settings: Settings) -> Prices:
    """Build the prices of the judge's server, also for what scores cost.

    Raises:
        ConfigError: one of the two prices without the other.
    """
    return Prices(
        input_usd_per_million=settings.price_input_usd_per_million,
        output_usd_per_million=settings.price_output_usd_per_million,
        base_url=settings.judge_base_url,
    )
