"""A broker that stops answering holds no application up, and units reach it once it is back."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from confluent_kafka import KafkaError

from ragtrace.errors import QueueError
from ragtrace.queues import KafkaAddress, KafkaQueue
from ragtrace.testing.queue import Ends, names_of, unit_of
from tests.environments import free_port
from tests.kafka_broker import start_tansu

pytestmark = pytest.mark.slow

UNITS = 1_000


def test_units_wait_for_a_broker_that_is_away():
    port, ends = free_port(), Ends()
    broker = start_tansu(port)
    queue = KafkaQueue(KafkaAddress.parse(f"kafka://127.0.0.1:{port}/units?partitions=1"), ended=ends)
    try:
        assert queue.wait_ready(60)
        broker.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        for n in range(UNITS):
            assert queue.put(unit_of(str(n))) == []
        assert time.monotonic() - began < 5.0  # loose: a put that waited for the broker would take minutes
        assert not queue.flush(1.0)
        broker.send_signal(signal.SIGCONT)
        assert queue.flush(60)
        assert queue.wait_ready(60)
        found, ends_at = [], time.monotonic() + 60
        while len(found) < UNITS and time.monotonic() < ends_at:
            jobs = queue.lease(50)
            found += names_of(jobs)
            for job in jobs:
                queue.ack(job, "scored")
        assert sorted(found, key=int) == [str(n) for n in range(UNITS)]
        assert ends == {("spooled", ""): UNITS}
    finally:
        broker.send_signal(signal.SIGCONT)
        queue.close(5)
        broker.kill()
        broker.wait()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_ends_without_its_parent_s_clients():
    port = free_port()
    broker = start_tansu(port)
    queue = KafkaQueue(KafkaAddress.parse(f"kafka://127.0.0.1:{port}/units?partitions=1"))
    try:
        assert queue.wait_ready(60)
        child = os.fork()
        if not child:
            unit = unit_of("late")
            is_refused = queue.put(unit) == [unit]
            queue.close(1.0)
            del queue  # freeing the clients would wait for threads that a child has not
            os._exit(0 if is_refused else 1)
        ends_at = time.monotonic() + 30
        while (found := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < ends_at:
            time.sleep(0.05)
        if found == (0, 0):
            os.kill(child, signal.SIGKILL)
        assert found == (child, 0)
        assert queue.put(unit_of("a")) == []
        assert queue.flush(30)
    finally:
        queue.close(5)
        broker.kill()
        broker.wait()


def test_nothing_waits_for_a_broker_that_is_not_there():
    ends, began = Ends(), time.monotonic()
    address = KafkaAddress.parse(f"kafka://127.0.0.1:{free_port()}/units")
    queue = KafkaQueue(address, is_producer=True, ended=ends)
    try:
        for n in range(3):
            assert queue.put(unit_of(str(n))) == []
            assert queue.publish_names({str(n)}) == set(map(str, range(n + 1)))
            queue.requeue_expired()
        assert time.monotonic() - began < 1.0
        assert queue.counters() is None, "before the first look"
        while not queue.unread_s:
            assert time.monotonic() - began < 60
            time.sleep(0.02)
        looks_end = time.monotonic() + 3.0
        while time.monotonic() < looks_end:  # while the thread waits for the broker, too
            asked = time.monotonic()
            queue.publish_names({"a"})
            queue.requeue_expired()
            assert time.monotonic() - asked < 1.0
            time.sleep(0.05)
    finally:
        assert not queue.close(0.5)
    assert ends == {("dropped", "shutdown"): 3}, "what never reached the broker is told as lost"


def test_counts_are_the_last_known_ones_while_the_broker_is_away(caplog):
    caplog.set_level("INFO", "ragtrace")
    port = free_port()
    broker = start_tansu(port)
    address = f"kafka://127.0.0.1:{port}/units?partitions=1"
    queue = KafkaQueue(KafkaAddress.parse(address, "session.timeout.ms=3000"))
    try:
        for n in range(20):
            queue.put(unit_of(str(n)))
        assert queue.flush(60)
        assert queue.wait_ready(60)
        for job in queue.lease(5):
            assert queue.ack(job, "scored")
        assert queue.counters(is_fresh=True).pending == 15
        assert queue.lag.keys() == {0}
        broker.send_signal(signal.SIGSTOP)
        ends_at = time.monotonic() + 60
        while queue.lag:  # the group's session is over, and the partition another's
            assert time.monotonic() < ends_at
            queue.requeue_expired()
            time.sleep(0.1)
        assert queue.unread_s > 0.0
        queue.requeue_expired()
        assert queue.counters().pending == 15
        silent, again = f"Kafka at 127.0.0.1:{port} has not answered for 10 s", "answers again, after 1"
        while silent not in caplog.text:
            assert time.monotonic() < ends_at, caplog.text
            time.sleep(0.1)
        assert again not in caplog.text
        broker.send_signal(signal.SIGCONT)
        while again not in caplog.text:
            assert time.monotonic() < ends_at, caplog.text
            time.sleep(0.1)
    finally:
        broker.send_signal(signal.SIGCONT)
        queue.close(20)
        broker.kill()
        broker.wait()
    assert queue.counters(is_fresh=True).ends == {("scored", ""): 5}, "as read at the end"


def test_a_broker_that_lost_its_topics_is_read_again():
    port = free_port()
    broker = start_tansu(port)
    queue = KafkaQueue(KafkaAddress.parse(f"kafka://127.0.0.1:{port}/units?partitions=1"), is_producer=True)

    def is_read(before_s=60.0):
        ends_at = time.monotonic() + before_s
        while time.monotonic() < ends_at:
            with suppress(QueueError):
                return queue.counters(is_fresh=True)
        return None

    try:
        for n in range(8):  # so that the topic ends far behind where the next one does
            queue.publish_names({str(n)})
            assert is_read()
        broker.kill()
        broker.wait()
        broker = start_tansu(port)
        assert queue.put(unit_of("a")) == []
        assert queue.flush(60)
        assert is_read()
    finally:
        queue.close(5)
        broker.kill()
        broker.wait()


def test_a_refused_unit_is_told_with_the_number_and_the_next_step(caplog):
    ends, port = Ends(), free_port()
    queue = KafkaQueue(KafkaAddress.parse(f"kafka://127.0.0.1:{port}/units"), is_producer=True, ended=ends)
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    try:
        queue._on_sent(refused, None)
        assert ends == {("dropped", "spool_unwritable"): 1}
        assert (
            f"Kafka at 127.0.0.1:{port} refuses units for the topic units ({refused.str()}): 1 lost" in caplog.text
        )
        assert "check that the topic exists" in caplog.text
    finally:
        queue._outstanding = 0
        queue.close(0.5)
