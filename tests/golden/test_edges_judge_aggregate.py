"""Edges that the copied vectors do not hold, through the same harness."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.running_judge_aggregate import judge_aggregate


def edge(name: str, runs: Any, per_judge: Any, score: float | None, apart: float | None, na: Any = None) -> Any:
    record = {
        "inputs": {"anchors": "1-5", "threshold": 3},
        "judge_verdicts": {"runs_per_judge_0_means_failed": runs},
        "expected": {
            "per_judge": [dict(zip(("score", "std", "failures"), judge, strict=True)) for judge in per_judge],
            "score_1_5": score,
            "score_0_1": None if score is None else (score - 1) / 4,
            "passed_3": score is not None and score >= 3,
            "passed_4": score is not None and score >= 4,
            "mean_abs_diff": apart,
        },
    }
    return pytest.param(record | ({"na_reason": na} if na else {}), id=name)


EDGES = [
    edge("one-run", [[5]], [(5.0, 0.0, 0)], 5.0, None),
    edge("all-zero", [[0, 0, 0]], [(None, None, 3)], None, None, "judge_error"),
    edge("one-zero", [[0]], [(None, None, 1)], None, None, "judge_error"),
    edge("mixed-failures", [[0, 7], [0, "exception"]], [(None, None, 2)] * 2, None, None, "judge_error"),
    edge("no-grades", [[4, 6, 2.5, "x", True, 4.0], [3]], [(4.0, 0.0, 5), (3.0, 0.0, 0)], 3.5, 1.0),
    edge("failed-in-the-middle", [[4, 0, 5], [2, 2, 0]], [(4.5, 0.5**0.5, 1), (2.0, 0.0, 1)], 3.25, 2.5),
    edge("fourteen-thirds", [[5, 5, 4]], [(14 / 3, 3**-0.5, 0)], 14 / 3, None),
]


@pytest.mark.parametrize("record", EDGES)
async def test_edge(record: dict[str, Any]) -> None:
    await judge_aggregate(record)


async def test_a_record_without_runs_has_no_score() -> None:
    record = {"inputs": {}, "judge_verdicts": {"runs_per_judge_0_means_failed": [[]]}, "expected": None}
    await judge_aggregate(record)
