"""`ragtrace worker --kafka` over the topic of a Collector, on a real broker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from bisect import bisect_left
from collections import Counter

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

import confluent_kafka

from ragtrace.testing.otlp import OtlpReceiver
from tests.command_line import environment
from tests.ingest.kafka.collector import SlowJudge, write
from tests.kafka_broker import free_port, start_tansu, tansu

pytestmark = pytest.mark.slow

TOPIC = "otlp_spans"
LONG_S = 90.0
CONCURRENCY = 2  # few calls, so that a busy machine has the CPU for three workers


def topic(brokers, partitions=6, name=TOPIC):
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": brokers})
    made = admin.create_topics([NewTopic(name, num_partitions=partitions)])
    made[name].result(10)


class Hand:
    """A running worker, and its lines."""

    def __init__(self, brokers, folder, name, *options, **more):
        self.log = folder / f"{name}.log"
        env = environment(
            OTEL_BSP_SCHEDULE_DELAY="200",
            OTEL_METRIC_EXPORT_INTERVAL="500",
            RAGTRACE_KAFKA_CONFIG="session.timeout.ms=3000",  # Tansu joins slowly with longer sessions
            RAGTRACE_JUDGE_API_KEY="k",
            RAGTRACE_JUDGE_RPM="0",
            RAGTRACE_JUDGE_TPM="0",
            RAGTRACE_BUDGET_USD_PER_DAY="0",
            RAGTRACE_CONCURRENCY=str(CONCURRENCY),
            RAGTRACE_CANARY_EVERY_S="0",
            RAGTRACE_ANCHORS_EVERY_S="0",
            **more,
        )
        given = ["--kafka", brokers, "--sample-rate", "1", "--settle", "0.5", "--metrics", "faithfulness", *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ragtrace", "worker", *given], env=env, stderr=log
            )


def wait_for(condition, what):
    ends_at = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < ends_at, what()
        time.sleep(0.05)


def scored(receiver):
    return Counter(span.trace_id.hex() for span in receiver.spans if span.name.startswith("evaluation"))


def best_rate(times, window_s=4.0):
    """Return the most calls a second within any window."""
    return max(bisect_left(times, at + window_s) - n for n, at in enumerate(times)) / window_s


def partitions(receiver):
    """Return the last number of partitions of each process."""
    found = {}
    for request in list(receiver.requests):
        for resource in getattr(request, "resource_metrics", ()):
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == "ragtrace.kafka.partitions":
                        key = resource.resource.SerializeToString()
                        found[key] = sum(point.as_double or point.as_int for point in metric.gauge.data_points)
    return sorted(found.values())


def committed(brokers, count=6):
    """Return the offsets that the workers' group has committed."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": brokers, "group.id": f"ragtrace.{TOPIC}"})
    found = reader.committed([confluent_kafka.TopicPartition(TOPIC, n) for n in range(count)], timeout=10)
    reader.close()
    return [max(one.offset, 0) for one in found]


def lag(receiver):
    """Return the last lag of each partition."""
    metric = receiver.metrics.get("ragtrace.kafka.lag")
    points = metric.gauge.data_points if metric is not None else ()
    names = [{one.key: one.value.string_value for one in point.attributes} for point in points]
    assert {name["ragtrace.kafka.topic"] for name in names} <= {TOPIC}
    return {
        int(name["ragtrace.kafka.partition"]): point.as_double for name, point in zip(names, points, strict=True)
    }


def ready(port):
    """Return the status of /readyz, and why it is not 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as reply:
            return reply.status, json.load(reply)["reasons"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["reasons"]
    except OSError:  # not yet there
        return 0, []


def test_three_workers_score_each_trace_once_and_faster(tmp_path):
    """One worker scores one batch, and three score the next: each has two of six partitions, and is warm."""
    with tansu() as brokers, OtlpReceiver() as receiver:
        judge, alone, count = SlowJudge(0.2), 54, 216
        topic(brokers)
        write(brokers, TOPIC, range(1, alone + 1))
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "RAGTRACE_JUDGE_BASE_URL": judge.url}
        options = ["--judge", "openai:m"]
        workers = [Hand(brokers, tmp_path, "w0", *options, **settings)]
        try:
            wait_for(lambda: len(judge.asked_at) == alone, workers[0].log.read_text)
            workers += [Hand(brokers, tmp_path, f"w{n}", *options, **settings) for n in (1, 2)]
            wait_for(lambda: partitions(receiver) == [2, 2, 2], lambda: partitions(receiver))
            write(brokers, TOPIC, range(alone + 1, count + 1))
            wait_for(lambda: len(scored(receiver)) == count, lambda: (len(scored(receiver)), len(judge.asked_at)))
        finally:
            for worker in workers:
                worker.process.kill()
            judge.close()
    one, three = best_rate(judge.asked_at[:alone]), best_rate(judge.asked_at[alone:])
    print(f"{one:.1f} and {three:.1f} traces a second, ratio {three / one:.2f}")  # noqa: T201 - shown by pytest -s
    assert set(scored(receiver).values()) == {1}
    assert len(judge.asked_at) == count
    assert three / one >= 2.2


def test_traces_over_several_records_dead_letters_and_lag(tmp_path):
    with tansu() as brokers, OtlpReceiver() as receiver:
        topic(brokers)
        write(brokers, TOPIC, range(1, 21), records=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": brokers})
        producer.produce(TOPIC, b'{"resourceSpans": []}', b"a key")
        producer.produce(TOPIC, None, b"a tombstone")
        assert producer.flush(10) == 0
        worker = Hand(brokers, tmp_path, "w", "--once", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        try:
            assert worker.process.wait(60) == 1, worker.log.read_text()
        finally:
            worker.process.kill()
        write(brokers, TOPIC, range(21, 26))
        after = Hand(brokers, tmp_path, "after", "--once", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        try:
            assert after.process.wait(60) == 0, after.log.read_text()
        finally:
            after.process.kill()
        dead = confluent_kafka.Consumer(
            {"bootstrap.servers": brokers, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        dead.assign([confluent_kafka.TopicPartition(f"{TOPIC}.dead", 0)])
        message = dead.poll(10)
        dead.close()
        assert sum(committed(brokers)) == 20 * 3 + 2 + 5, "the tombstone and the dead letter, too"
    assert scored(receiver) == {number.to_bytes(16, "big").hex(): 1 for number in range(1, 26)}
    assert (message.key(), message.value()) == (b"a key", b'{"resourceSpans": []}')
    headers = {name: value.decode() for name, value in message.headers()}
    place = f"{TOPIC} [{headers['ragtrace.partition']}] at {headers['ragtrace.offset']}"
    assert headers["ragtrace.reason"] == "malformed"
    assert headers["ragtrace.topic"] == TOPIC
    log = worker.log.read_text()
    cause = headers["ragtrace.error"]
    assert "encoding otlp_proto" in cause
    assert f"a record of {place} cannot be read ({cause}): it went to {TOPIC}.dead" in log
    assert "lost data" not in log
    assert "cannot be read:" not in log, "at the end Kafka answers"
    ends = "1 invalid (unreadable), {} scored, 1 skipped (tombstone), 0 pending"
    assert log.splitlines()[-1] == f"ragtrace worker: stopped; {ends.format(20)}"
    stopped = after.log.read_text().splitlines()[-1]
    assert stopped == f"ragtrace worker: stopped; 5 scored since the start; in all {ends.format(25)}"
    points = receiver.metrics["ragtrace.kafka.lag"].gauge.data_points
    assert len(points) == 6
    assert all(0.0 <= point.as_double <= 67.0 for point in points)


def test_a_worker_tells_of_its_lag_and_of_a_broker_that_is_away(tmp_path):
    port, health = free_port(), free_port()
    broker, judge = start_tansu(port), SlowJudge(LONG_S)
    brokers = f"127.0.0.1:{port}"
    with OtlpReceiver() as receiver:
        topic(brokers, 2)
        write(brokers, TOPIC, range(1, 31))
        producer = confluent_kafka.Producer({"bootstrap.servers": brokers})
        for n in range(5):
            producer.produce(TOPIC, None, b"a tombstone", partition=n % 2)
        assert producer.flush(10) == 0
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "RAGTRACE_HEALTH_PORT": str(health),
            "RAGTRACE_JUDGE_BASE_URL": judge.url,
        }
        worker = Hand(brokers, tmp_path, "w", "--judge", "openai:m", "--deadline", "2", **settings)
        try:
            wait_for(lambda: len(judge.asked_at) == CONCURRENCY, worker.log.read_text)
            wait_for(lambda: sum(lag(receiver).values()) == 30, lambda: lag(receiver))
            assert lag(receiver).keys() == {0, 1}
            wait_for(lambda: ready(health) == (200, []), lambda: ready(health))
            broker.send_signal(signal.SIGSTOP)
            wait_for(lambda: ready(health)[0] == 503, lambda: ready(health))
            (reason,) = ready(health)[1]
            assert re.fullmatch(r"queue: does not answer for \d+ s; see the log", reason)
            worker.process.send_signal(signal.SIGTERM)
            assert worker.process.wait(60) == 1, worker.log.read_text()
        finally:
            worker.process.kill()
            judge.close()
            broker.kill()
            broker.wait()
    stopped = worker.log.read_text().splitlines()[-1]
    assert stopped.startswith("ragtrace worker: stopped; ")
    assert stopped.endswith(
        "5 skipped (tombstone), 30 pending when last seen; the queue cannot be read: "
        f"Kafka at {brokers} does not answer"
    )


def test_nothing_is_said_of_a_queue_that_was_never_seen(tmp_path):
    brokers = f"127.0.0.1:{free_port()}"
    worker = Hand(brokers, tmp_path, "w", "--deadline", "1")
    try:
        wait_for(lambda: "does not answer" in worker.log.read_text(), worker.log.read_text)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(60) == 0, worker.log.read_text()
    finally:
        worker.process.kill()
    cause = f"the queue cannot be read: Kafka at {brokers} does not answer"
    assert f"ragtrace worker: stopped; nothing scored, pending unknown; {cause}\n" in worker.log.read_text()


def test_a_topic_that_is_not_there_is_told_and_not_made(tmp_path):
    with tansu() as brokers:
        worker = Hand(brokers, tmp_path, "w", "--topic", "otlp_spams", "--once")
        try:
            assert worker.process.wait(60) == 1, worker.log.read_text()
        finally:
            worker.process.kill()
        made = confluent_kafka.Producer({"bootstrap.servers": brokers}).list_topics(timeout=10).topics
    assert "topic otlp_spams does not exist" in worker.log.read_text()
    assert not [name for name in made if "otlp_spams" in name]
