"""Which providers are used, what OTEL_* decides, and our own deadline."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry._logs import NoOpLoggerProvider
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider

from ragtrace.errors import ConfigError
from ragtrace.telemetry import CountedSpans, Delivery, OwnProvider, Providers, batches, providers, unended
from ragtrace.testing.otlp import OtlpReceiver

NOTHING = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


@pytest.fixture
def environ(monkeypatch):
    def put(**values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    put(**NOTHING)
    return put


@pytest.fixture
def dead_endpoint():
    """A port of loopback where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_given_providers_are_used_and_stay_open(environ):
    tracers, meters = TracerProvider(shutdown_on_exit=False), MeterProvider(shutdown_on_exit=False)
    found = providers(tracers, meters, NoOpLoggerProvider())
    assert found.tracer_provider is tracers
    assert found.meter_providers == (meters,)
    assert found.flush(30)
    assert found.shutdown(30)
    assert meters.get_meter("x").create_counter("still").add(1) is None
    assert not isinstance(meters.get_meter("y"), type(NoOpMeterProvider().get_meter("y")))


def test_exporters_none_give_no_ops(environ):
    found = providers()
    assert isinstance(found.tracer_provider, NoOpTracerProvider)
    assert isinstance(found.meter_providers[0], NoOpMeterProvider)
    assert isinstance(found.logger_provider, NoOpLoggerProvider)
    assert found.flush(30)
    assert found.shutdown(30)


def test_otel_sdk_disabled_switches_everything_off(environ):
    environ(OTEL_SDK_DISABLED="true", OTEL_TRACES_EXPORTER="otlp")
    found = providers(readers=[InMemoryMetricReader()])
    assert isinstance(found.tracer_provider, NoOpTracerProvider)
    assert isinstance(found.meter_providers[0], NoOpMeterProvider)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "otpl"}, "OTEL_TRACES_EXPORTER='otpl' is not known here; did you mean 'otlp'?"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL='http/json' is not spoken here; valid: grpc, http/protobuf",
        ),
    ],
)
def test_a_wrong_variable_is_one_line(environ, values, message):
    environ(**values)
    with pytest.raises(ConfigError) as caught:
        providers()
    assert str(caught.value) == message


def test_global_providers_of_the_application_are_used(environ):
    code = (
        "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider;"
        "own = TracerProvider(); trace.set_tracer_provider(own);"
        "from ragtrace.telemetry import providers; found = providers();"
        "print(found.tracer_provider is own, type(found.meter_providers[0]).__name__);"
        "found.shutdown(1.0); print(own.get_tracer('x').start_span('s').is_recording())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["True NoOpMeterProvider", "True"]


def test_our_own_are_never_made_global(environ):
    environ(OTEL_TRACES_EXPORTER="console")
    from opentelemetry import trace

    found = providers()
    assert trace.get_tracer_provider() is not found.tracer_provider
    found.shutdown(2.0)


def test_extra_readers_stand_beside_a_given_meter_provider(environ):
    reader, app = InMemoryMetricReader(), InMemoryMetricReader()
    given = MeterProvider(metric_readers=[app], shutdown_on_exit=False)
    found = providers(meter_provider=given, readers=[reader])
    assert len(found.meters()) == 2
    for meter in found.meters():
        meter.create_counter("asked").add(1)
    assert reader.get_metrics_data() is not None
    assert app.get_metrics_data() is not None


def test_extra_readers_join_our_own_meter_provider(environ):
    reader = InMemoryMetricReader()
    environ(OTEL_SERVICE_NAME="shop")
    found = providers(readers=[reader])
    (meter,) = found.meters()
    meter.create_counter("asked").add(1)
    (resource,) = reader.get_metrics_data().resource_metrics
    assert resource.resource.attributes["service.name"] == "shop"


def dead(environ, endpoint, protocol):
    environ(
        OTEL_TRACES_EXPORTER="otlp", OTEL_METRICS_EXPORTER="otlp", OTEL_LOGS_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
    )  # fmt: skip
    found = providers()
    found.tracer().start_span("lost").end()
    found.meters()[0].create_counter("c").add(1)
    return found


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_shutdown_with_a_dead_endpoint_keeps_its_deadline_and_says_what_is_left(environ, dead_endpoint, protocol):
    found = dead(environ, dead_endpoint, protocol)
    started = time.monotonic()
    assert not found.shutdown(1.0)
    assert time.monotonic() - started < 6.0
    assert found.unsent()["spans"] == 1


def test_flush_with_a_dead_endpoint_keeps_its_deadline(environ, dead_endpoint):
    found = dead(environ, dead_endpoint, "http/protobuf")
    started = time.monotonic()
    assert not found.flush(0.3)
    assert time.monotonic() - started < 6.0
    found.shutdown(0.1)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_process_with_a_dead_endpoint_exits(environ, dead_endpoint, protocol):
    environ(
        OTEL_TRACES_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=dead_endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol
    )
    code = (
        "import time; from ragtrace.telemetry import providers; found = providers();"
        "found.tracer().start_span('x').end(); found.shutdown(0.5); print(time.time())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert time.time() - float(done.stdout) < 8.0


def test_a_refusing_receiver_makes_flush_false_once(environ):
    with OtlpReceiver(status=400) as receiver:
        environ(OTEL_TRACES_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        found = providers()
        found.tracer().start_span("refused").end()
        assert not found.flush(5.0)
        assert found.flush(30), "what is lost was reported"
        receiver.status = 200
        found.tracer().start_span("taken").end()
        assert found.flush(30)
        assert [span.name for span in receiver.spans] == ["taken"]
        assert found.shutdown(30), "nothing more is left to send"
        assert found.unsent() == {"spans": 1}


class Refusing(SpanExporter):
    def export(self, spans):
        raise ConnectionError("gone")

    def shutdown(self):
        pass


def test_an_exporter_that_raises_is_counted(make_spans):
    delivery = Delivery("spans")
    assert CountedSpans(Refusing(), delivery).export([object.__new__(_Bare)]) is SpanExportResult.FAILURE
    assert not delivery.is_whole()
    assert delivery.is_whole()


class _Bare:
    attributes = None


def test_big_spans_travel_in_batches_a_receiver_takes(spans):
    for number in range(10):
        spans.tracer.start_span(f"s{number}", attributes={"text": "ü" * 100_000}).end()
    sizes = [len(batch) for batch in batches(spans.finished, 1_000_000)]
    assert sizes == [4, 4, 2]
    inner = InMemorySpanExporter()
    assert CountedSpans(inner, Delivery("spans")).export(spans.finished) is SpanExportResult.SUCCESS
    assert len(inner.get_finished_spans()) == 10


def test_a_call_that_hangs_holds_nothing_up():
    started, may_go_on = time.monotonic(), threading.Event()
    assert unended({"one": lambda: True, "late": lambda: may_go_on.wait(60)}, 0.1) == ["late"]
    assert time.monotonic() - started < 30.0
    may_go_on.set()


class RunsOn:
    """A provider into which a run writes while it is flushed."""

    def __init__(self, delivery):
        self.delivery = delivery

    def force_flush(self, timeout_millis):
        self.delivery.sent(1)
        self.delivery.took()
        return True


def test_what_comes_while_it_is_flushed_is_not_missing_and_is_asked_for_later():
    delivery = Delivery("spans")
    delivery.took()
    given = RunsOn(delivery)
    own = OwnProvider(provider=given, delivery=delivery)
    flushed = Providers(given, [MeterProvider()], LoggerProvider(), own=[own])  # type: ignore[arg-type]
    assert flushed.flush(30)
    given.force_flush = lambda timeout_millis: True  # type: ignore[method-assign]
    assert not flushed.flush(30), "a span that was never sent"
