"""A run that is lost lacks the scores that a judge could have given it, and no other."""

from __future__ import annotations

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import MetricOptions, select
from ragtrace.queues import Unit
from ragtrace.scoring import Scorer
from tests import make


def unit():
    return Unit(
        record=make.record("It is in Oslo.", stage="retrieved", query="Where is the lab?", answer="In Oslo [1].")
    )


@pytest.mark.parametrize(("state", "reason"), [("skipped", "queue_full"), ("error", "judge_unavailable")])
def test_metrics_that_the_judge_never_computes_are_not_missing(state, reason):
    metrics = tuple(select(["faithfulness", "citations", "context_sufficiency", "no_answer"]))
    scorer = Scorer(metrics=metrics, judge=OverlapJudge(), embedder=None, options=MetricOptions())
    lost = scorer.unscored(unit(), state, reason)
    assert {it.result.name for it in lost} == {"faithfulness", "answered"}
