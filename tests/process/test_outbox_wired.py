"""Scores on their way to a real receiver: refused, dropped by a full queue, never scraped, and left by a service."""

from __future__ import annotations

import os
import time
import urllib.request

import pytest

import ragtrace
from ragtrace.service import ScoreHandler, current, score_outbox
from ragtrace.stores import COUNT, EVENT, OutboxEntry, Owner
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests import make
from tests.guards.processes import closed_port, until
from tests.process.observing import QUIET, ask, forked, providers

pytestmark = pytest.mark.slow


class Seen:
    """A sink that knows how often it got each score."""

    def __init__(self):
        self.keys = []

    def emit(self, record, scores):
        self.keys += [(record.trace_id, score.key.metric) for score in scores]


@pytest.fixture
def receiver(monkeypatch):
    with OtlpReceiver() as made:
        for signal in ("METRICS", "LOGS"):
            monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "50")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
        yield made


@pytest.fixture
def start(tmp_path):
    def configure(**settings):
        sink = Seen()
        given = {"store": str(tmp_path / "store"), "metrics": ["faithfulness", "no_answer"], "sample_rate": 1.0}
        ragtrace.configure(sinks=[sink], **given | settings)
        return sink

    yield configure
    ragtrace.shutdown(5)


def exported(tmp_path):
    store = make.store(tmp_path / "store")
    try:
        return [row["exported"] for row in store.rows()]
    finally:
        store.close()


def keys(receiver):
    return [attributes_of(it.attributes)["ragtrace.evaluation.key"] for it in receiver.logs]


def evaluations(receiver):
    return sum(point.as_int for point in receiver.metrics["ragtrace.evaluations"].sum.data_points)


def lags(receiver):
    return [point.max for point in receiver.metrics["ragtrace.evaluation.lag"].histogram.data_points]


def test_a_flush_leaves_everything_noted(start, receiver, tmp_path):
    start()
    ask(3)
    assert ragtrace.flush(30)
    assert exported(tmp_path) == [1] * 6
    assert len(keys(receiver)) == len(set(keys(receiver))) == 6


def test_a_receiver_that_refuses_gets_the_events_later_and_nothing_else_twice(
    start, receiver, tmp_path, monkeypatch
):
    monkeypatch.setattr(score_outbox, "_EVENTS_MISSING_S", 0.5)
    monkeypatch.setattr(score_outbox, "_LOOK_EVERY_S", 0.1)
    receiver.status = 400  # not to be tried again by the exporter itself
    sink = start()
    ask(3)
    assert not ragtrace.flush(10)
    assert exported(tmp_path) == [0] * 6
    receiver.status = 200
    until(lambda: exported(tmp_path) == [1] * 6)
    assert sorted(keys(receiver)) == sorted(set(keys(receiver)))
    assert len(keys(receiver)) == evaluations(receiver) == 6
    assert len(sink.keys) == len(set(sink.keys)) == 6


def test_events_that_a_full_queue_dropped_are_sent_before_the_end(start, receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "4")
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "60000")
    start(concurrency=1)
    ask(20)
    ragtrace.shutdown(60)
    assert exported(tmp_path).count(1) > 4  # each round takes four; the next process has the rest
    monkeypatch.delenv("OTEL_BLRP_MAX_QUEUE_SIZE")
    monkeypatch.delenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE")
    start()
    assert ragtrace.flush(60)
    assert exported(tmp_path) == [1] * 40
    assert len(set(keys(receiver))) == 40


def test_what_a_service_could_not_send_the_next_one_sends_once(start, receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    start()
    ask(3)
    ragtrace.shutdown(2)
    assert exported(tmp_path) == [0] * 6
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
    sink = start()
    assert ragtrace.flush(30)  # it captured nothing
    ragtrace.shutdown(10)
    assert exported(tmp_path) == [1] * 6
    assert len(keys(receiver)) == evaluations(receiver) == len(sink.keys) == 6
    assert "ragtrace.evaluation.lag" not in receiver.metrics or max(lags(receiver)) < 3_600.0


def test_of_what_is_half_delivered_the_other_half_is_sent(start, receiver, tmp_path):
    store, dead, entries = make.store(tmp_path / "store"), Owner(process="another-boot pid:[1] 7 7"), []
    for n in (1, 2):
        record = make.record(n=n, workflow="support")
        entries.append(OutboxEntry(seq=n))
        store.emit(record, [make.score(record, "faithfulness", at=1.7e9)], owner=dead, entry=entries[-1])
    store.exported(list(entries[0].marks.values()), EVENT)
    store.exported([], owner=dead, upto=[(COUNT, 1, 2)])
    store.close()
    start()
    assert ragtrace.flush(30)
    assert exported(tmp_path) == [1, 1]
    assert keys(receiver) == [f"{2:032x}:{2:016x}:faithfulness:v"]
    assert evaluations(receiver) == 1


def test_a_flush_waits_for_claimed_scores_to_be_published(start, receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    start()
    ask(3)
    ragtrace.shutdown(2)
    assert exported(tmp_path) == [0] * 6
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "60000")
    publish = ScoreHandler.publish
    monkeypatch.setattr(
        ScoreHandler, "publish", lambda *given: (time.sleep(0.3), publish(*given))
    )  # a busy machine
    start()
    assert ragtrace.flush(60)
    assert exported(tmp_path) == [1] * 6
    assert len(keys(receiver)) == len(set(keys(receiver))) == 6


def test_without_a_scrape_counts_stay_owed_and_a_scrape_takes_them(start, tmp_path, monkeypatch):
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    start(metrics_port=0)
    ask(2)
    assert ragtrace.flush(30)
    assert exported(tmp_path) == [0] * 4
    page = urllib.request.urlopen(current().endpoint.url).read().decode()  # noqa: S310 - our own endpoint
    assert "ragtrace_evaluations_total{" in page
    until(lambda: exported(tmp_path) == [1] * 4)


def test_providers_of_the_application_s_are_believed_after_a_flush(start, tmp_path):
    start(**providers())
    ask(2)
    until(lambda: len(exported(tmp_path)) == 4)
    assert exported(tmp_path) == [0] * 4
    assert ragtrace.flush(30)
    assert exported(tmp_path) == [1] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_answers_for_its_own_scores_alone(start, receiver, tmp_path):
    start()
    ask(2)

    def child():
        ask(3)
        return ragtrace.shutdown(30)

    assert forked(child) == 0
    assert ragtrace.flush(30)
    assert exported(tmp_path) == [1] * 10
    assert len(keys(receiver)) == len(set(keys(receiver))) == 10
