"""Prices of tokens: the settings first, then the package genai-prices; unknown is None, never zero."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass

from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError
from ragtrace.judges.openai.transport import DEFAULT_BASE_URL

_log = logging.getLogger("ragtrace")
_unknown: set[tuple[str, str]] = set()  # (model, address): said, and not looked up again


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of one server's models.

    Attributes:
        input_usd_per_million: a person's price of a million prompt tokens; goes before every list.
        output_usd_per_million: of a million tokens of a reply.
        base_url: where the server is, which tells its provider; OpenAI's when None.

    Raises:
        ConfigError: one of the two prices without the other, or one below zero.

    Example:
        >>> own = Prices(input_usd_per_million=0.5, output_usd_per_million=2.0)
        >>> own.price_of("my-model", 1_000_000, 100_000)
        0.7
        >>> Prices(base_url="http://localhost:11434/v1").price_of("llama3.1", 9, 9) is None
        True
    """

    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        own = (self.input_usd_per_million, self.output_usd_per_million)
        if (own[0] is None) != (own[1] is None):
            raise ConfigError("set both price_input_usd_per_million and price_output_usd_per_million, or neither")
        if any(price is not None and not price >= 0.0 for price in own):
            raise ConfigError("price_input_usd_per_million and price_output_usd_per_million cannot be below 0")

    def price_of(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price of a call in US dollars, never below 0; None when the model's price is not known.

        No tokens cost 0.0. Discounts (cached prompts, batches) are left out, so the price is rather too high. What
        is not known is said once a model, in the log.

        Args:
            model: with or without a ``openai:`` in front.
            input_tokens: of the request.
            output_tokens: of the reply.
        """
        if input_tokens <= 0 and output_tokens <= 0:
            return 0.0
        if self.input_usd_per_million is not None and self.output_usd_per_million is not None:
            in_usd = input_tokens * self.input_usd_per_million
            return (in_usd + output_tokens * self.output_usd_per_million) / 1e6
        name = model.removeprefix("openai:")
        where = self.base_url or DEFAULT_BASE_URL
        if (name, where) in _unknown:
            return None
        price = _listed(name, input_tokens, output_tokens, where)
        if price is None:
            _unknown.add((name, where))
            _say(name)
        return price


@off_loop
def _listed(model: str, input_tokens: int, output_tokens: int, base_url: str) -> float | None:
    """Return the price of the list; the address decides whose, so that a model served at home is nobody's."""
    if importlib.util.find_spec("genai_prices") is None:
        return None
    from genai_prices import Usage, calc_price  # noqa: PLC0415 -- 0.3 s, and an extra

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(calc_price(usage, model, provider_api_url=base_url).total_price)
    except LookupError:
        return None


def _say(model: str) -> None:
    has_list = importlib.util.find_spec("genai_prices") is not None
    extra = "" if has_list else ', or install the extra "prices" (pip install ".[prices]" in your clone)'
    _log.warning(
        "the price of %s is not known: only the token budget holds; set price_input_usd_per_million and "
        "price_output_usd_per_million%s",
        model,
        extra,
    )
