"""Sets that readers wrote who had seen neither the judge nor its cases: what of them it misses, within bounds.

`unseen` was committed before its first run, and no rule was made for one of its rows: whoever mends the judge
measures there by counts, and develops on `seen` or on rows of their own. Every row tells a lie but the sound ones
and the questions that say so.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from tests import make

HERE = Path(__file__).parent
NAMES = ["faithfulness", "invented_specifics", "diagnosis"]


class Judged(NamedTuple):
    """The verdict on a row, and whether a specific of it is called invented."""

    verdict: str
    invents: bool

    @property
    def is_flagged(self) -> bool:
        return self.invents or self.verdict == "contradicted"


def rows(sets: str, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / sets / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


def judged(row: dict[str, Any]) -> Judged:
    record = make.record(*row["contexts"], query=row["query"], answer=row["answer"])
    results = asyncio.run(evaluate(select(NAMES), EvalContext(record, judge=OverlapJudge())))
    by_name = {it.name: it for it in results}
    return Judged(by_name["diagnosis"].details["verdict"], bool(by_name["invented_specifics"].value))


# What is allowed beside each count is what issue and page ask: 5 flagged of 60, none of them contradicted; 5
# inventions unflagged, none of them ok; 6 contradictions ok. The larger ones are missed, and may not grow.
@pytest.mark.parametrize(
    ("sets", "flagged", "contradicted"), [("unseen/first", 6, 1), ("unseen/second", 5, 1), ("seen/third", 5, 0)]
)
def test_sound_answers(sets: str, flagged: int, contradicted: int) -> None:
    found = [judged(row) for row in rows(sets, "sound")]
    assert len(found) >= 60
    assert sum(it.is_flagged for it in found) <= flagged
    assert sum(it.verdict == "contradicted" for it in found) <= contradicted


@pytest.mark.parametrize(("sets", "ok"), [("unseen/first", 1), ("unseen/second", 0), ("seen/first", 0)])
def test_inventions(sets: str, ok: int) -> None:
    found = [judged(row) for row in rows(sets, "invented")]
    assert len(found) >= 50
    assert sum(not it.invents for it in found) <= 5
    assert sum(it.verdict == "ok" for it in found) <= ok


@pytest.mark.parametrize(
    ("sets", "ok"), [("unseen/first", 13), ("unseen/second", 13), ("seen/first", 1), ("seen/second", 15)]
)
def test_contradictions(sets: str, ok: int) -> None:
    found = [judged(row) for row in rows(sets, "contradicted")]
    assert len(found) >= 40
    assert sum(it.verdict == "ok" for it in found) <= ok


@pytest.mark.parametrize(("sets", "missed"), [("unseen/first", 0), ("unseen/second", 2), ("seen/first", 0)])
def test_questions_in_peoples_words(sets: str, missed: int) -> None:
    asked = [(row["lie"], judged(row).verdict) for row in rows(sets, "questions")]
    assert sum(lie for lie, _ in asked) == 12
    assert sum(lie and verdict in {"ok", "undetermined"} for lie, verdict in asked) <= missed
    assert sum(verdict == "contradicted" for lie, verdict in asked if not lie) == 0
