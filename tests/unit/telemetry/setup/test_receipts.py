"""What exporters tell of scores: by the records of a batch, and by the time of a collection."""

from __future__ import annotations

import time
import urllib.request

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)

from ragtrace.model import RagRecord
from ragtrace.sinks import OpenMetricsEndpoint, ScrapeReader
from ragtrace.telemetry import (
    CountedLogs,
    CountedMetrics,
    Delivery,
    EvaluationWriter,
    Receipts,
    collection_began,
    providers,
)
from ragtrace.telemetry.setup import receipts as module
from tests.unit.telemetry.runs import score


@pytest.fixture
def heard():
    return []


@pytest.fixture
def receipts(heard):
    made = Receipts()
    made.events = made.counts = "exporter"
    made.listen(heard.append)
    return made


class Logs(LogRecordExporter):
    result = LogRecordExportResult.SUCCESS

    def export(self, batch):
        return self.result

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=0):
        return True


class Metrics(MetricExporter):
    result = MetricExportResult.SUCCESS

    def export(self, metrics_data, timeout_millis=0, **kwargs):
        return self.result

    def shutdown(self, timeout_millis=0, **kwargs):
        pass

    def force_flush(self, timeout_millis=0):
        return True


def events(exporter, receipts, mark, listens=None):
    """Write an event of a score through the SDK's batches to an exporter."""
    provider = LoggerProvider(shutdown_on_exit=False)
    counted = CountedLogs(exporter, Delivery("events"), listens, receipts)
    provider.add_log_record_processor(BatchLogRecordProcessor(counted))
    one, record = score(), RagRecord(id="1")
    writer = EvaluationWriter(None, provider.get_logger("ragtrace"))
    writer.resend(record, [one], ended_ns=1, marks={one.key: mark})
    provider.force_flush()
    provider.shutdown()


@pytest.mark.parametrize(
    ("result", "listens", "marks"),
    [
        ("SUCCESS", None, [[(1, 2, 3)]]),
        ("FAILURE", None, []),
        ("FAILURE", lambda: False, [[(1, 2, 3)]]),  # for a default address without a listener: owed to nobody
    ],
)
def test_a_batch_acknowledges_its_scores_unless_it_is_refused(receipts, heard, result, listens, marks):
    exporter = Logs()
    exporter.result = LogRecordExportResult[result]
    events(exporter, receipts, (1, 2, 3), listens=listens)
    assert [receipt.marks for receipt in heard] == marks
    assert receipts.is_refused is not bool(marks)


def metered(exporter, receipts, **options):
    counted = CountedMetrics(exporter, Delivery("metrics"), options.pop("listens", None), receipts, **options)
    provider = MeterProvider([PeriodicExportingMetricReader(counted, 1e9)], shutdown_on_exit=False)
    return provider, provider.get_meter("ragtrace").create_counter("n")


def published(receipts, counter):
    place = receipts.begin()
    counter.add(1)
    receipts.published(place)


def test_a_delivered_report_acknowledges_what_was_counted_before_its_collection(receipts, heard):
    provider, counter = metered(exporter := Metrics(), receipts)
    published(receipts, counter)
    exporter.result = MetricExportResult.FAILURE
    provider.force_flush()
    assert heard == []
    published(receipts, counter)
    exporter.result = MetricExportResult.SUCCESS
    provider.force_flush()
    assert [receipt.counts_upto for receipt in heard] == [2]
    provider.shutdown()


def test_what_is_counted_while_a_report_is_on_its_way_is_the_next_one_s(receipts, heard):
    class Slow(Metrics):
        def export(self, metrics_data, timeout_millis=0, **kwargs):
            published(receipts, counter)
            return self.result

    provider, counter = metered(Slow(), receipts)
    published(receipts, counter)
    provider.force_flush()
    assert [receipt.counts_upto for receipt in heard] == [1]
    provider.shutdown()


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_a_wall_clock_that_jumped_acknowledges_neither_too_much_nor_nothing(receipts, heard, monkeypatch, jump_s):
    provider, counter = metered(Metrics(), receipts)
    published(receipts, counter)
    now = time.time_ns
    monkeypatch.setattr("opentelemetry.sdk.metrics._internal.metric_reader_storage.time_ns", lambda: now() + jump)
    monkeypatch.setattr(module.time, "time_ns", lambda: now() + jump)
    jump = int(jump_s * 1e9)
    provider.force_flush()
    assert [receipt.counts_upto for receipt in heard] == [1]
    provider.shutdown()


def test_a_scrape_that_was_answered_acknowledges(receipts, heard):
    endpoint = OpenMetricsEndpoint(port=0)
    endpoint.reader.answered = receipts.reported
    counter = MeterProvider([endpoint.reader], shutdown_on_exit=False).get_meter("ragtrace").create_counter("n")
    published(receipts, counter)
    assert heard == []
    urllib.request.urlopen(endpoint.url, timeout=30).close()  # noqa: S310 - our own
    endpoint.close()
    assert [receipt.counts_upto for receipt in heard] == [1]


def test_without_a_scrape_for_long_memory_stays_bounded(receipts, heard, monkeypatch):
    monkeypatch.setattr(module, "_MOST_STEPS", 100)
    for _ in range(1_000):
        receipts.published(receipts.begin())
    assert len(receipts._counts) <= 100
    receipts.reported(2**62)
    assert [receipt.counts_upto for receipt in heard] == [1_000]


def test_a_provider_of_the_application_s_counts_as_having_delivered_after_a_minute_or_a_flush(monkeypatch, heard):
    given = providers(
        logger_provider=LoggerProvider(shutdown_on_exit=False),
        meter_provider=MeterProvider([InMemoryMetricReader()]),
    )
    receipts = given.receipts
    receipts.listen(heard.append)
    assert (receipts.events, receipts.counts) == ("time", "time")
    receipts.published(receipts.begin())
    receipts.tick()
    assert heard == []
    assert given.flush(10.0)
    assert [(it.events_upto, it.counts_upto) for it in heard] == [(1, 1)]
    receipts.published(receipts.begin())
    monkeypatch.setattr(module, "GIVEN_S", 0.0)
    receipts.tick()
    assert [(it.events_upto, it.counts_upto) for it in heard[1:]] == [(2, 2)]
    given.shutdown(5.0)


def test_exporters_that_are_set_to_none_owe_nobody_anything(monkeypatch):
    for signal in ("TRACES", "METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    given = providers()
    assert (given.receipts.events, given.receipts.counts) == ("nobody", "nobody")
    assert (providers(readers=[ScrapeReader()]).receipts.counts) == "exporter"


def test_a_collection_without_points_acknowledges_nothing():
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("m")
    meter.create_observable_gauge("g", [lambda _: []])
    meter.create_counter("n").add(1)
    assert 0 < collection_began(reader.get_metrics_data()) <= time.monotonic_ns()
