"""A run that is lost lacks the scores that a judge could have given it, and no other."""

from __future__ import annotations

import pytest

from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.eval_context import MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.queues.base import Unit
from ragtrace.scoring.scorer import Scorer


def unit():
    pool = Pool(stage="retrieved", passages=(Passage(id="a", text="It is in Oslo.", rank=1),))
    return Unit(record=RagRecord(id="1", query="Where is the lab?", answer="In Oslo [1].", pools=(pool,)))


@pytest.mark.parametrize(("state", "reason"), [("skipped", "queue_full"), ("error", "judge_unavailable")])
def test_metrics_that_the_judge_never_computes_are_not_missing(state, reason):
    metrics = tuple(select(["faithfulness", "citations", "context_sufficiency", "no_answer"]))
    scorer = Scorer(metrics=metrics, judge=OverlapJudge(), embedder=None, options=MetricOptions())
    lost = scorer.unscored(unit(), state, reason)
    assert {it.result.name for it in lost} == {"faithfulness", "answered"}
