"""A rebalance that waits for units under way lets the scorer end them."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.queues import KafkaAddress, KafkaQueue
from ragtrace.testing.queue import unit_of
from tests.kafka_broker import tansu

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

UNITS = 12


def until(condition):
    ends_at = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_units_end_while_a_rebalance_waits_for_them():
    with tansu() as brokers:
        address = KafkaAddress.parse(f"kafka://{brokers}/units?partitions=2", "session.timeout.ms=3000")
        first, second = KafkaQueue(address), KafkaQueue(address)  # the mock cluster may refuse the last commit
        try:
            for n in range(UNITS):
                first.put(unit_of(f"{n:032x}"))
            assert first.flush(30)
            assert first.wait_ready(30)
            jobs = first.lease(UNITS)
            assert len(jobs) == UNITS
            second.lease(1)  # joins, so that the group takes one of two partitions back
            until(lambda: any(one.is_leaving for one in list(first._consumer.assignments.values())))
            acked = []
            scorer = threading.Thread(
                target=lambda: acked.extend(map(first.ack, jobs, ["scored"] * UNITS)), daemon=True
            )
            scorer.start()
            until(lambda: first.lag.keys() != second.lag.keys() and len(second.lag) == 1)
            assert second.wait_ready(30)
            assert acked == [True] * UNITS
            assert second.lease(UNITS) == [], "their ends are committed"
        finally:
            for queue in (first, second):
                queue.close(1)
