"""Parse sampling rates from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, nearest
from ragtrace.metrics.registry import select
from ragtrace.sampling import Rates, Rule

if TYPE_CHECKING:
    from ragtrace.settings import Settings

_FIELDS = ("rate", "workflow", "tag", "model", "outcome")


def rates_of(settings: Settings) -> Rates:
    """Return the sampling rates of settings.

    Raises:
        ConfigError: a metric or a field is unknown, or a rate is not a number from 0 to 1; one line that quotes it.

    Example:
        >>> from ragtrace.settings import Settings
        >>> rates = rates_of(Settings(metric_rates=("nuggets=0.01",), sampling_rules=("rate=1 tag=vip",)))
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


def _rate(text: str, where: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:
        raise ConfigError(f"{where}: a rate lies between 0 and 1, got {text.strip()!r}")
    return rate
