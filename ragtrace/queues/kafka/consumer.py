"""One member of a consumer group that commits behind a watermark."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ragtrace.capture import record_internal_error
from ragtrace.queues.kafka.partition_log import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ragtrace.queues.kafka.address import KafkaAddress

_log = logging.getLogger("ragtrace")
DRAIN_S = 10.0  # that a rebalance waits for the units under way of a partition that leaves
SESSION_S = 6.0
_RETRY_S = 0.2  # before a refused commit is sent again
_REQUEST_S = 5.0
# A commit during a rebalance, or of a member that the group has given up; the watermark stays and is sent again.
_REBALANCE = frozenset(
    {
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError._STATE,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
        KafkaError._NO_OFFSET,  # noqa: SLF001
    }
)


@dataclass(slots=True, eq=False)
class Assignment:
    """A partition from its assignment to its revocation; a later one of the same partition is another object.

    Attributes:
        log: its offsets.
        is_live: false once the partition is another member's: nothing is committed or published then.
        is_leaving: true while a rebalance waits for its units under way; no further ones begin.
        unsent: units finished since the last commit was sent.
        sent: units of a commit that is not confirmed.
    """

    partition: int
    log: PartitionLog
    is_live: bool = True
    is_leaving: bool = False
    unsent: int = 0
    sent: int = 0


class Token(NamedTuple):
    """One record as its owner holds it."""

    assignment: Assignment
    offset: int


class Record(NamedTuple):
    """One fetched record with its token."""

    token: Token
    key: bytes | None
    value: bytes
    age_s: float
    is_tombstone: bool = False


@dataclass(slots=True, kw_only=True)
class GroupCalls:
    """Functions that a consumer calls in the thread that polls.

    Attributes:
        leaving: partitions that the group takes back; returns once their units under way have ended.
        gone: partitions that are another member's now.
        committed: a commit was confirmed.
    """

    leaving: Callable[[Sequence[Assignment]], None]
    gone: Callable[[Sequence[Assignment]], None]
    committed: Callable[[], None]


@dataclass(slots=True)
class _Commit:
    is_under_way: bool = False
    retry_at_s: float = 0.0
    dirty: set[Assignment] = field(default_factory=set)


class GroupConsumer:
    """Fetches the records of a topic as one member of a group. One thread polls; any thread may finish tokens.

    The watermark of a partition is committed once it or the set beyond it has changed, one commit at a time. Only
    the thread that polls calls the client: from confluent-kafka 2.16 on a call of another thread waits until `poll`
    and its callbacks have ended, and a callback may wait for a lock which that other thread holds.

    Raises:
        KafkaException: librdkafka refuses an option.
    """

    def __init__(self, address: KafkaAddress, calls: GroupCalls, error: Callable[[KafkaError], None]) -> None:
        self._topic = address.topic
        self._calls = calls
        self._lock = threading.RLock()
        self._commit = _Commit()
        self._paused: set[int] = set()
        self._bounds: dict[int, tuple[int, int]] = {}
        self.assignments: dict[int, Assignment] = {}
        self.has_joined = self._is_rebalancing = False
        self.polled_at_s = time.monotonic()
        session_ms = int(address.options.get("session.timeout.ms", SESSION_S * 1_000))
        self.session_s = session_ms / 1_000
        self._consumer = Consumer(
            {
                "heartbeat.interval.ms": min(session_ms // 3, 1_000),
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 10_000,  # a topic may be made after its reader
                "queued.min.messages": 1_000,
                "queued.max.messages.kbytes": 16_384,
                **address.client(),
                "session.timeout.ms": session_ms,
                "group.id": address.group,
                "allow.auto.create.topics": False,
                "partition.assignment.strategy": "cooperative-sticky",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "on_commit": self._on_commit,
                "error_cb": error,
            }
        )

    def join(self) -> None:
        """Ask the group for partitions."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def leave(self) -> None:
        """Give every partition back; `join` asks anew."""
        self.has_joined = False
        self._consumer.unsubscribe()
        self._consumer.poll(0.0)
        self._end(list(self.assignments.values()))

    def close(self) -> None:
        """Commit and leave the group for good."""
        self._commit_now(list(self.assignments.values()))
        self._consumer.close()
        self._end(list(self.assignments.values()))

    def poll(self, timeout_s: float) -> Record | None:
        """Return the next record; rebalances and confirmed commits are handled here."""
        message = self._consumer.poll(timeout_s)
        self.polled_at_s = time.monotonic()
        self._send()
        if message is None or message.error():
            return None
        owner = self.assignments.get(message.partition() or 0)
        if owner is None:
            return None
        offset = message.offset() or 0
        with self._lock:
            if not owner.log.begin(offset):
                self._commit.dirty.add(owner)
                return None
        _, stamp_ms = message.timestamp()
        age_s = max(time.time() - stamp_ms / 1_000, 0.0) if stamp_ms > 0 else 0.0
        key, value = _bytes(message.key()), _bytes(message.value())
        return Record(Token(owner, offset), key, value or b"", age_s, is_tombstone=value is None)

    def finish(self, tokens: Iterable[Token], *, units: int = 0) -> None:
        """Finish records of one assignment; from any thread. The next `poll` commits.

        Args:
            tokens: of the records.
            units: scored units among them, which a crash before the commit would repeat.
        """
        with self._lock:
            for owner, offset in tokens:
                if owner.log.finish(offset):
                    owner.unsent, units = owner.unsent + units, 0
                    self._commit.dirty.add(owner)

    def is_ours(self, tokens: Iterable[Token]) -> bool:
        """Tell whether records are still this member's: assigned, and the group cannot have given it up."""
        return self.is_in_session and all(token.assignment.is_live for token in tokens)

    @property
    def is_in_session(self) -> bool:
        """Whether the thread polled, or waited in a rebalance, within the session's time."""
        return self._is_rebalancing or time.monotonic() - self.polled_at_s < self.session_s

    @property
    def uncommitted(self) -> int:
        """Finished units whose commit is not confirmed; a crash would repeat them."""
        with self._lock:
            return sum(owner.unsent + owner.sent for owner in self.assignments.values())

    def pause(self, *, is_full: bool) -> None:
        """Stop fetching while there is no room, and go on after; polling keeps the membership."""
        wanted = set(self.assignments) if is_full else set()
        for partitions, call in ((wanted - self._paused, "pause"), (self._paused - wanted, "resume")):
            known = [TopicPartition(self._topic, number) for number in partitions & set(self.assignments)]
            if known:
                getattr(self._consumer, call)(known)
        self._paused = wanted

    def read_bounds(self) -> None:
        """Read `bounds` of each assigned partition, without asking the broker."""
        found = {}
        for number in list(self.assignments):
            try:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), cached=True)
            except KafkaException:
                continue
            found[number] = max(low, -1), max(high, -1)
        self._bounds = found

    def high(self, partition: int) -> int:
        """Return the offset behind the partition's last record as last read; -1 while it is unknown."""
        return self.bounds(partition)[1]

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset and that behind the last record as last read; -1 for what is unknown."""
        return self._bounds.get(partition, (-1, -1))

    # -- commits --

    def _send(self) -> None:
        with self._lock:
            commit, now_s = self._commit, time.monotonic()
            if commit.is_under_way or not commit.dirty or now_s < commit.retry_at_s:
                return
            owners = [owner for owner in commit.dirty if owner.is_live]
            commit.dirty.clear()
            offsets = self._offsets(owners)
            if not offsets:
                return
            for owner in owners:
                owner.sent, owner.unsent = owner.sent + owner.unsent, 0
            commit.is_under_way = True
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            except (KafkaException, RuntimeError) as error:  # closed, or no member
                self._fail(owners, error)

    def _offsets(self, owners: Iterable[Assignment]) -> list[TopicPartition]:
        return [
            TopicPartition(self._topic, owner.partition, owner.log.position, owner.log.metadata())
            for owner in owners
            if owner.log.position is not None
        ]

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        refused = error or next((one.error for one in partitions if one.error is not None), None)
        with self._lock:
            owners = [self.assignments[one.partition] for one in partitions if one.partition in self.assignments]
            if refused is not None:
                self._fail(owners, refused)
                return
            self._commit.is_under_way = False
            for owner in owners:
                owner.sent = 0
        self._send()
        self._calls.committed()

    def _fail(self, owners: Iterable[Assignment], error: object) -> None:
        code = error.code() if isinstance(error, KafkaError) else None
        if code not in _REBALANCE:
            record_internal_error("ragtrace.queues.kafka.commit", reason="Kafka refused a commit")
        self._commit.is_under_way = False
        self._commit.retry_at_s = time.monotonic() + _RETRY_S
        for owner in owners:
            owner.sent, owner.unsent = 0, owner.unsent + owner.sent
            self._commit.dirty.add(owner)

    def _commit_now(self, owners: Sequence[Assignment]) -> None:
        """Commit and wait; a group that has moved on refuses, and the next owner repeats what was not committed."""
        with self._lock:
            offsets = self._offsets(owners)
        if offsets:
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except (KafkaException, RuntimeError) as error:
                refused = error.args[0] if isinstance(error, KafkaException) else None
                numbers = [owner.partition for owner in owners]
                _log.info(
                    "the last commit of partitions %s was refused: %s",
                    numbers,
                    refused.name() if refused else error,
                )
                if refused is None or refused.code() not in _REBALANCE:
                    record_internal_error("ragtrace.queues.kafka.commit", error)

    # -- rebalances: called in `poll` --

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            found = consumer.committed(partitions, timeout=_REQUEST_S) if partitions else []
        except KafkaException as error:
            record_internal_error("ragtrace.queues.kafka.committed", error)
            found = partitions
        with self._lock:
            for one in found:
                offset = one.offset if one.offset >= 0 else None
                self.assignments[one.partition] = Assignment(one.partition, PartitionLog(offset, one.metadata))
            self._paused -= {one.partition for one in found}
        consumer.incremental_assign(found)
        self.has_joined = True

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        owners = self._of(partitions)
        for owner in owners:
            owner.is_leaving = True
        self._is_rebalancing = True
        try:
            self._calls.leaving(owners)
        finally:
            self.polled_at_s, self._is_rebalancing = time.monotonic(), False
        self._commit_now(owners)
        self._end(owners)
        consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._end(self._of(partitions))
        consumer.incremental_unassign(partitions)

    def _of(self, partitions: list[TopicPartition]) -> list[Assignment]:
        with self._lock:
            return [self.assignments[one.partition] for one in partitions if one.partition in self.assignments]

    def _end(self, owners: Sequence[Assignment]) -> None:
        with self._lock:
            for owner in owners:
                owner.is_live = False
                if self.assignments.get(owner.partition) is owner:
                    del self.assignments[owner.partition]
                self._commit.dirty.discard(owner)
        self._calls.gone(owners)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
