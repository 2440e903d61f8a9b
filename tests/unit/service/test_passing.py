"""Pass or fail is decided once: spans, counters and stores say the same."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import NoOpTracer

from ragtrace.judges import LLMJudge, ScriptedChat
from ragtrace.metrics import EvalContext, MetricOptions, Output, evaluate, select
from ragtrace.queues import Unit
from ragtrace.scoring import Scorer
from ragtrace.service import BaselineMonitor, MixMonitor, ScoreHandler
from ragtrace.telemetry import EvaluationWriter, Instruments
from tests.process.observing import points
from tests.unit.metrics.test_one_to_five import graded, record

NAME = "answer_relevancy_1to5"


def strict(grade):
    """A judge that wants a 4."""
    judge = LLMJudge(ScriptedChat([graded(grade)]))
    judge.thresholds = {NAME: 4.0, f"{NAME}_normalised": 0.75}
    return judge


@pytest.mark.parametrize(
    ("chosen", "passed"), [({}, False), ({"threshold_1to5": 2.0}, True), ({"threshold_1to5": 5.0}, False)]
)
async def test_a_person_s_threshold_comes_before_the_judge_s_and_this_before_the_metric_s(chosen, passed):
    results = await evaluate(
        select([NAME]), EvalContext(record(), judge=strict(3), options=MetricOptions(**chosen))
    )
    assert [result.passed for result in results] == [passed, passed]


@pytest.mark.parametrize("chosen", [{}, {"threshold_1to5": 2.0}])
async def test_the_counters_take_the_word_of_the_result(chosen):
    reader = InMemoryMetricReader()
    scorer = Scorer(metrics=tuple(select([NAME])), judge=strict(3), embedder=None, options=MetricOptions(**chosen))
    handler = ScoreHandler(
        scorer=scorer,
        baselines=BaselineMonitor({}),
        mix=MixMonitor({}),
        instruments=Instruments([MeterProvider([reader]).get_meter("ragtrace")]),
        evaluation=EvaluationWriter(NoOpTracer(), None),
        outputs={output.name: output for metric in scorer.metrics for output in metric.spec.outputs},
    )
    unit = Unit(record=record(trace_id="a" * 32), probability=0.5)
    scores = await scorer.score(unit)
    handler.publish(unit, scores, 0)
    low = {
        dict(key)["gen_ai.evaluation.name"]: value for key, value in points(reader, "ragtrace.score.low.w").items()
    }
    assert low == {score.result.name: 0.0 if score.result.passed else 2.0 for score in scores}


async def test_a_threshold_of_a_1_to_5_form_may_be_a_share():
    (metric,) = select([NAME])
    judge = LLMJudge(ScriptedChat([graded(2)]))
    judge.thresholds = {NAME: 0.5}
    (one, _) = await evaluate([metric], EvalContext(record(), judge=judge))
    assert one.passed is False


def test_what_has_no_threshold_passes_and_fails_nothing():
    assert Output(name="x", threshold=None).passes(0.5) is None
    assert Output(name="x", direction="down", threshold=0.2).passes(0.1)
    assert not Output(name="x", direction="down", threshold=0.2).passes(0.3)
