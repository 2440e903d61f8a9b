"""A record and scores for the tests of sinks."""

from __future__ import annotations

from typing import Any

from ragtrace.capture import internal_errors
from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey

RECORD = RagRecord(
    id="1", trace_id="a" * 32, span_id="b" * 16, workflow="support", query="Where is it?", ended=1_700_000_000.25
)


def score(name: str = "faithfulness", record: RagRecord = RECORD, **facts: Any) -> Score:
    if "state" not in facts:
        facts = {"state": "ok", "value": 0.5} | facts
    result = MetricResult(name=name, **({"version": "dcbbe188"} | facts))
    key = ScoreKey(trace_id=record.trace_id, span_id=record.span_id, metric=result.key, version=result.version)
    return Score(key=key, result=result, weight=20.0)


def lost_at(sink: str, site: str) -> int:
    return internal_errors().get(f"ragtrace.sinks.{sink}.{site}", 0)
