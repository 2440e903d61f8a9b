"""Address of a Kafka topic, and the options of the client."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM = "kafka://HOST:PORT[,HOST:PORT]/TOPIC[?group=NAME&partitions=N]"
_OPTIONS = ("group", "partitions")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,240}")  # 249 is Kafka's limit, and ours have a suffix
# Offsets are committed behind the watermark of finished units, so that these are not a person's to change.
_OURS = (
    "bootstrap.servers",
    "group.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "logger",
    "group.protocol",
)
_PROPERTY = re.compile(r'property:? "?([\w.]+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAddress:
    """One topic, the consumer group of its scorers, and options of librdkafka.

    Attributes:
        brokers: ``HOST:PORT``, with commas.
        group: of the scorers; by default the topic's name behind ``ragtrace.``.
        partitions: of a topic that is made here.
        options: by librdkafka's names, from the file; they may hold secrets and are never shown.

    Example:
        >>> at = KafkaAddress.parse("kafka://10.0.0.7:9092/units?group=blue")
        >>> at.brokers, at.topic, at.group
        ('10.0.0.7:9092', 'units', 'blue')
        >>> KafkaAddress.parse("kafka://10.0.0.7:9092")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: queue: the address names no topic; write kafka://HOST:PORT[,HOST:PORT]/TOPIC[?group=NAME&partitions=N]
    """

    brokers: str
    topic: str
    group: str
    partitions: int = 12
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, text: str, config: str | None = None) -> KafkaAddress:
        """Return the parts of an address.

        Args:
            text: the address.
            config: options of librdkafka as `options_of` takes them.

        Raises:
            ConfigError: a part is missing, wrong or unknown, or the file cannot be read.
        """
        parts = urlsplit(text)
        if "@" in parts.netloc:
            raise ConfigError(
                "queue: an address holds no login; put sasl.username and sasl.password into kafka_config"
            )
        topic = parts.path.strip("/")
        if not parts.netloc or not topic:
            raise ConfigError(f"queue: the address names no {'topic' if parts.netloc else 'broker'}; write {FORM}")
        if not _TOPIC.fullmatch(topic):
            raise ConfigError(f"queue: {topic!r} is not a topic of Kafka (letters, digits, dot, dash, underscore)")
        given = dict(parse_qsl(parts.query))
        for name in given:
            if name not in _OPTIONS:
                raise ConfigError(f"queue: unknown option {name!r} in the address{nearest(name, _OPTIONS)}")
        count = given.get("partitions", "12")
        if not (count.isdecimal() and 0 < int(count) <= 10_000):
            raise ConfigError(f"queue: partitions={count} must be a whole number from 1 to 10000")
        options = options_of(config) if config else {}
        return cls(
            brokers=parts.netloc,
            topic=topic,
            group=given.get("group") or f"ragtrace.{topic}",
            partitions=int(count),
            options=options,
        )

    def client(self, **more: object) -> dict[str, Any]:
        """Return librdkafka's configuration of one client."""
        return {**self.options, "bootstrap.servers": self.brokers, "logger": client_log(), **more}


def options_of(config: str) -> dict[str, str]:
    """Return ``KEY=VALUE`` lines, or those of a file, as options of librdkafka.

    Raises:
        ConfigError: the file cannot be read, or a line is wrong. Values are not repeated.

    Example:
        >>> options_of("security.protocol=SASL_SSL")
        {'security.protocol': 'SASL_SSL'}
    """
    try:
        text = config if "=" in config else Path(config).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"kafka_config: the file cannot be read: {reason}") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not equals:
            raise ConfigError(f"kafka_config: line {number} is not KEY=VALUE")
        if name in _OURS:
            raise ConfigError(f"kafka_config: line {number}: {name} is set by ragtrace; remove the line")
        found[name] = value
    return found


def refusal(error: Exception) -> ConfigError:
    """Return the error of options that librdkafka refuses, without their values."""
    named = _PROPERTY.search(str(error))
    what = f"the option {named.group(1)!r}" if named else "an option"
    return ConfigError(f"kafka_config: Kafka's client refuses {what}; correct it")


def client_log() -> logging.Logger:
    """Return the log of librdkafka, silent by default: a broker that is down would fill it."""
    log = logging.getLogger("ragtrace.kafka")
    if log.level == logging.NOTSET:
        log.setLevel(logging.CRITICAL + 1)
    return log
