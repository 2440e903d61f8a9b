"""The gate before the judge's server, from settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragtrace.judges.openai.transport import DEFAULT_BASE_URL
from ragtrace.scoring.limits import Caps, JudgeGate, Prices
from ragtrace.scoring.limits.concurrency import Concurrency
from ragtrace.scoring.limits.judge_gate import BACKFILL_PATIENCE_S, PATIENCE_S

if TYPE_CHECKING:
    from ragtrace.judges.gates import Need, Pass
    from ragtrace.settings import Settings

BACKFILL = "backfill"
"""The account of a backfill."""


def build_gate(settings: Settings, *, account: str = "scoring") -> JudgeGate:
    """Build the gate that judge and embedder of one server share.

    With a spool its books are the file beside it, ``<spool>.limits``, which every process of the host shares;
    without one they are this process's own, and end with it.

    Args:
        settings: limits, prices, spool and base URL.
        account: whose budget; a backfill has one of its own, of the same size, and more patience with rates.

    Raises:
        ConfigError: one of the two prices without the other.

    Example:
        >>> from ragtrace.settings import Settings
        >>> build_gate(Settings.resolve({"judge_base_url": "http://10.0.0.7:8000/v1"}, environ={})).host
        '10.0.0.7:8000'
    """
    caps = Caps(
        usd_per_day=settings.budget_usd_per_day,
        tokens_per_day=settings.budget_tokens_per_day,
        requests_per_minute=settings.judge_rpm,
        tokens_per_minute=settings.judge_tpm,
    )
    spool = Path(settings.spool) if settings.spool else None
    most = settings.judge_calls
    return JudgeGate(
        host=urlsplit(settings.judge_base_url or DEFAULT_BASE_URL).netloc.rpartition("@")[2],
        caps=caps,
        path=spool.with_name(f"{spool.name}.limits") if spool else None,
        prices=build_prices(settings),
        account=account,
        concurrency=Concurrency(limit=float(min(8, most)), high=most),
        patience_s=BACKFILL_PATIENCE_S if account == BACKFILL else PATIENCE_S,
    )


class ServiceGate:
    """The gate of one process: a forked child gets a new one, since calls under way are the parent's.

    Args:
        settings: as in `build_gate`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._gate = build_gate(settings)
        self.price_of = build_prices(settings).price_of

    @property
    def now(self) -> JudgeGate:
        """The gate of this process."""
        return self._gate

    async def enter(self, need: Need) -> Pass:
        """Wait for a call; see `ragtrace.judges.gates.Gate`."""
        return await self._gate.enter(need)

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._gate = build_gate(self._settings)

    def close(self) -> None:
        """Close the books."""
        self._gate.close()


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
