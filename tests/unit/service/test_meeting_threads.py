"""Threads that meet in a service: captures, readers, and whoever sets it up anew or ends it."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace import semconv
from ragtrace.errors import ConfigError
from ragtrace.model import RagRecord
from ragtrace.queues import Job, MemoryQueue, Unit
from ragtrace.scoring import Ledger
from ragtrace.service import ServiceGauges, current, runtime
from ragtrace.settings import Settings
from ragtrace.testing.otlp import OtlpReceiver
from tests import make
from tests.process.observing import QUIET, providers


@pytest.fixture
def start():
    def configure(**settings):
        spans = make.Spans()
        ragtrace.configure(**{"sample_rate": 1.0} | settings, **providers(tracer_provider=spans.provider))
        return spans.exporter

    yield configure
    ragtrace.shutdown(5)


def ask(answer="The lab is in Oslo.", **about):
    with ragtrace.query("Where is the lab?", **about) as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered(answer)
    return run.trace_id


@pytest.mark.usefixtures("switching")
def test_the_accounts_balance_at_every_moment():
    ledger, offered = Ledger(), 20_000
    for _ in range(offered):
        ledger.offer()
    gauges = ServiceGauges(
        Settings(), ledger=ledger, queue=MemoryQueue(), baselines=None, limiter=None, canaries=None
    )
    seen = []

    def end_all():
        for number in range(offered):
            ledger.end("scored")
            if number % 1_000 == 0:  # a busy machine may run this thread alone: let each thousand be looked at
                before, ends = len(seen), time.monotonic() + 30.0
                while len(seen) == before and time.monotonic() < ends:
                    time.sleep(0.001)

    ending = threading.Thread(target=end_all)
    ending.start()
    while ending.is_alive():
        counts, pending = gauges.accounts()
        seen.append(sum(counts.values()) + pending)
    ending.join()
    assert len(seen) >= offered / 1_000
    assert set(seen) == {offered}


def test_a_run_that_ends_while_the_service_is_shut_down_has_its_end(start, monkeypatch):
    start()
    service, put = current(), current().queue.put
    is_late, is_over = threading.Event(), threading.Event()

    def late(unit):
        is_late.set()
        is_over.wait(30)
        return put(unit)

    monkeypatch.setattr(service.queue, "put", late)
    session = threading.Thread(target=ask)
    session.start()
    assert is_late.wait(30)
    ragtrace.shutdown(0.5)
    is_over.set()
    session.join(30)
    assert service.pipeline.drain(30)
    assert service.ledger.pending == 0
    assert service.ledger.counts() == {("dropped", "shutdown"): 1}


def test_what_is_given_back_to_a_queue_that_is_over_has_its_end():
    ended = []
    queue = MemoryQueue(ended=lambda *end: ended.append(end))
    queue.clear()
    queue.nack(Job(unit=Unit(record=RagRecord(id="1"))), 1.0, "judge_timeout")
    assert ended == [("dropped", "shutdown")]
    assert queue.size == 0


def test_a_first_run_beside_the_first_of_another_thread_is_captured(monkeypatch):
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    ragtrace.shutdown(5)
    monkeypatch.setattr(runtime._state, "is_configured", False)
    traces, safe_redact = [], runtime.safe_redact
    beside = threading.Thread(target=lambda: traces.append(ask()))

    def slow(redact):
        beside.start()
        beside.join(0.2)
        return safe_redact(redact)

    monkeypatch.setattr(runtime, "safe_redact", slow)
    traces.append(ask())
    beside.join(30)
    ragtrace.shutdown(5)
    assert len(traces) == 2
    assert all(traces)


def test_an_open_run_keeps_the_redaction_that_it_began_with(start):
    exporter = start(content="full", redact=lambda text: text.replace("Ada", "[name]"))
    with ragtrace.query("Who?") as run:
        start()
        run.answered("Ada wrote it.")
    (root,) = [span for span in exporter.get_finished_spans() if span.name.startswith("invoke_workflow")]
    assert root.attributes["output.value"] == "[name] wrote it."


def test_a_store_that_is_set_anew_goes_on_with_what_it_knows(start, tmp_path):
    path = tmp_path / "s"
    start(store=str(path))
    trace = ask(user="Ada")
    start(store=str(path))
    assert ragtrace.feedback(trace, 1.0)
    start(store=str(path), store_scores_days=7.0)
    assert ragtrace.feedback(trace, 0.0, rater="bob")
    assert current().storing.store.policy.scores_s == 7 * 86_400.0
    assert ragtrace.shutdown(20)
    store = make.store(path)
    rows = [row for row in store.rows() if row["source"] == "human"]
    store.close()
    assert {(row["version"], row["user"]) for row in rows} >= {("human", "Ada")}
    assert len(rows) == 2


def test_a_store_that_is_being_closed_is_given_to_nobody(start, tmp_path):
    path = tmp_path / "s"
    start(store=str(path))
    old = current().storing
    close, is_closing, is_begun = old.close, threading.Event(), threading.Event()

    def slow(timeout_s):
        is_closing.set()
        is_begun.wait(30)
        return close(timeout_s)

    old.close = slow
    ending = threading.Thread(target=lambda: ragtrace.shutdown(20))
    ending.start()
    assert is_closing.wait(30)
    start(store=str(path))
    is_begun.set()
    ending.join(30)
    assert ragtrace.feedback("4bf92f3577b34da6a3ce929d0e0e4736", 1.0)
    assert ragtrace.shutdown(20)
    store = make.store(path)
    assert [row["value"] for row in store.rows()] == [1.0]
    store.close()


@pytest.mark.parametrize("wrong", ["spool", "health_port"])
def test_settings_that_fail_leave_the_gauges_and_no_thread(tmp_path, wrong):
    reader = InMemoryMetricReader()
    given = {"sample_rate": 0.0, "meter_provider": MeterProvider([reader])}

    def ended():
        data = reader.get_metrics_data()
        assert data is not None
        points = [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == semconv.LEDGER
            for point in metric.data.data_points
        ]
        return sum(point.value for point in points)

    try:
        ragtrace.configure(tracer_provider=TracerProvider(), logger_provider=LoggerProvider(), **given)
        ask()
        assert current().pipeline.drain(30)
        assert ended() == 1
        before = set(threading.enumerate())
        with socket.create_server(("127.0.0.1", 0)) as taken:
            values = {"spool": str(tmp_path / "gone" / "spool"), "health_port": taken.getsockname()[1]}
            with pytest.raises(ConfigError):
                ragtrace.configure(**given, **{wrong: values[wrong]})
        assert ended() == 1
        until = time.monotonic() + 30.0
        while left := set(threading.enumerate()) - before:
            assert time.monotonic() < until, left
            time.sleep(0.01)
    finally:
        ragtrace.shutdown(5)


def test_a_flush_does_not_take_runs_that_are_not_drawn_for_those_that_wait(start, hung):
    judged = {"judge": "openai:m", "judge_base_url": hung, "judge_api_key": "k"}
    start(sample_rate=0.0, sampling_rules=["rate=1 tag=vip"], **judged)
    ask(tags=["vip"])
    is_flushed = threading.Event()

    def go_on():
        while not is_flushed.wait(0.001):  # without a pause the pipeline's queue overflows now and then
            ask()

    going_on = threading.Thread(target=go_on)
    going_on.start()
    assert not ragtrace.flush(1.0)
    is_flushed.set()
    going_on.join(30)
    counts, pending = current().gauges.accounts()
    assert pending == 1
    assert set(counts) == {("skipped", "not_sampled")}
    ragtrace.shutdown(0.1)


def test_settings_that_fail_export_nothing(monkeypatch):
    """Counters that begin at 0 under the running service's identity are a restart to whoever reads them."""
    with OtlpReceiver() as receiver, socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        with pytest.raises(ConfigError):
            ragtrace.configure(health_port=taken.getsockname()[1])
        assert receiver.requests == []
