"""Runs that fail at known stages, through the real service: each verdict's counter has the runs of its stage."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace import semconv
from ragtrace.model import VERDICTS
from ragtrace.stats import WeightSums, weighted_shares
from tests.process.observing import providers

GOOD = {"id": "a", "text": "The lab is in Oslo.", "score": 0.9}
OTHER = {"id": "b", "text": "Bergen is rainy.", "score": 0.8}
STAGES: dict[str, tuple[list[Any], list[Any], list[Any], str]] = {
    "ok": ([GOOD, OTHER], [GOOD], [GOOD], "The lab is in Oslo."),
    "not_retrieved": ([OTHER], [OTHER], [OTHER], "Bergen is rainy."),
    "lost_in_rerank": ([GOOD, OTHER], [OTHER], [OTHER], "Bergen is rainy."),
    "cut_from_prompt": ([GOOD, OTHER], [GOOD, OTHER], [OTHER], "Bergen is rainy."),
    "unsupported": ([GOOD, OTHER], [GOOD], [GOOD], "Penguins rule Madrid."),
    "wrongly_refused": ([GOOD, OTHER], [GOOD], [GOOD], "I do not know."),
}
RUNS = {
    "ok": 10,
    "not_retrieved": 1,
    "lost_in_rerank": 5,
    "cut_from_prompt": 2,
    "unsupported": 1,
    "wrongly_refused": 1,
}


def capture(verdict: str) -> None:
    pool, chosen, used, answer = STAGES[verdict]
    with ragtrace.query("Where is the lab?", workflow="support") as run:
        run.retrieved(pool)
        run.reranked(chosen, model="x")
        run.used(used)
        run.answered(answer)
        run.labels({"a": 5, "b": 1})


@pytest.fixture
def reader(service: Any) -> InMemoryMetricReader:
    made = InMemoryMetricReader()
    meters = MeterProvider([made], shutdown_on_exit=False)
    metrics = ["faithfulness", "no_answer", "diagnosis"]
    service.configure(sample_rate=1.0, judge="overlap", metrics=metrics, **providers(meter_provider=meters))
    return made


def points(reader: InMemoryMetricReader, name: str) -> dict[tuple[str, str], float]:
    data: Any = reader.get_metrics_data()
    found = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]
    labels = (semconv.GEN_AI_WORKFLOW_NAME, semconv.DIAGNOSIS_VERDICT)
    assert all(set(point.attributes) == set(labels) for point in found)
    return {(point.attributes[labels[0]], point.attributes[labels[1]]): point.value for point in found}


def test_each_verdict_counts_the_runs_of_its_stage(service: Any, reader: InMemoryMetricReader) -> None:
    for verdict, count in RUNS.items():
        for _ in range(count):
            capture(verdict)
    assert service.flush(60)
    found = {
        name: points(reader, name) for name in (semconv.DIAGNOSIS_N, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    }
    expected = {("support", verdict): RUNS.get(verdict, 0) for verdict in VERDICTS}
    assert found[semconv.DIAGNOSIS_N] == expected, "verdicts of no run are there, at 0"
    sums = {
        verdict: WeightSums(
            found[semconv.DIAGNOSIS_W]["support", verdict], found[semconv.DIAGNOSIS_W2]["support", verdict]
        )
        for verdict in VERDICTS
    }
    shares = weighted_shares(sums)
    assert {verdict: it.mean for verdict, it in shares.items()} == pytest.approx(
        {verdict: RUNS.get(verdict, 0) / 20 for verdict in VERDICTS}
    )
