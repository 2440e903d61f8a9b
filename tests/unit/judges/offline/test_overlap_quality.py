"""The offline judge on human labels: the floors of CI, and the limit that the documentation states."""

from __future__ import annotations

import bisect
import gzip
import json
from typing import TYPE_CHECKING

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import record_from_json

if TYPE_CHECKING:
    from pathlib import Path


def auroc(positives: list[float], negatives: list[float]) -> float:
    """The share of (positive, negative) pairs in the right order, ties as a half."""
    ordered = sorted(negatives)
    wins = [(bisect.bisect_left(ordered, p) + bisect.bisect_right(ordered, p)) / 2 for p in positives]
    return sum(wins) / len(positives) / len(negatives)


async def measured(path: Path) -> tuple[float, float]:
    """AUROC of 1 - value and balanced accuracy of `passed` for the class "not faithful", over rows with a value."""
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            given = json.loads(line)
            case = EvalContext(record_from_json(given, fallback_id=str(number)), judge=OverlapJudge())
            (result,) = await evaluate(select(["faithfulness"]), case)
            if result.state == "ok":
                rows.append((given["hallucinated"], 1.0 - result.value, result.passed))
    bad = [row for row in rows if row[0]]
    good = [row for row in rows if not row[0]]
    found = sum(not row[2] for row in bad) / len(bad)
    kept = sum(row[2] for row in good) / len(good)
    return auroc([row[1] for row in bad], [row[1] for row in good]), (found + kept) / 2


@pytest.mark.parametrize(
    ("name", "floor", "balanced"), [("mtrag", 0.87, 0.75), ("begin", 0.86, 0.76), ("wice", 0.71, 0.0)]
)
async def test_it_reaches_the_floors(shared_dir: Path, name: str, floor: float, balanced: float) -> None:
    area, accuracy = await measured(shared_dir / "data" / f"faith_{name}_dev.jsonl.gz")
    assert area >= floor
    assert accuracy >= balanced


async def test_minimal_edits_are_beyond_it_as_documented(shared_dir: Path) -> None:
    area, _ = await measured(shared_dir / "data" / "faith_summedits_dev.jsonl.gz")
    assert 0.4 < area < 0.7
