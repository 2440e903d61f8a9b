"""The combined means of a service: which scores they take, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from opentelemetry.metrics import NoOpMeter

from ragtrace.metrics import select
from ragtrace.model import JudgeInfo, RagRecord, Score
from ragtrace.service import CombinedMeans
from ragtrace.telemetry import Instruments
from tests import make

if TYPE_CHECKING:
    from ragtrace.model import Stratum

WINDOW_S = 100.0
OUTPUTS = {output.name: output for metric in select(["faithfulness"]) for output in metric.spec.outputs}


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Means:
    """Combined means under a clock of their own."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        instruments = Instruments([NoOpMeter("t")])
        self.means = CombinedMeans(
            first="overlap",
            second="openai:m",
            outputs=OUTPUTS,
            instruments=instruments,
            window_s=WINDOW_S,
            clock=self.clock,
        )

    def take(self, *scores: Score, workflow: str = "rag") -> None:
        self.means.observe(RagRecord(id="1", trace_id="a" * 32, workflow=workflow), scores)

    def mean(self) -> float | None:
        return next((value for value, _ in self.means.points("mean")), None)


def score(judge: str, value: float | None, weight: float | None = 2.0, stratum: Stratum = "random") -> Score:
    said = {} if value is not None else {"state": "error", "reason": "judge_timeout"}
    drawn = {"weight": weight, "stratum": stratum}
    return make.score(value=value, judge=JudgeInfo(model=judge), version=judge[:4], **said, **drawn)


def filled(pairs: int = 20, value: float = 0.5) -> Means:
    means = Means()
    for _ in range(pairs):
        means.take(score("overlap", 0.8), score("openai:m", value, 8.0))
        for _ in range(3):
            means.take(score("overlap", 0.8))
    return means


def test_points_name_both_judges() -> None:
    ((mean, labels),) = filled().means.points("mean")
    assert mean == pytest.approx(0.5, abs=0.02)
    assert labels["ragtrace.judge.model"] == "openai:m"
    assert labels["ragtrace.judge.version"] == "open"
    assert labels["ragtrace.first_judge.model"] == "overlap"
    assert labels["ragtrace.first_judge.version"] == "over"
    assert labels["ragtrace.stratum"] == "random"


def test_no_point_before_the_second_judge_has_spoken_ten_times() -> None:
    assert filled(pairs=9).mean() is None
    means = Means()
    for _ in range(100):
        means.take(score("overlap", 0.8))
    assert means.mean() is None


def test_forced_scores_and_unknown_weights_stay_out() -> None:
    means = filled()
    before = means.mean()
    for _ in range(50):
        means.take(score("overlap", 0.1, 1.0, "forced"), score("openai:m", 0.0, 1.0, "forced"))
        means.take(score("overlap", 0.1, None), score("openai:m", 0.0, None))
    assert means.mean() == before


def test_runs_leave_the_window_and_go_on_teaching() -> None:
    means = filled(value=0.9)
    means.clock.now += WINDOW_S + 1.0
    assert means.mean() is None
    for _ in range(12):
        means.take(score("overlap", 0.8), score("openai:m", 0.2, 8.0))
    found = means.mean()
    assert found is not None
    assert found == pytest.approx(0.2, abs=0.01)  # of this window alone


def test_failures_of_the_second_judge_are_missing_and_not_zero() -> None:
    means = filled(value=0.9)
    for _ in range(10):
        means.take(score("overlap", 0.8), score("openai:m", None, 8.0))
    found = means.mean()
    assert found is not None
    assert found == pytest.approx(0.9, abs=0.02)


def test_workflows_are_series_of_their_own() -> None:
    means = filled()
    for _ in range(12):
        means.take(score("overlap", 0.3), score("openai:m", 0.1, 2.0), workflow="other")
    found = {str(labels["gen_ai.workflow.name"]): value for value, labels in means.means.points("mean")}
    assert found == {"rag": pytest.approx(0.5, abs=0.02), "other": pytest.approx(0.1, abs=0.02)}


def test_a_run_that_waits_for_the_second_judge_is_one_that_it_failed_on_until_it_answers() -> None:
    means = filled()
    for _ in range(2):  # every try tells
        means.take(score("overlap", 0.1), score("openai:m", None, 8.0))
    waiting = means.mean()
    assert waiting is not None
    assert [len(series.runs) for series in means.means._series.values()] == [81]
    means.take(score("overlap", 0.1), score("openai:m", 0.9, 8.0))
    answered = means.mean()
    assert answered is not None
    assert answered > waiting
    assert [len(series.runs) for series in means.means._series.values()] == [81]
    means.clock.now += WINDOW_S + 1
    assert means.mean() is None
    assert [len(series.waiting) for series in means.means._series.values()] == [0]
