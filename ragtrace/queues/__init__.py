"""Queues between capture and scorer.

Owns: units waiting to be scored, within bounds. Imports: model and errors.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.queues.base import Job, Queue, QueueStats, SharedQueue, Unit
from ragtrace.queues.memory import MemoryQueue

if TYPE_CHECKING:
    from ragtrace.queues.base import MAX_ATTEMPTS
    from ragtrace.queues.kafka import KafkaQueue
    from ragtrace.queues.kafka.address import KafkaAddress
    from ragtrace.queues.kafka.partition_log import MOST_METADATA, PartitionLog
    from ragtrace.queues.payload import MOST_BYTES, from_bytes, key_of, to_bytes
    from ragtrace.queues.registry import open_queue
    from ragtrace.queues.spool import Entry, Spool
    from ragtrace.queues.sqlite import UNIT_BYTES, SqliteQueue
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "base": "MAX_ATTEMPTS",
            "kafka": "KafkaQueue",
            "kafka.address": "KafkaAddress",
            "kafka.partition_log": "MOST_METADATA PartitionLog",
            "payload": "MOST_BYTES from_bytes key_of to_bytes",
            "registry": "open_queue",
            "spool": "Entry Spool",
            "sqlite": "SqliteQueue UNIT_BYTES",
        },
    )

__all__ = [
    "Job",
    "MemoryQueue",
    "Queue",
    "QueueStats",
    "SharedQueue",
    "Unit",
]
