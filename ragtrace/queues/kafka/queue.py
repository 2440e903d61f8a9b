"""The queue on a Kafka topic."""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ragtrace.capture import guarded, internal_errors, record_internal_error
from ragtrace.capture.fork import after_fork_in_child
from ragtrace.errors import QueueError
from ragtrace.queues.base import MAX_ATTEMPTS, Job, QueueStats
from ragtrace.queues.kafka.address import KafkaAddress, refusal
from ragtrace.queues.kafka.consumer import DRAIN_S, GroupCalls, GroupConsumer
from ragtrace.queues.kafka.shared_state import ProcessState, SharedState, counters_of_all
from ragtrace.queues.kafka.topics import count_partitions
from ragtrace.queues.memory import MemoryQueue, ignore_end, ignore_loss
from ragtrace.queues.payload import MOST_BYTES, from_bytes, key_of, to_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Sequence

    from confluent_kafka import Message

    from ragtrace.model import End
    from ragtrace.queues.base import Counters, Ended, Unit
    from ragtrace.queues.kafka.consumer import Assignment, Record, Token

_log = logging.getLogger("ragtrace")
DEAD_SUFFIX = ".dead"
UNIT_BYTES = 16_384
_TURN_S = 0.05
_BUSY_TURN_S = 0.01  # while units are under way, or their commit: the next turn sends it, or hears of it
_BATCH = 64
_IN_FLIGHT = 512  # records that the client holds; the others wait in the buffer, where a full one is thinned fairly
_LOOK_EVERY_S = 1.0
_LOOK_AS_PRODUCER_S = 10.0
_PUBLISH_EVERY_S = 5.0
_REQUEST_S = 2.0
_READY_S = 20.0
_TOPICS_EVERY_S = 60.0
_COUNT_S = 0.3  # a worker waits as long for the thread that reads the counts of the others
_WARN_EVERY_S = 60.0
_SILENT_S = 10.0  # without an answer of the broker, before the log tells of it
_TURN_RECORDS = 500


@dataclass(slots=True, eq=False, kw_only=True)
class ConsumedUnit:
    """A unit in this process's memory, with the records that it was made of."""

    unit: Unit
    tokens: tuple[Token, ...]
    attempt: int = 1
    due_s: float = 0.0
    size: int = 0


class _DeadLetter(NamedTuple):
    """A record for the dead letters, with the tokens that it finishes."""

    key: bytes | None
    value: bytes
    reason: str
    error: str
    tokens: tuple[Token, ...]


def open_kafka(
    address: str,
    *,
    capacity: int,
    capacity_bytes: int,
    spool_bytes: int,
    is_producer: bool,
    ended: Ended,
    config: str | None = None,
) -> KafkaQueue:
    """Open the queue of an address such as ``kafka://HOST:PORT/TOPIC``.

    Args:
        address: see `ragtrace.queues.kafka.address.FORM`.
        capacity: most units in memory, of each direction.
        capacity_bytes: most bytes of text there.
        spool_bytes: bytes on the topic from which on sampling is lowered.
        is_producer: another process scores; this one leases nothing.
        ended: called with state and reason of each end in this process.
        config: options of librdkafka, see `ragtrace.queues.kafka.address.options_of`.

    Raises:
        ConfigError: the address or an option is wrong. A broker that does not answer is none: units wait.
    """
    return KafkaQueue(
        KafkaAddress.parse(address, config),
        capacity=capacity,
        capacity_bytes=capacity_bytes,
        spool_bytes=spool_bytes,
        is_producer=is_producer,
        ended=ended,
    )


class KafkaQueue:
    """Units on a Kafka topic; a `ragtrace.queues.SharedQueue`.

    One daemon thread produces, polls and commits. `put` fills a bounded buffer in memory and never waits. A unit
    is ``spooled`` once the broker has confirmed it. Of the group's members each leases the units of its partitions.
    Their offsets are committed behind the lowest one that has no end, see `PartitionLog`, so that a crash loses
    nothing and repeats the units under way. `lease` gives out so few that units whose commit is not confirmed
    count as under way. Jobs given back wait in memory. After `MAX_ATTEMPTS` a unit goes to the topic
    ``<topic>.dead``, where a record that cannot be read goes at once.

    A rebalance first waits for the units under way of a leaving partition, at most 10 s. What has not ended then
    loses its lease, as does each job of a scorer that shows no life for `lease_s`.

    Args:
        address: brokers, topic, group and options.
        capacity: most units in memory, in the buffer and as fetched.
        capacity_bytes: most bytes of text of each.
        spool_bytes: bytes on the topic from which on sampling is lowered.
        lease_s: seconds without a call of the scorer after which its jobs are another's.
        ended: called with the end of each unit in this process: ``spooled``, or ``dropped`` with a reason.
        is_producer: another process scores; this one leases nothing.

    Raises:
        ConfigError: librdkafka refuses an option.
    """

    is_shared = True
    makes_topic = True

    def __init__(
        self,
        address: KafkaAddress,
        *,
        capacity: int = 2_048,
        capacity_bytes: int = 33_554_432,
        spool_bytes: int = 536_870_912,
        lease_s: float = 120.0,
        ended: Ended = ignore_end,
        is_producer: bool = False,
    ) -> None:
        self.address = address
        self._capacity, self._capacity_bytes, self._spool_bytes = capacity, capacity_bytes, spool_bytes
        self._lease_s, self._ended, self._is_producer = lease_s, ended, is_producer
        self._lost: Callable[[Unit, str], None] = ignore_loss
        self._buffer = MemoryQueue(capacity, capacity_bytes, ended=ended)
        self._id = f"{os.getpid()}-{uuid.uuid4().hex}".encode()
        self._own = ProcessState()
        self._told = b""
        self._counters: Counters | None = None
        self._changed = threading.Condition(threading.RLock())  # of everything below
        self._reading = threading.RLock()  # of the state topic
        self._ready: deque[ConsumedUnit] = deque()
        self._delayed: list[ConsumedUnit] = []
        self._held: dict[str, ConsumedUnit] = {}
        self._taken_up_to: dict[Assignment, int] = {}  # offset behind the last record that is in memory
        self._bytes = 0
        self._keys = itertools.count()
        self._names: set[str] = set()  # of the other processes, as last read
        self._unsent: deque[_DeadLetter] = deque()
        self._has_topics = False
        self._topics_due_s = 0.0  # a broker that leaves the request unanswered is asked again in a minute
        self._buried_at_s = -_WARN_EVERY_S
        self._outstanding = 0  # records that the broker has not confirmed
        self._wake: Callable[[], None] | None = None
        self._alive_at_s = time.monotonic()
        self._is_wanted = self._has_left = self._is_stopping = self._is_over = False
        self._is_read_at_end = False
        self._unread_since_s: float | None = None
        self._warned_at_s = -_WARN_EVERY_S
        self._is_told_away = False
        self._refused = 0
        self._looked_at_s = self._published_at_s = 0.0
        self._consumer: GroupConsumer | None = None
        try:
            self._producer = Producer(
                address.client(
                    **{
                        "partitioner": "fnv1a_random",  # as the Collector's exporter
                        "message.timeout.ms": 0,  # a broker may be away for hours
                        "message.max.bytes": MOST_BYTES + 65_536,
                        "linger.ms": 5,
                        "error_cb": self._on_error,
                        **address.options,
                    }
                )
            )
            self._state = SharedState(address)
        except KafkaException as error:
            raise refusal(error) from None
        self._thread = threading.Thread(target=self._run, name="ragtrace-kafka", daemon=True)
        self._thread.start()
        after_fork_in_child(self._leave_to_parent)

    # -- the producer's side --

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Set the function that is called when a fetched unit can be leased."""
        self._wake = None if wake is None else guarded(wake)

    def on_lost(self, lost: Callable[[Unit, str], None]) -> None:
        """Set the function that is called with each unit that is lost, and the reason."""
        self._lost = lost
        self._buffer.on_lost(lost)

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit into the buffer; return the evicted ones."""
        if self._is_stopping:
            self._lost(unit, "shutdown")
            return [unit]
        return self._buffer.put(unit)

    def stats(self) -> tuple[QueueStats, ...]:
        """Return the statistics of the buffer and of the topic, as of the last look."""
        (buffer,), counters = self._buffer.stats(), self._counters
        topic = QueueStats(
            size=counters.ready if counters else 0,
            capacity=max(self._spool_bytes // UNIT_BYTES, 1),
            oldest_s=counters.oldest_s if counters else 0.0,
            is_shared=True,
        )
        return buffer._replace(size=buffer.size + self._outstanding), topic

    def flush(self, timeout_s: float) -> bool:
        """Wait until the broker has confirmed what was put; False when the time ends first."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._buffer.size or self._outstanding), timeout_s)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Flush, commit, leave the group and end the thread; False after a loss."""
        if self._is_over:
            return True
        deadline = time.monotonic() + timeout_s
        self.flush(timeout_s)
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(max(deadline - time.monotonic(), 1.0))
        with self._changed:  # a confirmation that comes later is not counted a second time
            lost, self._outstanding, self._is_over = self._outstanding, 0, True
        for _ in range(lost):
            self._ended("dropped", "shutdown")
        return self._buffer.close(0.0) and not lost

    # -- the scorer's side --

    def lease(self, limit: int) -> list[Job]:
        """Lease at most `limit` units, those given back first; the first call joins the group."""
        self._alive_at_s = time.monotonic()
        if self._is_producer or self._is_stopping or limit <= 0:
            return []
        self._is_wanted = True
        consumer = self._consumer
        with self._changed:
            limit -= consumer.uncommitted if consumer is not None else 0
            return [self._leased(entry) for entry in self._due(limit)]

    def ack(
        self,
        job: Job,
        state: End,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,  # noqa: ARG002 - there is no transaction
    ) -> bool:
        """End a job; False when its lease was lost."""
        with self._changed:
            entry = self._taken(job)
            if entry is None:
                return False
            self._finish(entry, state, reason)
            return True

    def nack(self, job: Job, delay_s: float = 0.0, reason: str = "", *, is_attempt: bool = True) -> bool:
        """Give a job back, due in `delay_s`; False when its lease was lost."""
        with self._changed:
            entry = self._taken(job)
            if entry is None:
                return False
            entry.unit = job.unit
            if is_attempt and entry.attempt >= MAX_ATTEMPTS:
                self._own.ends["dead", reason] += 1
                self._bury(_key_of(entry.unit), to_bytes(entry.unit), reason, reason, entry.tokens)
                return True
            entry.attempt += is_attempt
            self._give_back(entry, delay_s)
            return True

    def heartbeat(self, held: Sequence[Job]) -> None:  # noqa: ARG002 - one sign of life keeps them all
        """Keep the leases of this process."""
        self._alive_at_s = time.monotonic()

    def requeue_expired(self) -> None:
        """Keep the leases of this process, and count; the group itself takes back those of others."""
        self._alive_at_s = time.monotonic()
        if self._counters is None:  # nothing of the other processes is known
            return
        if self._reading.acquire(timeout=_COUNT_S):  # else the thread counts, once the broker has answered
            try:
                self._count()
            finally:
                self._reading.release()

    def next_due_s(self) -> float | None:
        """Return the seconds until a fetched unit is due."""
        with self._changed:
            if self._ready:
                return 0.0
            return max(self._delayed[0].due_s - time.monotonic(), 0.0) if self._delayed else None

    def counters(self, *, is_fresh: bool = False) -> Counters | None:
        """Return the counters of all processes as of the last look, or fresh from any thread.

        Raises:
            QueueError: fresh, and the broker does not answer.
        """
        if is_fresh and not (self._is_read_at_end if self._is_over else self._look_anew()):
            raise QueueError(f"Kafka at {self.address.brokers} does not answer")
        return self._counters

    def publish_names(self, names: Collection[str]) -> set[str]:
        """Publish names; return those of all processes as of the last look."""
        with self._changed:
            if not self._own.names.issuperset(names):
                self._own.names |= set(names)
                self._published_at_s = 0.0
            return self._own.names | self._names

    @property
    def unread_s(self) -> float:
        """Seconds for which the broker has not answered, 0.0 when it does."""
        since_s = self._unread_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return self.address.topic

    @property
    def lag(self) -> dict[int, int]:
        """Records behind the watermark of each assigned partition; from any thread."""
        consumer, found = self._consumer, {}
        with self._changed:
            for number, owner in list(consumer.assignments.items() if consumer is not None else ()):
                log, (low, high) = owner.log, consumer.bounds(number) if consumer is not None else (0, 0)
                at = max(low, 0) if log.position is None else log.position
                found[number] = max(max(high, log.end or 0) - at - log.ahead, 0)
        return found

    @property
    def own_ends(self) -> dict[tuple[str, str], int]:
        """Units and records that this process ended, by state and reason; from any thread."""
        with self._changed:
            return dict(self._own.ends)

    def wait_ready(self, timeout_s: float) -> bool:
        """Join the group and wait until its partitions are known and what was put here is fetched.

        True at once for a producer, and while there is no room for more units.
        """
        if self._is_producer or self._is_stopping:
            return True
        self._is_wanted = True
        with self._changed:
            return self._changed.wait_for(self._is_caught_up, timeout_s)

    # -- units in memory: under the lock --

    def _due(self, limit: int) -> list[ConsumedUnit]:
        now_s = time.monotonic()
        found: list[ConsumedUnit] = []
        while len(found) < limit and self._delayed and self._delayed[0].due_s <= now_s:
            found.append(self._delayed.pop(0))
        while len(found) < limit and self._ready:
            found.append(self._ready.popleft())
        return found

    def _leased(self, entry: ConsumedUnit) -> Job:
        key = str(next(self._keys))
        self._held[key] = entry
        self._bytes -= entry.size
        return Job(unit=entry.unit, attempt=entry.attempt, key=key)

    def _taken(self, job: Job) -> ConsumedUnit | None:
        """Return the entry of a job and forget it; None when its lease was lost."""
        entry = self._held.pop(job.key, None)
        self._changed.notify_all()
        if entry is None or self._is_stopping:
            return None
        is_alive = time.monotonic() - self._alive_at_s < self._lease_s
        self._alive_at_s = time.monotonic()
        consumer = self._consumer
        if consumer is not None and is_alive and consumer.is_ours(entry.tokens):
            return entry
        if all(
            token.assignment.is_live for token in entry.tokens
        ):  # the group may have given this member up, or not
            self._give_back(entry)
        return None

    def _give_back(self, entry: ConsumedUnit, delay_s: float = 0.0) -> None:
        entry.due_s = time.monotonic() + delay_s
        self._bytes += entry.size
        if delay_s > 0.0:
            self._delayed.append(entry)
            self._delayed.sort(key=lambda one: one.due_s)
        else:
            self._ready.appendleft(entry)

    def _finish(self, entry: ConsumedUnit, state: End, reason: str) -> None:
        self._own.ends[state, reason] += 1
        self._done(entry.tokens, units=1)

    def _done(self, tokens: Iterable[Token], *, units: int = 0) -> None:
        """Finish records; a subclass waits for the other units of the same record."""
        if self._consumer is not None:
            self._consumer.finish(tokens, units=units)

    def _add(self, unit: Unit, tokens: tuple[Token, ...]) -> None:
        entry = ConsumedUnit(unit=unit, tokens=tokens, size=unit.size_bytes)
        with self._changed:
            self._ready.append(entry)
            self._bytes += entry.size
        if self._wake is not None and len(self._ready) == 1:
            self._wake()

    def _bury(self, key: bytes | None, value: bytes, reason: str, error: str, tokens: tuple[Token, ...]) -> None:
        with self._changed:
            self._unsent.append(_DeadLetter(key, value, reason, error, tokens))

    def _bury_unread(self, record: Record, reason: str, cause: str) -> None:
        """Send a record that cannot be read to the dead letters, and say so once a minute."""
        with self._changed:
            self._own.ends["invalid", "unreadable"] += 1
        self._bury(record.key, record.value, reason, cause, (record.token,))
        if time.monotonic() - self._buried_at_s >= _WARN_EVERY_S:
            self._buried_at_s = time.monotonic()
            (owner, offset), name = record.token, self.address.topic
            where = f"{name} [{owner.partition}] at {offset}"
            _log.warning("a record of %s cannot be read (%s): it went to %s", where, cause, name + DEAD_SUFFIX)

    def _is_caught_up(self) -> bool:
        consumer = self._consumer
        if consumer is None or not consumer.has_joined:
            return self._is_stopping
        if self._is_full():
            return True
        for number, owner in list(consumer.assignments.items()):
            high = max(consumer.high(number), self._own.sent.get(number, 0))
            if consumer.high(number) < 0 or self._taken_up_to.get(owner, -1) < high:
                return False
        return True

    def _is_full(self) -> bool:
        units = len(self._ready) + len(self._delayed)
        return units >= self._capacity or self._bytes >= self._capacity_bytes

    # -- the thread --

    def _run(self) -> None:
        self._make_topics()
        while not self._is_stopping:
            try:
                self._turn()
            except Exception as error:
                record_internal_error("ragtrace.queues.kafka", error)
                time.sleep(_TURN_S)
        self._end()

    def _turn(self) -> None:
        self._produce()
        self._tend()
        consumer = self._consumer
        if consumer is None:
            self._producer.poll(_TURN_S)
        else:
            consumer.pause(is_full=self._is_full())
            wait_s = _BUSY_TURN_S if self._held or consumer.uncommitted else _TURN_S
            for n in range(_TURN_RECORDS):
                record = consumer.poll(0.0 if n else wait_s)
                if record is None:
                    break
                if record.is_tombstone:  # of a compacted topic: nothing to score
                    with self._changed:
                        self._own.ends["skipped", "tombstone"] += 1
                    self._done((record.token,))
                else:
                    self._read(record)
            consumer.read_bounds()
            self._producer.poll(0.0)
        self._sweep()
        now_s = time.monotonic()
        if now_s - self._looked_at_s >= (_LOOK_EVERY_S if self._is_wanted else _LOOK_AS_PRODUCER_S):
            self._looked_at_s = now_s
            if self._look(_REQUEST_S) and not self._has_topics:
                self._make_topics()
        self._tell_silence()
        with self._changed:
            owners = consumer.assignments.values() if consumer is not None else ()
            self._taken_up_to = {owner: owner.log.end or 0 for owner in list(owners)}
            self._changed.notify_all()

    def _read(self, record: Record) -> None:
        """Take a fetched record; a subclass reads other payloads."""
        token = (record.token,)
        try:
            unit = from_bytes(record.value, key="", age_s=record.age_s, now=time.monotonic())
        except Exception as error:  # written by another version, or by another program
            self._bury_unread(record, "unreadable", type(error).__name__)
        else:
            self._add(unit, token)

    def _sweep(self) -> None:
        """Do what is due about every 50 ms; a subclass ends its traces here."""

    def _tend(self) -> None:
        """Join the group when the scorer is there, and leave it when the scorer hangs."""
        is_hung = bool(self._held) and time.monotonic() - self._alive_at_s > self._lease_s
        if self._consumer is None and self._is_wanted:
            self._consumer = GroupConsumer(
                self.address,
                GroupCalls(leaving=self._on_leaving, gone=self._on_gone, committed=self._on_committed),
                self._on_error,
            )
            self._consumer.join()
        elif self._consumer is not None and self._has_left and self._is_wanted:
            self._has_left = False
            self._consumer.join()
        elif self._consumer is not None and is_hung and not self._has_left:
            _log.warning("the scorer gave no sign of life for %.0f s; its partitions go to others", self._lease_s)
            record_internal_error("ragtrace.queues.kafka.hung", reason="the scorer gave no sign of life")
            self._has_left, self._is_wanted = True, False
            self._consumer.leave()

    # -- to the broker --

    def _produce(self) -> None:
        while self._unsent:
            self._send_dead(self._unsent[0])
            self._unsent.popleft()
        while self._outstanding < _IN_FLIGHT:
            with self._changed:  # so that a flush sees each unit in the buffer or under way
                jobs = self._buffer.lease(_BATCH)
                self._outstanding += len(jobs)
            if not jobs:
                return
            for job in jobs:
                self._send(job.unit)

    def _send(self, unit: Unit) -> None:
        try:
            payload = to_bytes(unit)
        except Exception as error:
            record_internal_error("ragtrace.queues.kafka.payload", error)
            self._refuse(unit, "internal_error")
            return
        if len(payload) > MOST_BYTES:
            self._refuse(unit, "too_large")
            return
        self._own.wanted += 1.0 / unit.factor

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None and not self._is_over:
                self._lost(unit, "spool_unwritable")
            self._on_sent(error, message)

        self._producer.produce(self.address.topic, payload, _key_of(unit), on_delivery=delivered)

    def _refuse(self, unit: Unit, reason: str) -> None:
        with self._changed:
            self._outstanding -= 1
            self._ended("dropped", reason)
        self._lost(unit, reason)

    def _on_sent(self, error: KafkaError | None, message: Message) -> None:
        with self._changed:
            if self._is_over:
                return
            self._outstanding -= 1
            if error is not None:
                is_large = error.code() == KafkaError.MSG_SIZE_TOO_LARGE
                self._refused += 1
                self._count_refusal(
                    "ragtrace.queues.kafka.produce",
                    f"Kafka at {self.address.brokers} refuses units for the topic {self.address.topic} "
                    f"({error.str()}): {self._refused} lost since the start; check that the topic exists, that its "
                    "max.message.bytes is large enough, and that this client may write to it",
                )
                self._ended("dropped", "too_large" if is_large else "spool_unwritable")
                return
            number, offset = message.partition() or 0, message.offset() or 0
            self._own.sent[number] = max(self._own.sent.get(number, 0), offset + 1)
            self._ended("spooled", "")

    def _count_refusal(self, site: str, text: str) -> None:
        """Count a loss at a site, and log the first of the process, then at most one a minute."""
        if site in internal_errors():
            self._say(text)
        else:
            self._warned_at_s = time.monotonic()
        record_internal_error(site, line=text)

    def _send_dead(self, letter: _DeadLetter) -> None:
        """Produce a dead letter; its record is finished once the broker has it."""
        topic = self.address.topic + DEAD_SUFFIX

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self._done(letter.tokens)
            else:  # finished all the same would be lost: the next owner tries again
                self._count_refusal(
                    "ragtrace.queues.kafka.dead_letter",
                    f"Kafka at {self.address.brokers} refuses a dead letter for the topic {topic} ({error.str()}): "
                    f"its record stays in {self.address.topic}; check that {topic} exists and that this client may "
                    "write to it, then start the worker again",
                )

        headers: list[tuple[str, str | bytes | None]] = [
            ("ragtrace.reason", letter.reason.encode()),
            ("ragtrace.error", letter.error.encode()),
            ("ragtrace.topic", self.address.topic.encode()),
            ("ragtrace.partition", str(letter.tokens[0].assignment.partition).encode()),
            ("ragtrace.offset", str(letter.tokens[0].offset).encode()),
        ]
        self._producer.produce(topic, letter.value, letter.key, headers=headers, on_delivery=delivered)

    def _make_topics(self) -> None:
        """Make missing topics, where the broker lets us; one that makes them itself is as good.

        Of a topic that is not ours to make nothing is made before it is there.
        """
        if time.monotonic() < self._topics_due_s:
            return
        name = self.address.topic
        topics = [
            NewTopic(name + DEAD_SUFFIX, num_partitions=1),
            NewTopic(self._state.topic, num_partitions=1, config={"cleanup.policy": "compact"}),
        ]
        if self.makes_topic:
            topics.insert(0, NewTopic(name, num_partitions=self.address.partitions))
        try:
            if not (self.makes_topic or count_partitions(self.address, _REQUEST_S)):
                return
            admin = AdminClient(self.address.client())
            for future in admin.create_topics(topics, request_timeout=_REQUEST_S).values():
                error = future.exception(_REQUEST_S)
                code = error.args[0].code() if isinstance(error, KafkaException) else None
                if code in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:  # noqa: SLF001 - tried again
                    self._topics_due_s = time.monotonic() + _TOPICS_EVERY_S
                    return
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    _log.info("the topic %s cannot be made here (%s); make it on the broker", name, error)
            self._has_topics = True
        except (KafkaException, TimeoutError, QueueError) as error:
            self._topics_due_s = time.monotonic() + (_TOPICS_EVERY_S if self.makes_topic else 0.0)
            _log.debug("the topics of %s were not made: %s", name, error)

    # -- from the group: called in the thread --

    def _on_leaving(self, owners: Sequence[Assignment]) -> None:
        """Wait for the units under way of partitions that leave; the others are dropped from memory."""
        with self._changed:
            self._drop(owners)
            is_alive = time.monotonic() - self._alive_at_s < self._lease_s
            if is_alive and not self._is_stopping:
                self._changed.wait_for(lambda: self._is_stopping or not self._under_way(owners), DRAIN_S)

    def _under_way(self, owners: Sequence[Assignment]) -> bool:
        # A job that is given back meanwhile waits for nothing.
        self._drop(owners)
        return any(token.assignment in owners for entry in self._held.values() for token in entry.tokens)

    def _drop(self, owners: Sequence[Assignment]) -> None:
        def stays(entry: ConsumedUnit) -> bool:
            return not any(token.assignment in owners for token in entry.tokens)

        self._ready = deque(filter(stays, self._ready))
        self._delayed = list(filter(stays, self._delayed))
        self._bytes = sum(entry.size for entry in (*self._ready, *self._delayed))

    def _on_gone(self, owners: Sequence[Assignment]) -> None:
        with self._changed:
            self._drop(owners)

    def _on_committed(self) -> None:
        if self._wake is not None and (self._ready or self._delayed):
            self._wake()

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL}:  # noqa: SLF001
            self._unread_since_s = self._unread_since_s or time.monotonic()
            self._is_told_away |= self._say(f"Kafka at {self.address.brokers} cannot be reached ({error.str()})")

    def _tell_silence(self) -> None:
        if self.unread_s >= _SILENT_S:
            text = f"Kafka at {self.address.brokers} has not answered for {self.unread_s:.0f} s"
            self._is_told_away |= self._say(text)

    def _say(self, text: str) -> bool:
        """Log a warning, at most one a minute; return whether it was logged."""
        if time.monotonic() - self._warned_at_s < _WARN_EVERY_S:
            return False
        self._warned_at_s = time.monotonic()
        _log.warning("%s", text)
        return True

    # -- counters --

    def _places(self) -> dict[int, tuple[int, int, int, int]]:
        """Return watermark, finished beyond it, under way and end of each assigned partition."""
        consumer = self._consumer
        if consumer is None:
            return {}
        with self._changed:
            held = [token.assignment for entry in self._held.values() for token in entry.tokens]
            places = {}
            for number, owner in list(consumer.assignments.items()):
                log, high = owner.log, max(consumer.high(number), owner.log.end or 0)
                if log.position is not None:
                    places[number] = (log.position, log.ahead, held.count(owner), high)
            return places

    def _look(self, timeout_s: float, *, is_fresh: bool = False) -> bool:
        """Publish this process's state, and read that of the others; False when the broker does not answer."""
        self._publish(is_due=is_fresh)
        if is_fresh:
            self._producer.flush(timeout_s)
        with self._reading:
            if self._is_over or not self._state.read(timeout_s):
                self._unread_since_s = self._unread_since_s or time.monotonic()
                return False
            away_s, self._unread_since_s = self.unread_s, None
            if self._is_told_away:
                self._is_told_away = False
                _log.info("Kafka at %s answers again, after %.0f s", self.address.brokers, away_s)
            self._count()
        return True

    def _look_anew(self) -> bool:
        return self.wait_ready(_READY_S) and self._look(_REQUEST_S, is_fresh=True)

    def _count(self) -> None:
        if self._unread_since_s is not None:  # partitions may be lost by now, and their counts with them
            return
        others = self._state.others(self._id).values()
        states = [*others, self._own]
        with self._changed:
            self._names = set().union(*(state.names for state in others))
            self._own.at_s, self._own.partitions = time.time(), self._places()
            oldest_s = time.monotonic() - self._ready[0].unit.offered_at if self._ready else 0.0
            self._counters = counters_of_all(states, oldest_s=max(oldest_s, 0.0), due_s=self.next_due_s())

    def _publish(self, *, is_due: bool) -> None:
        now_s = time.monotonic()
        if not (self.makes_topic or self._has_topics):  # to produce may make a topic beside one that is not there
            return
        if not is_due and now_s - self._published_at_s < _PUBLISH_EVERY_S:
            return
        with self._changed:
            self._published_at_s = now_s
            self._own.partitions, self._own.at_s = self._places(), 0.0
            facts = self._own.to_bytes()
            if facts != self._told:
                self._told = facts
                self._own.at_s = time.time()
                self._producer.produce(self._state.topic, self._own.to_bytes(), self._id)

    # -- the end --

    def _end(self) -> None:
        try:
            self._is_read_at_end = self._unread_since_s is None and self._look(_REQUEST_S, is_fresh=True)
            if self._consumer is not None:
                self._consumer.close()
            with self._reading:
                self._state.close()
            self._producer.flush(_REQUEST_S)
        except Exception as error:
            record_internal_error("ragtrace.queues.kafka.close", error)

    def _leave_to_parent(self) -> None:
        """Keep the parent's clients alive in a forked child: to free them would wait for threads it has not."""
        self._is_stopping = self._is_over = True
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


def _key_of(unit: Unit) -> bytes:
    """Return the key of a unit's record: its trace id, so that a trace stays on one partition."""
    return (unit.record.trace_id or key_of(unit)).encode()
