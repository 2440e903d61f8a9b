"""The queues of ragtrace pass the suite that other packages run."""

from __future__ import annotations

import pytest

from ragtrace.queues import MemoryQueue, SqliteQueue
from ragtrace.testing import queue as suite
from tests.unit.queues.conftest import HandClock


class TestMemoryQueue(suite.QueueConformance):
    def setUp(self):
        self.clock = HandClock()
        super().setUp()

    def make(self, ended):
        return MemoryQueue(ended=ended, clock=self.clock.now)

    def wait(self, seconds):
        self.clock.at += seconds


class TestSqliteQueue(suite.SharedQueueConformance):
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path):
        self.path, self.clock = tmp_path / "spool.sqlite", HandClock()

    def make(self, ended):
        return SqliteQueue(self.path, ended=ended, clock=self.clock, lease_s=self.lease_s)

    def wait(self, seconds):
        self.clock.at += seconds
