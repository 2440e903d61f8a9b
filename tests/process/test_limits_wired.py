"""The limits in a running service: units wait for the judge in the queue, and no call is made meanwhile."""

from __future__ import annotations

import time

import pytest

import ragtrace
from ragtrace.service import current
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.guards.judge_server import Answer, completion, refusal
from tests.guards.processes import until
from tests.process.observing import ask, points

pytestmark = pytest.mark.slow

GOOD = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}


def test_within_the_budget_units_are_scored_and_the_gauge_tells_what_is_left(server, start):
    server.always = lambda _: Answer(200, completion(GOOD))
    reader = start(budget_tokens_per_day=1_000_000)
    ask()
    assert ragtrace.flush(20)
    left = points(reader, "ragtrace.budget.remaining")
    (tokens,) = [value for key, value in left.items() if ("ragtrace.unit", "token") in key]
    assert 900_000 < tokens < 1_000_000
    assert list(points(reader, "ragtrace.judge.breaker.state").values()) == [0.0]


@pytest.mark.parametrize("spool", [False, True])
def test_the_last_export_tells_what_is_left_of_the_budget(server, monkeypatch, tmp_path, spool):
    """The books were closed before it: it told of a whole budget, and a spool's were opened again."""
    server.always = lambda _: Answer(200, completion(GOOD))
    with OtlpReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp")
        ragtrace.configure(
            judge="openai:m", judge_base_url=server.url, judge_api_key="k", sample_rate=1.0,
            metrics=["faithfulness"], budget_tokens_per_day=1_000_000, spool=str(tmp_path / "s") if spool else None,
        )  # fmt: skip
        ask()
        assert ragtrace.flush(20)
        assert ragtrace.shutdown(20)
        (tokens,) = [
            point.as_double or point.as_int
            for point in receiver.metrics["ragtrace.budget.remaining"].gauge.data_points
            if attributes_of(point.attributes)["ragtrace.unit"] == "token"
        ]
    assert 900_000 < tokens < 1_000_000


def test_without_a_budget_units_wait_and_no_call_is_made(server, start):
    server.always = lambda _: Answer(200, completion(GOOD))
    start(budget_tokens_per_day=10)
    ask()
    until(lambda: current().queue.size == 1)
    time.sleep(0.5)
    assert server.requests == []
    assert current().ledger.pending == 1


@pytest.mark.parametrize("tokens", [10, 20_000_000], ids=["no budget", "no judge"])
def test_a_number_that_needs_no_judge_does_not_end_a_unit_whose_verdicts_all_failed(server, start, tokens):
    start(metrics=["faithfulness", "answer_similarity"], budget_tokens_per_day=tokens)  # the server answers 500
    ask()
    until(lambda: (current().queue.next_due_s() or 0.0) > 0.0, 30)  # back in the queue, due later
    assert current().ledger.pending == 1


def test_a_judge_that_refuses_the_key_is_asked_once_and_then_held(server, start):
    server.always = lambda _: refusal(401, "wrong key")
    reader = start()
    for _ in range(20):
        ask()
    until(lambda: list(points(reader, "ragtrace.judge.breaker.state").values()) == [2.0])
    until(lambda: current().queue.size == 20)
    time.sleep(0.5)
    assert len(server.requests) <= 8  # those that were under way when the first refusal came
    assert current().ledger.pending == 20


def test_what_a_score_costs_is_told_where_the_price_is_known(server, start):
    server.always = lambda _: Answer(200, completion(GOOD))
    reader = start(price_input_usd_per_million=1.0, price_output_usd_per_million=10.0)
    ask()
    assert ragtrace.flush(20)
    (cost,) = points(reader, "ragtrace.evaluation.cost").values()
    assert cost == pytest.approx(120e-6 + 7 * 10e-6)
