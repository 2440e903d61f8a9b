"""Means, weights and intervals that the real service exports, against all runs that it was offered.

Each workflow is a window of its own: some thirty runs, drawn at .5, in sessions of one to four turns with one kind of
answer, or as one question that is asked up to four times.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace import semconv
from ragtrace.stats import cluster_sums, clustered_interval
from tests.process.observing import SeededIds, providers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

WORKFLOWS, RUNS = 80, 30
RATE = 0.5
ANSWERS = {
    "good": "The lab is in Oslo.",
    "half": "The lab is in Oslo. Penguins rule Madrid.",
    "bad": "Penguins rule Madrid.",
}
WORTH = {"good": 1.0, "half": 0.5, "bad": 0.0}
SHARES = {"good": 0.75, "half": 0.1, "bad": 0.15}
TRUTH = sum(WORTH[kind] * share for kind, share in SHARES.items())
SUMS = (
    semconv.SCORE_N, semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2,
)  # fmt: skip
GAUGES = (semconv.WINDOW_MEAN, semconv.WINDOW_LOW, semconv.WINDOW_HIGH)


@dataclass
class Workflow:
    """What one workflow was offered, what a sink saw of it, and what was exported."""

    offered: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    exported: dict[str, float] = field(default_factory=dict)

    def interval(self) -> tuple[float, float]:
        return self.exported[semconv.WINDOW_LOW], self.exported[semconv.WINDOW_HIGH]


class Scored:
    """A sink that keeps the scores of each workflow."""

    def __init__(self, found: dict[str, Workflow], by: str) -> None:
        self._found, self._by = found, by

    def emit(self, record, scores) -> None:
        kept = self._found[record.workflow]
        for score in scores:
            kept.values.append(score.result.value)
            kept.weights.append(score.weight)
            kept.clusters.append(record.session if self._by == "session" else record.query)


@pytest.fixture(scope="module", params=["session", "question"])
def workflows(request):
    """Eighty workflows that went through one service."""
    found, chance, reader = defaultdict(Workflow), random.Random(3), InMemoryMetricReader()
    made = providers(
        meter_provider=MeterProvider([reader], shutdown_on_exit=False),
        tracer_provider=TracerProvider(id_generator=SeededIds(8), shutdown_on_exit=False),
    )
    sink = Scored(found, request.param)
    ragtrace.configure(sample_rate=RATE, judge="overlap", metrics=["faithfulness"], sinks=sink, **made)
    try:
        for number in range(WORKFLOWS):
            name = f"w{number}"
            for cluster, kind in _turns(chance):
                ask(name, f"{name}-{cluster}", kind, by=request.param)
                found[name].offered.append(WORTH[kind])
            if number % 10 == 9:
                assert ragtrace.flush(120)
        for name, about, value in points(reader):
            found[about[semconv.GEN_AI_WORKFLOW_NAME]].exported[name] = value
    finally:
        ragtrace.shutdown(10)
    return list(found.values())


def _turns(chance: random.Random):
    """Yield the cluster and the kind of answer of each run of a workflow."""
    cluster = 0
    left = RUNS
    while left:
        turns = min(chance.randint(1, 4), left)
        kind = chance.choices(list(SHARES), list(SHARES.values()))[0]
        yield from [(cluster, kind)] * turns
        cluster, left = cluster + 1, left - turns


def ask(workflow: str, cluster: str, kind: str, *, by: str) -> None:
    question, session = ("Where is the lab?", cluster) if by == "session" else (f"Where is {cluster}?", None)
    with ragtrace.query(question, workflow=workflow, session=session) as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered(ANSWERS[kind])


def points(reader: InMemoryMetricReader):
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name in (*SUMS, *GAUGES):
                    for point in metric.data.data_points:
                        yield metric.name, point.attributes, point.value


def test_weights_stand_for_all_runs_and_the_mean_is_theirs(workflows):
    offered = sum(len(it.offered) for it in workflows)
    assert offered == WORKFLOWS * RUNS
    assert {weight for it in workflows for weight in it.weights} == {1.0 / RATE}
    total = sum(it.exported[semconv.SCORE_W] for it in workflows)
    assert total == pytest.approx(offered, rel=0.06)  # three standard errors of 2,400 draws at .5
    mean = sum(it.exported[semconv.SCORE_WX] for it in workflows) / total
    assert mean == pytest.approx(fmean(x for it in workflows for x in it.offered), abs=0.03)


def test_counters_hold_the_sums_over_clusters(workflows):
    for it in workflows:
        expected = cluster_sums(it.values, it.clusters, it.weights)
        assert it.exported[semconv.SCORE_N] == len(it.values)
        assert [it.exported[name] for name in SUMS[1:]] == pytest.approx(list(expected))


def test_gauges_hold_the_interval_of_those_sums(workflows):
    for it in workflows:
        expected = clustered_interval(it.values, it.clusters, it.weights)
        assert [it.exported[name] for name in GAUGES] == pytest.approx(list(expected))


def test_the_exported_intervals_hold_the_mean_of_the_application(workflows):
    held = fmean(low <= TRUTH <= high for low, high in map(Workflow.interval, workflows))
    alone = [clustered_interval(it.values, None, it.weights) for it in workflows]
    naive = fmean(it.low <= TRUTH <= it.high for it in alone)
    assert held >= 0.93
    assert naive < held, "turns that go together counted as if they did not"
    assert fmean(high - low for low, high in map(Workflow.interval, workflows)) < 0.6
