"""Spans larger than a receiver takes at once, over real OTLP, gRPC and HTTP."""

from __future__ import annotations

import pytest

from ragtrace.telemetry import providers
from ragtrace.testing.otlp import OtlpReceiver


@pytest.fixture(params=["http/protobuf", "grpc"])
def receiver(request, monkeypatch):
    with OtlpReceiver(request.param) as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        for signal in ("TRACES", "METRICS", "LOGS"):
            monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
        yield receiver


def test_spans_beyond_a_receivers_four_megabytes_arrive_all(receiver):
    found = providers()
    for number in range(60):
        found.tracer().start_span(f"s{number}", attributes={"text": "x" * 200_000}).end()
    assert found.flush(30.0)
    assert len(receiver.spans) == 60
    assert found.shutdown(10.0)
