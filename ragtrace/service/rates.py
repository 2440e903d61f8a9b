"""Parse sampling rates from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, nearest
from ragtrace.metrics.registry import select
from ragtrace.sampling import Rates, Rule
from ragtrace.sampling.second import SecondRates

if TYPE_CHECKING:
    from ragtrace.settings import Settings

_WITHOUT = "none"  # in judge_rates: runs that the first judge gives no score
_FIELDS = ("rate", "workflow", "tag", "model", "outcome")


def rates_of(settings: Settings) -> Rates:
    """Return the sampling rates of settings.

    Raises:
        ConfigError: a metric or a field is unknown, or a rate is not a number from 0 to 1; one line that quotes it.

    Example:
        >>> from ragtrace.settings import Settings
        >>> given = {"metric_rates": "nuggets=0.01", "sampling_rules": "rate=1 tag=vip"}
        >>> rates = rates_of(Settings.resolve(given, {}))
        >>> rates.metrics, rates.rules[0].tag
        ({'nuggets': 0.01}, 'vip')
    """
    metrics: dict[str, float] = {}
    for item in settings.metric_rates:
        name, sign, text = str(item).partition("=")
        if not sign:
            raise ConfigError(f"metric_rates: {item!r} is no METRIC=RATE, for example nuggets=0.01")
        for metric in select([name.strip()]):
            metrics[metric.spec.name] = _rate(text, f"metric_rates: {item}")
    rules = tuple(_rule(item) for item in settings.sampling_rules)
    return Rates(rate=settings.sample_rate, metrics=metrics, rules=rules)


def second_rates_of(settings: Settings) -> SecondRates:
    """Return the probabilities of the second draw, from the setting ``judge_rates``.

    Raises:
        ConfigError: no number, a score outside 0 to 1, a rate that is not above 0, or no rate from 0 on; one line.

    Example:
        >>> from ragtrace.settings import Settings
        >>> second_rates_of(Settings.resolve({"judge_rates": "0=0.4,0.8=0.1,none=0.2"}, {})).of(0.9)
        0.1
        >>> second_rates_of(Settings()).of(None)
        0.1
    """
    given = [str(item) for item in settings.judge.rates]
    if len(given) == 1 and "=" not in given[0]:
        rate = _second_rate(given[0], f"judge_rates: {given[0]}")
        return SecondRates(lows=(0.0,), rates=(rate,), without=rate)
    by_low: dict[float, float] = {}
    without = None
    for item in given:
        name, sign, text = item.partition("=")
        if not sign:
            raise ConfigError(f"judge_rates: {item!r} is no SCORE=RATE, for example 0.8=0.1")
        rate = _second_rate(text, f"judge_rates: {item}")
        if name.strip() == _WITHOUT:
            without = rate
        else:
            by_low[_rate(name, f"judge_rates: {item}", "a score")] = rate
    lows = sorted(by_low)
    if not lows or lows[0] != 0.0:
        raise ConfigError("judge_rates: no rate from the score 0 on; write for example 0=0.4,0.8=0.1,none=0.2")
    rates = tuple(by_low[low] for low in lows)
    return SecondRates(lows=tuple(lows), rates=rates, without=max(rates) if without is None else without)


def _second_rate(text: str, where: str) -> float:
    rate = _rate(text, where)
    if rate == 0.0:
        raise ConfigError(f"{where}: the rate must be above 0, since no mean can be right for runs never judged")
    return rate


def _rule(item: object) -> Rule:
    if isinstance(item, Rule):
        return item
    where = f"sampling_rules: {item}"
    if isinstance(item, Mapping):
        facts = {str(name): str(value) for name, value in item.items()}
    else:
        facts = dict(part.partition("=")[::2] for part in str(item).split())
    for name in facts:
        if name not in _FIELDS:
            raise ConfigError(f"{where}: unknown field {name!r}{nearest(name, _FIELDS)}")
    if "rate" not in facts:
        raise ConfigError(f"{where}: it has no rate; write for example rate=1 tag=vip")
    return Rule(rate=_rate(facts.pop("rate"), where), **facts)


def _rate(text: str, where: str, what: str = "a rate") -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:
        raise ConfigError(f"{where}: {what} lies between 0 and 1, got {text.strip()!r}")
    return rate
