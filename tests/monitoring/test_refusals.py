"""70 % of the bad answers become refusals: the mean rises, and everything else tells.

The runs go through the real service, sampled with a probability of one half. What its counters then hold is what
promtool is given, four days of it before the change and thirty hours after.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace import semconv
from ragtrace.stats import Sums, mean_interval, mean_whatever_is_missing, wilson
from ragtrace_dashboards import SERIES
from tests.monitoring.drift_cases import ANSWERED, QUALITY
from tests.monitoring.promtool import COARSE, counter, firing, run
from tests.monitoring.share_cases import MISSING
from tests.process.observing import SeededIds, providers

pytestmark = pytest.mark.slow

BAD, REFUSED = 0.245, 0.70
RUNS = {"before": 1_200, "after": 1_200}
HOURS = {"before": 96.0, "after": 30.0}
ANSWERS = {
    "good": "The lab is in Oslo.",
    "bad": "Penguins rule Madrid.",
    "refusal": "I do not know.",
}
MOMENTS = (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2)
SUMS = (
    *MOMENTS, semconv.SCORE_N, semconv.SCORE_LOW_W, semconv.SCORE_DUE_W, semconv.SCORE_DUE_W2,
    semconv.SCORE_MISSING_W,
)  # fmt: skip
Labels = tuple[tuple[str, object], ...]


@dataclass
class Phase:
    """What the service's counters hold after some runs, and the mean had no answer become a refusal."""

    sums: dict[str, dict[Labels, float]]
    truth: float
    refused: int = field(default=0)

    def of(self, name, metric):
        return sum(value for about, value in self.sums[name].items() if dict(about)[_NAME] == metric)

    def mean(self, metric):
        return self.of(semconv.SCORE_WX, metric) / self.of(semconv.SCORE_W, metric)

    def bounds(self, metric):
        sums = Sums(*(self.of(name, metric) for name in MOMENTS))
        due, due2 = self.of(semconv.SCORE_DUE_W, metric), self.of(semconv.SCORE_DUE_W2, metric)
        n_due = due * due / due2
        missing = wilson(self.of(semconv.SCORE_MISSING_W, metric) / due * n_due, n_due)
        return mean_whatever_is_missing(mean_interval(sums), missing)


_NAME = semconv.GEN_AI_EVALUATION_NAME


def served(kinds, seed):
    """Capture one run of each kind of answer through a service of its own, and read its counters."""
    reader = InMemoryMetricReader()
    made = providers(
        meter_provider=MeterProvider([reader], shutdown_on_exit=False),
        tracer_provider=TracerProvider(id_generator=SeededIds(seed), shutdown_on_exit=False),
    )
    ragtrace.configure(sample_rate=0.5, judge="overlap", metrics=["faithfulness", "no_answer"], **made)
    try:
        for number, kind in enumerate(kinds):
            with ragtrace.query(f"Where is lab {number}?", workflow="support") as one:
                one.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
                one.answered(ANSWERS[kind])
        assert ragtrace.flush(120)
        found = defaultdict(dict)
        for resource in reader.get_metrics_data().resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name in SUMS:
                        found[metric.name] = {
                            tuple(sorted(point.attributes.items())): point.value
                            for point in metric.data.data_points
                        }
        return found
    finally:
        ragtrace.shutdown(10)


@pytest.fixture(scope="module")
def phases():
    """The service's counters before and after 70 % of the bad answers have become refusals."""
    chance, found = random.Random(15), {}
    for seed, (name, n) in enumerate(RUNS.items()):
        planned = ["bad" if chance.random() < BAD else "good" for _ in range(n)]
        told = [
            "refusal" if kind == "bad" and name == "after" and chance.random() < REFUSED else kind
            for kind in planned
        ]
        truth = planned.count("good") / n
        found[name] = Phase(sums=served(told, seed), truth=truth, refused=told.count("refusal"))
    return found


def test_the_mean_rises_and_fewer_questions_are_answered(phases):
    before, after = phases["before"], phases["after"]
    assert before.truth == pytest.approx(after.truth, abs=0.03)
    assert before.mean("faithfulness") == pytest.approx(0.755, abs=0.05)
    assert after.mean("faithfulness") == pytest.approx(0.913, abs=0.03)
    assert before.mean("answered") == 1.0
    assert after.mean("answered") == pytest.approx(1 - BAD * REFUSED, abs=0.05)


@pytest.mark.parametrize("name", RUNS)
def test_the_bounds_hold_the_mean_that_the_refused_answers_would_have_given(phases, name):
    phase = phases[name]
    found = phase.bounds("faithfulness")
    assert found.low <= phase.truth <= found.high
    assert (found.high - found.low > 0.17) == (name == "after")
    missing = {dict(about)[semconv.REASON]: w for about, w in phase.sums[semconv.SCORE_MISSING_W].items() if w}
    assert set(missing) == ({"abstained"} if phase.refused else set())


def scraped(phases):
    """The same counters as Prometheus would scrape them, at a steady pace in each phase."""
    lines = []
    for name in SUMS:
        every = {about for phase in phases.values() for about in phase.sums[name]}
        for about in sorted(every, key=str):
            rates = [(HOURS[at], phase.sums[name].get(about, 0.0) / HOURS[at]) for at, phase in phases.items()]
            labels = {semconv.prometheus_name(key, ""): str(value) for key, value in about}
            lines.append(counter(SERIES[name], {"job": "shop"} | labels, *rates, step_min=COARSE))
    return lines


def test_the_rules_tell_of_the_refusals_while_the_mean_looks_better(tmp_path, phases):
    end, job = HOURS["before"] + HOURS["after"], "shop"
    checks = [
        firing(QUALITY, end, 0, job),
        firing(MISSING, HOURS["before"] - 2, 0, job),
        firing(MISSING, end, 1, job),
    ]
    checks += [firing(ANSWERED, HOURS["before"] - 2, 0, job), firing(ANSWERED, end, 1, job)]
    run(tmp_path, scraped(phases), checks, only={QUALITY, MISSING, ANSWERED}, step_min=COARSE)
