"""Health and canaries of a running service."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics

import ragtrace
from ragtrace.scoring.canary import canaries
from ragtrace.scoring.limits import breaker
from ragtrace.service import current, health
from tests.guards.judge_server import Answer, completion
from tests.guards.processes import until
from tests.process.observing import ask, points
from tests.process.test_limits_wired import GOOD

pytestmark = pytest.mark.slow


def asked(path):
    try:
        with urllib.request.urlopen(current().health.url + path, timeout=30) as reply:  # noqa: S310 - our own
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_units_that_never_end_are_a_reason_not_to_be_ready(server, start, monkeypatch):
    monkeypatch.setattr(health, "longest_quiet_s", lambda timeout_s, **_: 0.5)
    may_answer = threading.Event()
    server.always = lambda _: Answer(200, completion(GOOD), hold=may_answer)
    start(health_port=0)
    assert asked("/readyz")[0] == 200
    ask()
    until(lambda: asked("/readyz")[0] == 503)
    assert "progress: no unit and no call has ended" in asked("/readyz")[1]["reasons"][0]
    may_answer.set()
    until(lambda: asked("/readyz")[0] == 200)


def test_a_unit_of_many_calls_makes_progress_with_each(server, start, monkeypatch):
    """Its calls together take longer than one may; a service that scores such units was called stuck."""
    monkeypatch.setattr(health, "longest_quiet_s", lambda timeout_s, **_: 2.0)
    calls = []

    def slow(_):
        calls.append(asked("/readyz")[0])
        time.sleep(0.4)
        return Answer(200, completion({"grades": [{"id": 1, "grade": 4}]}))

    server.always = slow
    start(health_port=0, metrics=["context_precision_graded"], metric_options_grade_batch=1, concurrency=1)
    with ragtrace.query("Where is the lab?") as run:
        run.retrieved([{"id": str(n), "text": f"The lab {n} is in Oslo."} for n in range(8)])
        run.answered("The lab is in Oslo.")
    assert ragtrace.flush(30)
    assert calls == [200] * 8


def test_a_judge_that_hangs_is_a_reason_not_to_be_ready(server, start, monkeypatch):
    """A timeout is longer than the window of the breaker, which therefore never saw ten failures."""
    monkeypatch.setattr(breaker, "WINDOW_S", 0.05)
    never = threading.Event()
    server.always = lambda _: Answer(200, completion(GOOD), hold=never)
    start(health_port=0, judge_timeout_s=1.0)
    for _ in range(16):
        ask()
    until(lambda: asked("/readyz")[0] == 503, 60)
    assert "breaker: open" in asked("/readyz")[1]["reasons"][0]
    never.set()


@pytest.mark.parametrize("tokens", [2**63, 2**62, 10**12, -1])
def test_a_service_goes_on_whatever_its_judge_counts(server, start, tmp_path, tokens):
    """After eight such replies a service that was healthy and ready scored nothing any more."""
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
    server.always = lambda _: Answer(200, completion(GOOD, usage=usage))
    reader = start(health_port=0, spool=str(tmp_path / "spool"), store=str(tmp_path / "store"))
    for _ in range(20):
        ask()
    assert ragtrace.flush(60)
    assert asked("/readyz")[0] == asked("/healthz")[0] == 200
    assert encode_metrics(reader.get_metrics_data()).SerializeToString()
    assert sum(points(reader, "ragtrace.judge.tokens").values()) == 0  # as of a server that does not count
    losses = dict(points(reader, "ragtrace.internal.losses"))
    assert losses[(("ragtrace.site", "usage_invalid"),)] >= 20
    (left,) = [
        v for key, v in points(reader, "ragtrace.budget.remaining").items() if ("ragtrace.unit", "token") in key
    ]
    assert 20_000_000 - 20 * 5_000 < left < 20_000_000
    assert current()._limiter.reading().under_way == 0


def test_canaries_are_asked_on_schedule_and_counted_apart(server, start, monkeypatch):
    monkeypatch.setattr(canaries, "FIRST_AFTER_S", 0.0)
    server.always = lambda _: Answer(200, completion(GOOD))
    reader = start(health_port=0, canary_every_s=3600.0)
    current().begin()
    until(lambda: current().canaries.last is not None)
    time.sleep(0.1)
    assert current().ledger.offered == 0
    assert points(reader, "ragtrace.evaluations") == {}
    assert len(server.requests) >= 18
    assert list(points(reader, "ragtrace.canary.gap").values()) == [0.0]  # it says the same of both


def test_a_spool_of_more_units_than_the_buffer_may_hold_is_ready(start, tmp_path):
    start(health_port=0, spool=str(tmp_path / "spool.sqlite"), scorer="worker", queue_units=50)
    for _ in range(80):
        ask()
        ragtrace.flush(20)
    until(lambda: current().queue.size == 80)
    assert asked("/readyz") == (
        200,
        {"status": "ok", "checks": dict.fromkeys(asked("/readyz")[1]["checks"], "ok"), "reasons": []},
    )


def test_a_spool_at_its_bound_is_a_reason_not_to_be_ready(start, tmp_path):
    start(health_port=0, spool=str(tmp_path / "spool.sqlite"), scorer="worker", spool_bytes=1_048_576)
    for _ in range(60):
        with ragtrace.query("Where is the lab?") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo. " * 2_000, "score": 0.9}])
            run.answered("The lab is in Oslo.")
    assert ragtrace.flush(20)
    until(lambda: asked("/readyz")[0] == 503)
    assert "queue: full" in asked("/readyz")[1]["reasons"][0]
