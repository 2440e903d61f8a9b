"""The Kafka queue passes the suite of all queues, on two brokers."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.queues.kafka import KafkaQueue
from ragtrace.queues.kafka.address import KafkaAddress
from ragtrace.testing import queue as suite
from tests.kafka_broker import mock_cluster, tansu

pytestmark = pytest.mark.slow


def _tests_of(cls):
    return [name for name in dir(cls) if name.startswith("test_")]


class OnBroker:
    """Queues of one topic with one partition: the first member has it until it leaves."""

    lease_s = 4.0
    handover_s = 5.0  # that the group takes at most to give a partition to another member

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _joined(cls, brokers):
        """Join the groups of all tests at once, as a join takes three seconds."""
        cls.joined = {name: cls.opened(brokers, name) for name in _tests_of(cls)}
        for queue in cls.joined.values():
            queue.lease(1)
        for queue in cls.joined.values():
            assert queue.wait_ready(60)
        yield
        for queue in cls.joined.values():
            queue.close(1)

    @classmethod
    def opened(cls, brokers, name, ended=None):
        at = KafkaAddress.parse(f"kafka://{brokers}/{name}?partitions=1")
        is_short = "lease_ran_out" in name or "heartbeat" in name
        lease_s = cls.lease_s if is_short else 60.0
        return KafkaQueue(at, ended=suite.Ends() if ended is None else ended, lease_s=lease_s)

    def setUp(self):
        self.first = None
        super().setUp()

    def make(self, ended):
        if self.first is None:
            self.first = self.joined[self._testMethodName]
            self.first._ended = self.first._buffer._ended = ended
            return self.first
        queue = self.opened(self.first.address.brokers, self._testMethodName, ended)
        assert queue.wait_ready(60)
        return queue

    def wait(self, seconds):
        time.sleep(seconds + (self.handover_s if seconds > self.lease_s else 0.0))

    def settle(self):
        assert self.queue.wait_ready(30)


class TestOnTansu(OnBroker, suite.SharedQueueConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def brokers(cls):
        with tansu() as address:
            yield address


class TestOnMockCluster(OnBroker, suite.SharedQueueConformance):
    handover_s = 20.0  # the cluster takes longer than a broker to see that a member has left

    @pytest.fixture(scope="class")
    @classmethod
    def brokers(cls):
        with mock_cluster(topics=dict.fromkeys(_tests_of(cls), 1)) as address:
            yield address
