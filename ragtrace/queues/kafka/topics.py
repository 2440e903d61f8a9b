"""Looks at a topic without making it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException

from ragtrace.errors import QueueError
from ragtrace.queues.kafka.address import refusal

if TYPE_CHECKING:
    from ragtrace.queues.kafka.address import KafkaAddress


def count_partitions(address: KafkaAddress, timeout_s: float) -> int:
    """Return the number of a topic's partitions, 0 where there is no such topic.

    Raises:
        ConfigError: the client refuses an option.
        QueueError: the broker does not answer in time, or does not let us see the topic.
    """
    try:
        consumer = Consumer(address.client(**{"group.id": address.group, "allow.auto.create.topics": False}))
    except KafkaException as error:
        raise refusal(error) from None
    try:
        found = consumer.list_topics(address.topic, timeout=timeout_s).topics.get(address.topic)
    except KafkaException as error:
        raise QueueError(f"Kafka at {address.brokers} does not answer") from error
    finally:
        consumer.close()
    if found is None or (found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
        return 0
    if found.error is not None:
        raise QueueError(f"topic {address.topic}: {found.error.str()}")
    return len(found.partitions)
