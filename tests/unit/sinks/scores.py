"""A record and scores for the tests of sinks."""

from __future__ import annotations

from typing import Any

from ragtrace.capture import internal_errors
from ragtrace.model import RagRecord, Score
from tests import make

RECORD = RagRecord(
    id="1", trace_id="a" * 32, span_id="b" * 16, workflow="support", query="Where is it?", ended=1_700_000_000.25
)


def score(name: str = "faithfulness", record: RagRecord = RECORD, **facts: Any) -> Score:
    return make.score(record, name, **({"version": "dcbbe188", "weight": 20.0} | facts))


def lost_at(sink: str, site: str) -> int:
    return internal_errors().get(f"ragtrace.sinks.{sink}.{site}", 0)
