"""New series are reported at zero first: real meters, readers and exporters that keep what they are sent."""

from __future__ import annotations

import io
import math
import time

import pytest
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation

from ragtrace.telemetry.setup.delivery import CountedMetrics, Delivery
from ragtrace.telemetry.setup.providers import providers
from ragtrace.telemetry.setup.zeros import Zeros

OK, BAD = MetricExportResult.SUCCESS, MetricExportResult.FAILURE


class Receiver(MetricExporter):
    """Keeps each report as {(metric, labels): (value or count, time)}, and answers as it is told."""

    def __init__(self, answers=(), **kwargs):
        super().__init__(**kwargs)
        self.reports = []
        self._answers = list(answers)

    def export(self, metrics_data, timeout_millis=10_000, **kwargs):
        self.points = {
            (metric.name, *sorted((point.attributes or {}).items())): point
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }
        answer = self._answers.pop(0) if self._answers else OK
        self.reports.append(self.points)
        return answer

    def force_flush(self, timeout_millis=10_000):
        return True

    def shutdown(self, timeout_millis=30_000, **kwargs):
        pass

    def numbers(self, name="asked", **labels):
        """Return what each report says of a series; None where it is not in it."""
        found = [report.get((name, *sorted(labels.items()))) for report in self.reports]
        return [
            None if point is None else getattr(point, "value", getattr(point, "count", None)) for point in found
        ]


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    """Forget the reports of other tests, which a process has as well."""
    monkeypatch.setattr(Zeros, "_sent_ns", 0)


def metered(receiver, scope="ragtrace"):
    exporter = CountedMetrics(receiver, Delivery("metrics"))
    provider = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)])
    return provider, provider.get_meter(scope)


def test_counts_of_one_report_are_two_with_two_times():
    provider, meter = metered(receiver := Receiver())
    meter.create_counter("asked").add(5, {"model": "a"})
    meter.create_counter("weighed").add(2.5)
    provider.force_flush()
    assert (receiver.numbers(model="a"), receiver.numbers("weighed")) == ([0, 5], [0.0, 2.5])
    zero, counted = (report["asked", ("model", "a")] for report in receiver.reports)
    assert zero.start_time_unix_nano <= zero.time_unix_nano <= counted.time_unix_nano - 1_000_000_000
    provider.force_flush()
    assert receiver.numbers(model="a") == [0, 5, 5], "a series that is known has no zeros any more"


def test_a_series_that_comes_later_has_its_own_zeros_behind_the_last_report():
    provider, meter = metered(receiver := Receiver())
    asked = meter.create_counter("asked")
    asked.add(5, {"model": "a"})
    provider.force_flush()
    time.sleep(0.01)  # a backend keeps whole milliseconds
    asked.add(1, {"model": "a"})
    asked.add(3, {"model": "b"})
    provider.force_flush()
    assert receiver.numbers(model="a") == [0, 5, None, 6], "what is known is not reported at zero again"
    assert receiver.numbers(model="b") == [None, None, 0, 3]
    before, zero, after = (receiver.reports[place] for place in (1, 2, 3))
    times = [next(iter(report.values())).time_unix_nano for report in (before, zero, after)]
    assert times == sorted(set(times))


def test_the_zeros_of_a_second_provider_stand_behind_the_reports_of_the_first():
    receivers = Receiver(), Receiver()
    for receiver in receivers:
        provider, meter = metered(receiver)
        meter.create_counter("asked").add(5)
        provider.force_flush()
    times = [report["asked",].time_unix_nano for receiver in receivers for report in receiver.reports]
    assert times == sorted(set(times))
    assert [receiver.numbers() for receiver in receivers] == [[0, 5], [0, 5]]


def test_a_series_that_was_reported_at_zero_needs_no_more_zeros():
    provider, meter = metered(receiver := Receiver())
    asked = meter.create_counter("asked")
    asked.add(0)
    provider.force_flush()
    asked.add(2)
    provider.force_flush()
    assert receiver.numbers() == [0, 2]


@pytest.mark.parametrize("form", [None, ExponentialBucketHistogramAggregation()])
def test_histograms_are_empty_first(form):
    receiver = Receiver(preferred_aggregation=None if form is None else {Histogram: form})
    provider, meter = metered(receiver)
    meter.create_histogram("took").record(0.5)
    meter.create_histogram("took").record(2.0)
    provider.force_flush()
    assert receiver.numbers("took") == [0, 2]
    empty, full = (report["took",] for report in receiver.reports)
    assert (empty.sum, full.sum) == (0.0, 2.5)
    if form is None:
        assert (sum(empty.bucket_counts), sum(full.bucket_counts)) == (0, 2)
        assert (len(empty.bucket_counts), empty.explicit_bounds) == (len(full.bucket_counts), full.explicit_bounds)
    else:
        assert (sum(empty.positive.bucket_counts), sum(full.positive.bucket_counts)) == (0, 2)


def test_deltas_and_what_may_fall_are_reported_as_they_are():
    receiver = Receiver(preferred_temporality={Counter: AggregationTemporality.DELTA})
    provider, meter = metered(receiver)
    meter.create_counter("asked").add(5)
    meter.create_up_down_counter("waiting").add(3)
    meter.create_gauge("mean").set(0.9)
    provider.force_flush()
    assert (receiver.numbers(), receiver.numbers("waiting"), receiver.numbers("mean")) == ([5], [3], [0.9])


def test_counts_wait_for_zeros_that_are_refused_and_not_for_ever():
    provider, meter = metered(receiver := Receiver([BAD, BAD, OK]))
    meter.create_counter("asked").add(5)
    for _ in range(3):
        provider.force_flush()
    assert receiver.numbers() == [0, 0, 5, 5], "zeros, zeros and counts, counts"
    provider, meter = metered(receiver := Receiver([BAD]))
    meter.create_counter("asked").add(5)
    for _ in range(2):
        provider.force_flush()
    assert receiver.numbers() == [0, 0, 5]


def test_counts_that_did_not_arrive_behind_their_zeros_come_with_the_next_report():
    provider, meter = metered(receiver := Receiver([OK, BAD]))
    meter.create_counter("asked").add(5)
    for _ in range(2):
        provider.force_flush()
    assert receiver.numbers() == [0, 5, 0, 5]
    first, again = (receiver.reports[place]["asked",].time_unix_nano for place in (0, 2))
    assert first <= again


def test_an_applications_own_provider_reports_our_series_at_zero_first_and_its_own_as_ever():
    reader = PeriodicExportingMetricReader(receiver := Receiver(), export_interval_millis=math.inf)
    meters = MeterProvider([reader])
    for _ in range(2):  # configured once more
        found = providers(meter_provider=meters)
    found.meters()[0].create_counter("asked").add(5)
    meters.get_meter("shop").create_counter("sold").add(7)
    meters.force_flush()
    assert (receiver.numbers(), receiver.numbers("sold")) == ([0, 5], [None, 7])
    found.discard(1.0)
    meters.shutdown()


def test_a_console_shows_counts_alone():
    provider, meter = metered(ConsoleMetricExporter(out=(console := io.StringIO())))
    meter.create_counter("asked").add(5)
    provider.force_flush()
    assert console.getvalue().count('"name": "asked"') == 1
