"""The default OTLP address that nobody configured, and the log lines of exporters that fail."""

from __future__ import annotations

import logging
import socket

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from ragtrace.telemetry import CountedSpans, Delivery, default_listener, exporter_names, providers
from ragtrace.telemetry.setup import collector
from ragtrace.testing.otlp import OtlpReceiver

SIGNALS = ("TRACES", "METRICS", "LOGS")


@pytest.fixture
def free_port(monkeypatch):
    """A port where nobody listens, as the default of both protocols."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(collector, "_PORTS", {"http/protobuf": port, "grpc": port})
    monkeypatch.setattr(collector, "_warned", set())
    for signal in SIGNALS:
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
    return port


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    monkeypatch.setattr(collector._few_lines, "_last", {})


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_absent_default_collector_is_one_warning_and_owes_nothing(free_port, monkeypatch, caplog, protocol):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    found = providers()
    for _ in range(3):
        found.tracer().start_span("unheard").end()
        found.meters()[0].create_counter("c").add(1)
        assert found.flush(5.0)
    assert found.shutdown(5.0)
    assert found.unsent() == {}
    (line,) = caplog.messages
    assert line.startswith(f"ragtrace: no OpenTelemetry collector answers at localhost:{free_port}, so ")
    assert len(line) < 2 * 120
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in line


def test_a_collector_that_starts_later_gets_what_comes_then(free_port, spans):
    with OtlpReceiver() as receiver:
        delivery = Delivery("spans")
        exporter = OTLPSpanExporter(endpoint=f"{receiver.endpoint}/v1/traces")
        counted = CountedSpans(exporter, delivery, default_listener("http/protobuf"))
        for _ in range(2):
            spans.tracer.start_span("x").end()
        batch = spans.finished
        delivery.took(4)
        assert counted.export(batch) is SpanExportResult.SUCCESS
        assert receiver.requests == []
        collector._PORTS["http/protobuf"] = receiver.port
        again = CountedSpans(exporter, delivery, default_listener("http/protobuf"))
        again.export(batch)
        assert len(receiver.spans) == 2
        assert delivery.unsent == 0
        assert delivery.is_whole()


@pytest.mark.parametrize("setting", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_an_endpoint_that_somebody_set_keeps_its_error_but_one_a_minute(
    free_port, quick, monkeypatch, caplog, setting
):
    monkeypatch.setenv(setting, f"http://127.0.0.1:{free_port}")
    for other in ("METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{other}_EXPORTER", "none")
    found = providers()
    for _ in range(4):
        found.tracer().start_span("lost").end()
        assert not found.flush(5.0)
    found.shutdown(1.0)
    failed = [line for line in caplog.messages if line.startswith("Failed to export spans")]
    assert len(failed) == 1
    assert found.unsent() == {"spans": 4}


def test_lines_of_the_application_s_own_exporter_are_left_alone(caplog):
    collector.spare_log()
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    for place in range(3):
        logger.error("Failed to export %s", place, exc_info=ConnectionError(place))
    assert [record.exc_info is not None for record in caplog.records] == [True] * 3


def test_a_traceback_of_our_own_exporter_becomes_one_line(quick, caplog):
    collector.spare_log()
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    with collector.own_export():
        for place in range(3):
            logger.error("Failed to export %s", place, exc_info=ConnectionError(place))
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [("Failed to export 0", None)]


def test_exporters_of_other_tools_are_one_warning_and_the_rest_goes_on(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "jaeger,console")
    assert exporter_names("TRACES") == ["console"]
    assert exporter_names("TRACES") == ["console"]
    assert caplog.messages == [
        "OTEL_TRACES_EXPORTER=jaeger is not supported and is ignored; otlp, console and none are"
    ]
