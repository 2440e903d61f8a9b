"""The Kafka queue passes the suite of all queues, on two brokers."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.queues import KafkaAddress, KafkaQueue
from ragtrace.testing import queue as suite
from tests.kafka_broker import mock_cluster, tansu

pytestmark = pytest.mark.slow

# Tests with queues that join before the test begins; elsewhere a second queue joins when it is made.
OTHERS = {
    "test_a_job_whose_lease_ran_out_is_another_scorer_s": 1,
    "test_a_heartbeat_keeps_a_lease": 1,
    "test_counters_add_up_for_every_process": 1,
    "test_names_reach_the_other_processes": 2,
}


def _tests_of(cls):
    return [name for name in dir(cls) if name.startswith("test_")]


class OnBroker:
    """Queues of one topic with one partition: the first member has it until it leaves."""

    lease_s = 3.0
    config = "session.timeout.ms=3000"  # a rebalance lasts nearly as long on the mock cluster

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _joined(cls, brokers):
        """Join the groups of all tests at once, as a join takes three seconds; the first members before the others."""
        cls.joined = {name: [cls.opened(brokers, name)] for name in _tests_of(cls)}
        cls.ready(queues[0] for queues in cls.joined.values())
        for name, count in OTHERS.items():
            cls.joined[name] += [cls.opened(brokers, name) for _ in range(count)]
        cls.ready(queue for name in OTHERS for queue in cls.joined[name][1:])
        yield
        for queues in cls.joined.values():
            for queue in queues:
                queue.close(1)

    @staticmethod
    def ready(queues):
        joining = list(queues)
        for queue in joining:
            queue.lease(1)
        for queue in joining:
            assert queue.wait_ready(60)

    @classmethod
    def opened(cls, brokers, name, ended=None):
        at = KafkaAddress.parse(f"kafka://{brokers}/{name}?partitions=1", cls.config)
        is_short = "lease_ran_out" in name or "heartbeat" in name
        lease_s = cls.lease_s if is_short else 60.0
        return KafkaQueue(at, ended=suite.Ends() if ended is None else ended, lease_s=lease_s)

    def setUp(self):
        self.made = []
        super().setUp()

    def make(self, ended):
        waiting = self.joined[self._testMethodName]
        if waiting:
            queue = waiting.pop(0)
            queue._ended = queue._buffer._ended = ended
        else:
            queue = self.opened(self.made[0].address.brokers, self._testMethodName, ended)
            assert queue.wait_ready(60)
        self.made.append(queue)
        return queue

    def wait(self, seconds):
        time.sleep(seconds)
        if seconds > self.lease_s:  # then the group gives the partition to another member
            ends_at = time.monotonic() + 60
            while self.made[1].next_due_s() is None:
                assert time.monotonic() < ends_at
                time.sleep(0.05)

    def settle(self):
        assert self.queue.wait_ready(30)


class TestOnTansu(OnBroker, suite.SharedQueueConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def brokers(cls):
        with tansu() as address:
            yield address


class TestOnMockCluster(OnBroker, suite.SharedQueueConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def brokers(cls):
        with mock_cluster(topics=dict.fromkeys(_tests_of(cls), 1)) as address:
            yield address
