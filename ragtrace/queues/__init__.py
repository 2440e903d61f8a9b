"""Queues between capture and scorer.

Owns: units waiting to be scored, within bounds. Imports: model and errors.
"""

from ragtrace.queues.base import Job, Queue, QueueStats, SharedQueue, Unit
from ragtrace.queues.memory import MemoryQueue

__all__ = ["Job", "MemoryQueue", "Queue", "QueueStats", "SharedQueue", "Unit"]
