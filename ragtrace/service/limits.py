"""The limiter before the judge's server, from settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragtrace.judges.openai.transport import DEFAULT_BASE_URL
from ragtrace.scoring.limits import Caps, JudgeLimiter, Prices
from ragtrace.scoring.limits.breaker import NoBreaker
from ragtrace.scoring.limits.judge_limiter import BACKFILL_PATIENCE_S, PATIENCE_S
from ragtrace.scoring.limits.trouble import Trouble

if TYPE_CHECKING:
    from ragtrace.settings import Settings

SCORING = "scoring"
_NOT_MADE_UP = "what it does not judge has the reason in place of a score"
_LEFT = "the rest is left unscored"
_MOST_AT_ONCE = 1_000  # calls of a file's lines, of which --jobs are under way
BACKFILL = "backfill"
"""The account of a backfill."""


def build_limiter(
    settings: Settings, *, account: str = SCORING, beside: JudgeLimiter | None = None
) -> JudgeLimiter:
    """Build the limiter that judge and embedder of one server share.

    With a spool its books are the file beside it, ``<spool>.limits``, which every process of the host shares. With
    a queue on the network it is ``<store>.limits``. Without a file they are this process's own, and end with it.

    Args:
        settings: limits, prices, spool and base URL.
        account: whose budget; a backfill has one of its own, of the same size, and more patience with rates.
        beside: the scorer's limiter, for canaries and anchors, which ask the same server.

    Raises:
        ConfigError: one of the two prices without the other.

    Example:
        >>> from ragtrace.settings import Settings
        >>> build_limiter(Settings.resolve({"judge_base_url": "http://10.0.0.7:8000/v1"}, environ={})).host
        '10.0.0.7:8000'
    """
    return JudgeLimiter(
        host=_host(settings),
        caps=_caps(settings),
        path=_path(settings),
        prices=build_prices(settings),
        account=account,
        calls=settings.concurrency,
        patience_s=BACKFILL_PATIENCE_S if account == BACKFILL else PATIENCE_S,
        trouble=Trouble(then=_NOT_MADE_UP, over_budget=_LEFT) if account == BACKFILL else None,
        beside=beside,
    )


def build_file_limiter(settings: Settings, *, most_calls: int | None = None) -> JudgeLimiter:
    """Build the limiter of a person's run over a file: budgets and pauses, and neither rates nor a breaker.

    Its budgets are those of a backfill: of the same size as the scorer's, and apart from them.

    Args:
        settings: budgets, prices, spool and base URL.
        most_calls: after so many no further call is made; None = no end.

    Raises:
        ConfigError: one of the two prices without the other.
    """
    return JudgeLimiter(
        host=_host(settings),
        caps=replace(_caps(settings), requests_per_minute=0, tokens_per_minute=0),
        path=_path(settings),
        prices=build_prices(settings),
        account=BACKFILL,
        calls=_MOST_AT_ONCE,
        patience_s=BACKFILL_PATIENCE_S,
        trouble=Trouble(then=_NOT_MADE_UP, over_budget=_LEFT),
        breaker=NoBreaker,
        most_calls=most_calls,
    )


def build_asking_limiter(settings: Settings) -> JudgeLimiter:
    """Build the limiter of one question by a person: the scorer's budgets, with what they have spent so far.

    Where the scorer has no file, or has not made it yet, nothing is spent, and no file is made.

    Raises:
        ConfigError: one of the two prices without the other.
    """
    path = _path(settings)
    return JudgeLimiter(
        host=_host(settings),
        caps=replace(_caps(settings), requests_per_minute=0, tokens_per_minute=0),
        path=path if path is not None and path.exists() else None,
        prices=build_prices(settings),
        trouble=Trouble(is_logged=False),
        breaker=NoBreaker,
    )


def _host(settings: Settings) -> str:
    return urlsplit(settings.judge.base_url or DEFAULT_BASE_URL).netloc.rpartition("@")[2]


def _caps(settings: Settings) -> Caps:
    return Caps(
        usd_per_day=settings.budget.usd_per_day,
        tokens_per_day=settings.budget.tokens_per_day,
        requests_per_minute=settings.judge.rpm,
        tokens_per_minute=settings.judge.tpm,
    )


def _path(settings: Settings) -> Path | None:
    # Beside a queue on the network the store's file is the one that outlives this process.
    kept = settings.spool.path or (settings.store.path if settings.queue.address else None)
    return Path(f"{kept}.limits") if kept else None


def build_prices(settings: Settings) -> Prices:
    """Build the prices of the judge's server, also for what scores cost.

    Raises:
        ConfigError: one of the two prices without the other.
    """
    return Prices(
        input_usd_per_million=settings.price.input_usd_per_million,
        output_usd_per_million=settings.price.output_usd_per_million,
        base_url=settings.judge.base_url,
    )
