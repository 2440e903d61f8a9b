"""One spool, an application that hands its units over, and the service that scores them."""

from __future__ import annotations

import logging
import time

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace import semconv
from ragtrace.service import current
from tests.unit.judges.judge_server import JudgeServer


def configure(path, **settings):
    reader = InMemoryMetricReader()
    ragtrace.configure(
        **{"sample_rate": 1.0, "spool": str(path), **settings},
        tracer_provider=TracerProvider(),
        meter_provider=MeterProvider([reader]),
        logger_provider=LoggerProvider(),
    )
    return reader


def ask(number):
    for n in range(number):
        with ragtrace.query(f"Where is lab {n}?", workflow="labs") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
            run.answered("The lab is in Oslo.")


def points(reader, name):
    data = reader.get_metrics_data()
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
    return {tuple(sorted(p.attributes.items())): p.value for m in metrics for p in m.data.data_points}


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "spool.sqlite"
    ragtrace.shutdown(5)


def hand_over(path, number, **settings):
    reader = configure(path, scorer="worker", **settings)
    ask(number)
    assert ragtrace.flush(30)
    return reader


def test_a_unit_drawn_for_metrics_that_the_scorer_has_not_is_skipped_and_said_once(path, caplog):
    hand_over(path, 3, metrics=["faithfulness", "citations"])
    configure(path, metrics=["rouge_consistency"])
    with caplog.at_level(logging.WARNING, "ragtrace"):
        current().begin()
        assert ragtrace.flush(30)
    counts, pending = current().accounts(is_fresh=True)
    assert (counts, pending) == ({("skipped", "no_metric"): 3}, 0)
    (said,) = [record.message for record in caplog.records if "citations" in record.message]
    assert "faithfulness" in said
    assert "rouge_consistency" in said


def test_a_unit_from_elsewhere_has_its_series_at_0_before_it_is_judged(path):
    hand_over(path, 1, metrics=["faithfulness"])
    server = JudgeServer()
    server.start()
    try:
        reader = configure(
            path, metrics=["faithfulness"], judge="openai:m", judge_base_url=server.url, judge_api_key="k",
            budget_tokens_per_day=10,
        )  # fmt: skip
        current().begin()
        until(lambda: points(reader, semconv.SCORE_N))
        ((about, n),) = points(reader, semconv.SCORE_N).items()
        assert n == 0
        assert (semconv.GEN_AI_WORKFLOW_NAME, "labs") in about
        assert server.requests == []
    finally:
        ragtrace.shutdown(5)
        server.stop()
