"""The exporters of OpenTelemetry's Python SDK against the receiver."""

from __future__ import annotations

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

from ragtrace.ingest import ListenAddress, Receiver
from tests.unit.ingest.receiving.requests import Kept

HEADERS = {"authorization": "Bearer open sesame"}


@pytest.fixture(params=["none", "gzip"])
def packing(request):
    return request.param


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def receiver(kept):
    with Receiver(kept, grpc=ListenAddress(), http=ListenAddress(), token="open sesame") as started:
        yield started


def http(receiver, path, packing):
    return {
        "endpoint": f"http://127.0.0.1:{receiver.http_port}{path}",
        "headers": HEADERS,
        "compression": Compression.Gzip if packing == "gzip" else Compression.NoCompression,
    }


def over_grpc(receiver, packing):
    return {
        "endpoint": f"http://127.0.0.1:{receiver.grpc_port}",
        "headers": HEADERS,
        "insecure": True,
        "compression": grpc.Compression.Gzip if packing == "gzip" else grpc.Compression.NoCompression,
    }


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_spans_of_the_sdk_arrive(receiver, kept, packing, protocol):
    exporter = (
        GrpcSpans(**over_grpc(receiver, packing)) if protocol == "grpc"
        else HttpSpans(**http(receiver, "/v1/traces", packing))
    )  # fmt: skip
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("my.scope")
    with tracer.start_as_current_span("chain"):
        for number in range(700):
            with tracer.start_as_current_span("chat", attributes={"n": number, "text": "x" * 500}):
                pass
    provider.shutdown()
    assert kept.names == ["chain"] + ["chat"] * 700
    assert {raw.scope for raw in kept.spans} == {"my.scope"}
    assert kept.spans[0].resource.attributes[0].value.string_value == "shop"


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_evaluation_events_of_the_sdk_arrive_and_other_logs_are_left_out(receiver, kept, packing, protocol):
    exporter = (
        GrpcLogs(**over_grpc(receiver, packing)) if protocol == "grpc"
        else HttpLogs(**http(receiver, "/v1/logs", packing))
    )  # fmt: skip
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    logger = provider.get_logger("tests")
    logger.emit(event_name="gen_ai.evaluation.result", attributes={"gen_ai.evaluation.name": "relevance"})
    logger.emit(body="told of gen_ai.evaluation.result", severity_text="INFO")
    provider.shutdown()
    assert [raw.record.event_name for raw in kept.logs] == ["gen_ai.evaluation.result"]


def test_the_sdk_sends_again_after_the_told_time():
    class Full(Kept):
        def retry_after_s(self):
            return 0.2 if not refused() else None

    def refused():
        return receiver.refused.get("busy", 0)

    kept = Full()
    with Receiver(kept, grpc=ListenAddress(), token="open sesame") as receiver:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(GrpcSpans(**over_grpc(receiver, "none"))))
        provider.get_tracer("t").start_span("a").end()
        provider.shutdown()
        assert refused() == 1
    assert kept.names == ["a"]
