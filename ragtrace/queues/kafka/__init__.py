"""Units on a Kafka topic, so that many hosts share one queue without a shared disk.

Owns: records, offsets, rebalances and dead letters. Imports: confluent-kafka, the queues' protocol, model, errors.
"""

from ragtrace.errors import MissingExtra

try:
    from ragtrace.queues.kafka.queue import KafkaQueue, open_kafka
except ModuleNotFoundError as error:
    raise MissingExtra("confluent-kafka", "kafka") from error

PLUGIN = open_kafka

__all__ = ["PLUGIN", "KafkaQueue"]
