"""What a score's row holds."""

from __future__ import annotations

import math

from ragtrace.model import MetricResult, Score, ScoreKey
from ragtrace.stores.tables import score_of

KEY = ScoreKey(trace_id="a" * 32, span_id="b" * 16, metric="mrr", version="v1")


def test_one_number_that_json_does_not_know_takes_no_other_with_it():
    details = {"n": 3, "ratio": math.inf, "claims": ["The Hague"]}
    score = Score(key=KEY, result=MetricResult(name="mrr", state="ok", value=0.5, details=details))
    assert score_of(score, revision=1, at=0.0, has_content=False)["details"] == '{"n":3}'
