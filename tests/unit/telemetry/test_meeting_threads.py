"""Threads that meet in telemetry: none takes from another what it has just written."""

from __future__ import annotations

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragtrace import semconv
from ragtrace.telemetry.metrics.multi_meter import MultiMeter
from ragtrace.telemetry.setup.delivery import Delivery
from ragtrace.telemetry.setup.providers import Providers


def test_who_ends_does_not_take_the_gauges_from_who_has_begun():
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("ragtrace")
    first, second = MultiMeter([meter]), MultiMeter([meter])
    second.readers[semconv.QUEUE_SIZE] = lambda: [(1.0, {})]
    first.observe()
    second.observe()
    first.close()
    data = reader.get_metrics_data()
    assert data is not None
    shown = {metric.name for scope in data.resource_metrics[0].scope_metrics for metric in scope.metrics}
    assert semconv.QUEUE_SIZE in shown


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
    flushed = Providers(given, [MeterProvider()], LoggerProvider(), deliveries=[delivery])  # type: ignore[arg-type]
    assert flushed.flush(30)
    given.force_flush = lambda timeout_millis: True  # type: ignore[method-assign]
    assert not flushed.flush(30), "a span that was never sent"
