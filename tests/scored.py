"""Records and scores as tests of stores and services write them."""

from __future__ import annotations

from typing import Any

from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey


def numbered(n: int = 1, **facts: Any) -> RagRecord:
    """Return a record whose ids come from its number."""
    return RagRecord(id=str(n), **{"trace_id": f"{n:032x}", "span_id": f"{n:016x}"} | facts)


def score_of(
    record: RagRecord, metric: str = "mrr", value: float = 0.5, *, version: str = "v", at: float = 0.0, **facts: Any
) -> Score:
    """Return a score of a record; `stratum` and `weight` are the score's facts, all others its result's."""
    key = ScoreKey(trace_id=record.trace_id, span_id=record.span_id, metric=metric, version=version)
    drawn = {name: facts.pop(name) for name in ("stratum", "weight") if name in facts}
    result = MetricResult(name=metric, **{"state": "ok", "value": value, "version": version} | facts)
    return Score(key=key, result=result, scored_at=at, **drawn)
