"""The sinks of ragtrace pass the suite that other packages run."""

from __future__ import annotations

import pytest

from ragtrace.sinks.console import ConsoleSink
from ragtrace.sinks.phoenix import PhoenixSink
from ragtrace.stores.sqlite import SqliteStore
from ragtrace.testing.sink import SinkConformance
from tests.unit.sinks.server import Scripted


class TestConsoleSink(SinkConformance):
    def make(self):
        return ConsoleSink()


class TestPhoenixSink(SinkConformance):
    def make(self):
        server = Scripted()
        self.addCleanup(server.close)
        return PhoenixSink(server.url)


class TestStore(SinkConformance):
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path):
        self.path = tmp_path / "scores.sqlite"

    def make(self):
        return SqliteStore(self.path)

    def received(self, sink):
        return len({row["trace_id"] for row in sink.rows()})
