"""Counters and names of all processes on a small compacted topic, one record a process."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from ragtrace.queues.base import Counters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.queues.kafka.address import KafkaAddress

SUFFIX = ".state"


@dataclass(slots=True, kw_only=True)
class ProcessState:
    """Counts of one process since its start, for the others.

    Attributes:
        at_s: Unix seconds of the record.
        ends: by (state, reason).
        names: that it published.
        wanted: units that it wanted to put in, before pressure thinned them.
        partitions: of those assigned: (watermark, finished beyond it, under way, offset behind the last record).
        sent: offset behind the last record that it produced, by partition.
    """

    at_s: float = 0.0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)
    wanted: float = 0.0
    partitions: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the state as JSON.

        Example:
            >>> ProcessState.from_bytes(ProcessState(wanted=2.0, sent={3: 9}).to_bytes()).sent
            {3: 9}
        """
        facts = {
            "at_s": self.at_s,
            "ends": [[state, reason, n] for (state, reason), n in self.ends.items()],
            "names": sorted(self.names),
            "wanted": self.wanted,
            "partitions": self.partitions,
            "sent": self.sent,
        }
        return json.dumps(facts, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> ProcessState:
        """Return the state of some JSON.

        Raises:
            ValueError: it is not one.
        """
        try:
            facts = json.loads(value)
            return cls(
                at_s=float(facts["at_s"]),
                ends=Counter({(str(state), str(reason)): int(n) for state, reason, n in facts["ends"]}),
                names=set(map(str, facts["names"])),
                wanted=float(facts["wanted"]),
                partitions={int(number): _four(row) for number, row in facts["partitions"].items()},
                sent={int(number): int(high) for number, high in facts["sent"].items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the state of a process: {error}") from error


def _four(row: Any) -> tuple[int, int, int, int]:
    watermark, ahead, leased, high = map(int, row)
    return watermark, ahead, leased, high


def counters_of_all(states: Iterable[ProcessState], *, oldest_s: float, due_s: float | None) -> Counters:
    """Return the counters of all processes; of each partition its last owner knows the watermark.

    Example:
        >>> one = ProcessState(at_s=1.0, partitions={0: (4, 1, 2, 9)}, ends=Counter({("scored", ""): 5}))
        >>> found = counters_of_all([one], oldest_s=0.0, due_s=None)
        >>> found.offered, found.ready, found.leased
        (9, 2, 2)
    """
    ends: Counter[tuple[str, str]] = Counter()
    owners: dict[int, tuple[int, int, int, int]] = {}
    highs: Counter[int] = Counter()
    wanted = 0.0
    for state in sorted(states, key=lambda one: one.at_s):
        ends.update(state.ends)
        wanted += state.wanted
        owners |= state.partitions
        for number, (*_, high) in state.partitions.items():
            highs[number] = max(highs[number], high)
        for number, high in state.sent.items():
            highs[number] = max(highs[number], high)
    none = (0, 0, 0, 0)
    waiting = {number: highs[number] - sum(owners.get(number, none)[:2]) for number in highs}
    leased = sum(min(owners.get(number, none)[2], max(n, 0)) for number, n in waiting.items())
    pending = sum(max(n, 0) for n in waiting.values())
    return Counters(
        offered=sum(ends.values()) + pending,
        ends=ends,
        ready=pending - leased,
        leased=leased,
        bytes=0,
        oldest_s=oldest_s,
        due_s=due_s,
        wanted=wanted,
    )


class SharedState:
    """Reads the state topic. Not thread-safe."""

    def __init__(self, address: KafkaAddress) -> None:
        self.topic = address.topic + SUFFIX
        self.states: dict[bytes, ProcessState] = {}
        self._positions: dict[int, int] = {}
        self._consumer = Consumer(
            address.client(
                **{
                    "group.id": f"{address.group}{SUFFIX}",  # required; nothing is committed
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 10,
                    "auto.offset.reset": "earliest",
                    "topic.metadata.refresh.interval.ms": 10_000,
                }
            )
        )

    def read(self, timeout_s: float) -> bool:
        """Read up to the end of the topic; False when the time ends first."""
        deadline = time.monotonic() + timeout_s
        try:
            left = self._assign(timeout_s)
        except KafkaException:
            return False
        while left and (wait_s := deadline - time.monotonic()) > 0.0:
            message = self._consumer.poll(wait_s)
            if message is None:
                continue
            error, number = message.error(), message.partition() or 0
            if error is None:
                self._positions[number] = (message.offset() or 0) + 1
                self._take(message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own code
                left.discard(number)
        self._reset_beyond_end(left, timeout_s)
        return not left

    def _reset_beyond_end(self, numbers: Iterable[int], timeout_s: float) -> None:
        """Begin anew on partitions that end before their position: the broker lost the topic, and has another."""
        try:
            for number in numbers:
                at = TopicPartition(self.topic, number)
                _, end = self._consumer.get_watermark_offsets(at, timeout=timeout_s)
                if self._positions.get(number, 0) > end:
                    del self._positions[number]
        except KafkaException:  # the read has failed anyway
            return

    def others(self, own: bytes) -> Mapping[bytes, ProcessState]:
        """Return the states of the other processes."""
        return {key: state for key, state in self.states.items() if key != own}

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _assign(self, timeout_s: float) -> set[int]:
        """Assign every partition at its position, so that the next fetch tells its end; return their numbers."""
        found = self._consumer.list_topics(self.topic, timeout=timeout_s).topics.get(self.topic)
        numbers = set(found.partitions) if found is not None and found.error is None else set()
        at = [TopicPartition(self.topic, n, self._positions.get(n, OFFSET_BEGINNING)) for n in numbers]
        self._consumer.assign(at)
        return numbers

    def _take(self, key: object, value: object) -> None:
        if isinstance(key, bytes) and isinstance(value, bytes):
            try:
                self.states[key] = ProcessState.from_bytes(value)
            except ValueError:  # of another program
                return
