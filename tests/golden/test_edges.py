"""Edges that no command reaches: other parameters, options that are no settings, and grades of no whole number."""

from __future__ import annotations

from typing import Any

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, MetricOptions, evaluate, select
from ragtrace.model import RagRecord
from tests.golden.running import set_metrics

LABELS = {"d0": 5, "d1": 4, "d2": 4, "d3": 3, "d4": 2}
KEYS = ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5", "precision4", "harm")
MANY = {"a": 5, "t": 3, **{f"d{n}": 4 for n in range(10)}}
RETURNED = {"precision4": 1.0, "harm": 0.0, "ra_nwg": 1 / 1.5, "proc": 1.0, "pct_proc": 1 / 1.5}
WEIGHTS = {"5": 1.0, "4": 0.05, "3": 0.05, "2": 0.0, "1": 0.0}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"labels": {"d0": 4.5, "d4": 1}}, {"na": "invalid_grade"}),
        ({"labels": {"d0": True, "d4": 1}}, {"na": "invalid_grade"}),
        ({"labels": {"d0": "5", "d4": 1}}, {"na": "invalid_grade"}),
        (
            {"topk": ["d0"], "k": 3, "params": {"denominator": "returned"}},
            RETURNED | {"n_recall4": 1 / 3, "n_recall5": 1.0},
        ),
        (
            {"labels": MANY, "topk": ["t"], "pool": ["a"], "k": 1, "params": {"monotone": True}},
            dict.fromkeys(KEYS, 0.0) | {"ra_nwg": 0.05, "weights": WEIGHTS, "proc": 1.0, "pct_proc": 0.05},
        ),
    ],
    ids=["half", "true", "text", "returned", "monotone"],
)
async def test_set_metrics(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    given = {"labels": LABELS, "topk": ["d0", "d4"], "pool": list(LABELS), "k": 2} | inputs
    await set_metrics({"inputs": given, "expected": dict.fromkeys(KEYS) | expected})


async def test_faithfulness_without_contexts_may_be_zero() -> None:
    record = RagRecord(id="1", query="Where is the lab?", answer="In Oslo.")
    case = EvalContext(record, judge=OverlapJudge(), options=MetricOptions(zero_on_empty_context=True))
    (result,) = await evaluate(select(["faithfulness"]), case)
    assert (result.value, result.state) == (0.0, "ok")
