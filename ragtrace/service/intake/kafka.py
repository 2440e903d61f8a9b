"""The intake of a Kafka topic: traces into units of the service whose queue reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, QueueError
from ragtrace.ingest.assembly.assembler import AssemblyLimits
from ragtrace.ingest.kafka_traces import SCHEME, KafkaTraces
from ragtrace.queues.kafka.topics import count_partitions
from ragtrace.service.intake.foreign import ForeignScores
from ragtrace.service.intake.hints import Hints
from ragtrace.service.intake.units import TraceUnits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.service.service import Service

_ANSWER_S = 10.0


def read_traces(service: Service, *, settle_s: float, say: Callable[[str], None] = lambda _line: None) -> None:
    """Connect a service to the traces on its Kafka topic; call it before the service begins.

    Args:
        service: draws, counts and scores.
        settle_s: seconds without a span that end a trace with its root.
        say: takes one line for a person; each is said once.

    Raises:
        ConfigError: its queue is of another kind.
    """
    queue = service.queue
    if not isinstance(queue, KafkaTraces):
        raise ConfigError(f"worker: the queue is no {SCHEME}:// address")
    storing = service.storing
    foreign, hints = ForeignScores(None if storing is None else storing.rate, say), Hints(say)
    queue.read_with(
        lambda assembler: TraceUnits(service, assembler, foreign, hints), AssemblyLimits(settle_s=settle_s)
    )


def why_unread(service: Service) -> str:
    """Return why the topic of a service cannot be read now, "" where it can be."""
    queue = service.queue
    if not isinstance(queue, KafkaTraces):
        return ""
    try:
        return "" if count_partitions(queue.address, _ANSWER_S) else f"topic {queue.topic} does not exist"
    except QueueError as error:
        return str(error)
