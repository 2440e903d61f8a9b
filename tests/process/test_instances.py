"""Processes of one service are series of their own, whose increases add up; on every SDK from the floor on."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.process.observing import QUIET, ROOT, environment

pytestmark = pytest.mark.slow

# Asks before a fork, in the child, and after it; a second child asks nothing and lives through several reports.
FORKING = """
import time
import ragtrace
from tests.process.observing import ask, forked

def busy():
    ask(3)
    return ragtrace.flush(20) and ragtrace.shutdown(10)

ragtrace.configure(sample_rate=1.0)
ask(2)
assert ragtrace.flush(20)
assert forked(busy) == 0
assert forked(lambda: time.sleep(0.5)) == 0
ask(1)
assert ragtrace.shutdown(20)
"""
PLAIN = """
import ragtrace
from tests.process.observing import ask

ragtrace.configure(sample_rate=1.0)
ask(4)
assert ragtrace.flush(20) and ragtrace.shutdown(20)
"""


def series(receiver, name):
    """Return all values of each instance's series of a cumulative sum, in order of arrival."""
    found = defaultdict(list)
    for request in receiver.requests:
        if not isinstance(request, ExportMetricsServiceRequest):
            continue
        for resource in request.resource_metrics:
            about = attributes_of(resource.resource.attributes)
            assert about["service.name"] == "shop"
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                if metric.name == name:
                    found[about["service.instance.id"]].append(sum(p.as_int for p in metric.sum.data_points))
    return dict(found)


def together(receiver, *programs, **more):
    """Run programs beside each other that report to one receiver ten times a second."""
    env = environment(
        OTEL_SERVICE_NAME="shop",
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL=receiver.protocol,
        OTEL_METRIC_EXPORT_INTERVAL="100",
        **dict.fromkeys(QUIET, "otlp"),
        **more,
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for program in programs
    ]
    for one in running:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_two_processes_and_a_forked_child_are_three_series_that_add_up(protocol):
    with OtlpReceiver(protocol) as receiver:
        together(receiver, FORKING, PLAIN)
        for name in ("ragtrace.traces", "ragtrace.evaluations"):
            found = series(receiver, name)
            assert all(values == sorted(values) for values in found.values()), "no other process writes into one"
            assert len(found) == 3
        runs = series(receiver, "ragtrace.traces")
        # Each series begins at zero, so that its last value is its increase.
        assert sorted(values[-1] for values in runs.values()) == [3, 3, 4]
        spans = [span for span in receiver.spans if span.name.startswith("invoke_workflow")]
        assert sum(values[-1] for values in runs.values()) == len(spans) == 10


def test_a_forked_child_has_another_id_than_the_variable_that_it_inherits():
    with OtlpReceiver() as receiver:
        together(receiver, FORKING, OTEL_RESOURCE_ATTRIBUTES="service.instance.id=web-1")
        runs = series(receiver, "ragtrace.traces")
        assert len(runs) == 2
        assert runs.pop("web-1")[-1] == 3
        assert [values[-1] for values in runs.values()] == [3]


APPLICATION = """
import logging, sys
import ragtrace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from ragtrace.telemetry.setup.resource import instance_of
from tests.process.observing import ask, forked, providers

reader = PeriodicExportingMetricReader(ConsoleMetricExporter(out=open("/dev/null", "w")))
given = MeterProvider([reader], resource=Resource({"service.instance.id": "web-1"}))
ragtrace.configure(sample_rate=1.0, **providers(meter_provider=given))

def child():
    ask(2)
    print(instance_of(given))

assert forked(child) == 0
"""


def test_a_child_says_once_that_it_shares_the_series_of_its_parent_where_the_sdk_does_not_part_them():
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION], env=environment(PYTHONUNBUFFERED="1"), cwd=ROOT,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    shared = done.stdout.strip() == "web-1"
    assert done.stderr.count("this forked process uses its parent's MeterProvider") == shared
    assert done.stderr.count("\n") == shared, done.stderr
