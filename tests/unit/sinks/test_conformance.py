"""The sinks of ragtrace pass the suite that other packages run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ragtrace.sinks import ConsoleSink, LangfuseSink, MlflowSink, PhoenixSink, WebhookSink
from ragtrace.testing.sink import SinkConformance, scored_record
from tests import make
from tests.unit.sinks.server import Scripted


class TestConsoleSink(SinkConformance):
    def make(self):
        return ConsoleSink()


def serve(case):
    case.server = Scripted()
    case.addCleanup(case.server.close)
    return case.server.url


class OfTraces:
    """The case of sinks that write to traces."""

    def test_a_record_that_never_was_a_trace_is_left_out(self):
        record, scores = scored_record()
        self.emitted(replace(record, trace_id="", span_id=""), scores)
        assert self.end("close")
        assert self.server.requests == []


class TestPhoenixSink(OfTraces, SinkConformance):
    def make(self):
        return PhoenixSink(serve(self))


class TestLangfuseSink(OfTraces, SinkConformance):
    def make(self):
        return LangfuseSink(serve(self), public_key="pk", secret_key="sk", content="full")

    def received(self, sink):
        posts = [body for path, _, body in self.server.requests if path.endswith("/scores")]
        return len({row["traceId"] for rows in posts for row in rows})


class TestMlflowSink(OfTraces, SinkConformance):
    def make(self):
        return MlflowSink(serve(self), content="full")

    def received(self, sink):
        return len({path for path, _, _ in self.server.requests})


class TestWebhookSink(SinkConformance):
    def make(self):
        return WebhookSink(serve(self), content="full")


class TestStore(SinkConformance):
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path):
        self.path = tmp_path / "scores.sqlite"

    def make(self):
        return make.store(self.path)

    def received(self, sink):
        return len({row["trace_id"] for row in sink.rows()})
