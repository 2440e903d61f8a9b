"""Which ``service.instance.id`` our own providers have, and what is said of an application's without one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from ragtrace.telemetry import Delivery, DrainProcessor, TakenSpans, own_resource, providers
from ragtrace.telemetry.setup import exporters

ID = "service.instance.id"
TOLD = "the application's MeterProvider has no service.instance.id"
SHARED = "this forked process uses its parent's MeterProvider"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    for signal in ("TRACES", "METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    monkeypatch.setattr(exporters, "_said", set())


@pytest.fixture
def application():
    """Make a provider of an application's, which pushes or is read."""
    made = []

    def make(*, pushes=True, **attributes):
        reader = (
            PeriodicExportingMetricReader(ConsoleMetricExporter(formatter=lambda _: ""))
            if pushes
            else InMemoryMetricReader()
        )
        made.append(MeterProvider([reader], resource=Resource(attributes), shutdown_on_exit=False))
        return made[-1]

    yield make
    for one in made:
        one.shutdown()


def test_every_process_has_an_id_of_its_own():
    code = "from ragtrace.telemetry import own_resource; print(own_resource().attributes['%s'])"
    ids = [subprocess.check_output([sys.executable, "-c", code % ID], text=True).strip() for _ in range(2)]
    assert all(len(one) == 36 for one in ids)
    assert ids[0] != ids[1]


def test_the_variable_names_the_process_and_not_its_forked_children(monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"{ID}=web-1,team=search,service.name=shop")
    assert own_resource().attributes[ID] == "web-1"
    child = own_resource(is_forked=True).attributes
    assert (child["team"], child["service.name"]) == ("search", "shop")
    assert len(child[ID]) == 36


def test_our_own_signals_of_one_process_have_one_id(monkeypatch):
    for signal in ("TRACES", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "console")
    reader = InMemoryMetricReader()
    found = providers(readers=[reader])
    found.meters()[0].create_counter("asked").add(1)
    (metrics,) = reader.get_metrics_data().resource_metrics
    logs = found.logger_provider.resource
    assert found.tracer_provider.resource.attributes[ID] == metrics.resource.attributes[ID] == logs.attributes[ID]
    found.discard(2.0)


def test_an_application_without_an_id_is_one_line(application, caplog):
    given = application()
    for _ in range(2):
        providers(meter_provider=given)
    (line,) = caplog.messages
    assert TOLD in line
    assert "overwrite each other" in line
    assert "OTEL_RESOURCE_ATTRIBUTES" in line
    assert "\n" not in line


@pytest.mark.parametrize("empty", [True, False])
def test_the_global_provider_of_an_application_is_looked_at_too(application, caplog, monkeypatch, empty):
    given = application(**({ID: ""} if empty else {}))
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", lambda: given)
    providers()
    (line,) = caplog.messages
    assert TOLD in line


def test_nothing_is_said_where_no_series_is_overwritten(application, caplog):
    for fine in (application(pushes=False), application(**{ID: "web-1"}), MeterProvider(), NoOpMeterProvider()):
        providers(meter_provider=fine)
    providers()
    assert not caplog.messages


def test_a_child_keeps_what_the_application_gave_and_says_that_its_series_are_shared(application, caplog):
    tracers, meters = TracerProvider(), application(**{ID: "web-1"})
    before = providers(tracers, meters)
    after = before.of_child()
    assert (after.tracer_provider, *after.meter_providers) == (tracers, meters)
    (line,) = caplog.messages
    assert SHARED in line


def test_a_child_makes_our_own_anew_with_another_id(monkeypatch, caplog):
    for signal in ("TRACES", "LOGS", "METRICS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "console")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    before = providers()
    before.leave_to_parent()
    after = before.of_child()
    old, new = before.tracer_provider.resource.attributes, after.tracer_provider.resource.attributes
    assert old[ID] != new[ID]
    assert (old["service.name"], new["service.name"]) == ("shop", "shop")
    assert not {*before.meter_providers} & {*after.meter_providers}
    assert before.logger_provider is not after.logger_provider
    assert not caplog.messages
    after.discard(2.0)


def test_our_processors_let_those_behind_them_be_flushed(monkeypatch):
    class Broken:
        def drain(self, timeout_s):
            raise RuntimeError("inside")

    flushed = []
    drains, broken = DrainProcessor(), Broken()
    drains.pipelines.add(broken)
    provider = TracerProvider(shutdown_on_exit=False)
    behind = TakenSpans(Delivery("spans"))
    monkeypatch.setattr(behind, "force_flush", lambda *_: bool(flushed.append(1)) or True)
    for one in (TakenSpans(Delivery("spans")), drains, behind):
        provider.add_span_processor(one)
    assert provider.force_flush(1_000)
    assert flushed
