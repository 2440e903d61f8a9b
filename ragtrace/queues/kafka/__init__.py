"""Units on a Kafka topic, so that many hosts share one queue without a shared disk.

Owns: records, offsets, rebalances and dead letters. Imports: confluent-kafka, the queues' protocol, model, errors.
"""

from ragtrace.queues.kafka.queue import KafkaQueue, open_kafka

PLUGIN = open_kafka

__all__ = ["PLUGIN", "KafkaQueue"]
