"""The verdicts with the offline judge on human labels: the figures of the page on the diagnosis."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges import OverlapEmbedder, OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, is_contradicted, select
from ragtrace.model import record_from_json, verdict_of
from ragtrace.settings import DEFAULT_METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from ragtrace.model import RagRecord


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def record_of(query: str, passages: list[str], answer: str) -> RagRecord:
    return record_from_json({"query": query, "contexts": passages, "answer": answer}, fallback_id="1")


async def verdict(record: RagRecord) -> str:
    ctx = EvalContext(record, judge=OverlapJudge(), embedder=OverlapEmbedder())
    results = await evaluate(select(DEFAULT_METRICS), ctx)
    return str(next(verdict_of(result) for result in results if result.name == "diagnosis"))


@pytest.mark.slow
async def test_answers_to_real_questions(shared_dir: Path) -> None:
    """99 questions with the passage and the answer of their own, and with those of another question."""
    asked = [row for row in rows(shared_dir / "data" / "sufficiency_clapnq_dev.jsonl.gz") if row["answerable"]]
    own, off, missed, wrong = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for row, other in zip(asked, [*asked[1:], asked[0]], strict=True):
        query, passages, answer = row["query"], row["contexts"], row["answers"][0]
        own[await verdict(record_of(query, passages, answer))] += 1
        off[await verdict(record_of(query, [*passages, *other["contexts"]], other["answers"][0]))] += 1
        missed[await verdict(record_of(query, other["contexts"], answer))] += 1
        wrong[await verdict(record_of(query, passages, other["answers"][0]))] += 1
    assert len(asked) == 99
    assert own["ok"] >= 89, own
    assert off["ok"] <= 12, off
    assert missed["unsupported"] <= 7, missed
    assert missed["ok"] + wrong["ok"] <= 2, (missed, wrong)
    assert wrong["unsupported"] >= 86, wrong


@pytest.mark.slow
async def test_a_contradiction_is_named_for_no_faithful_answer(shared_dir: Path) -> None:
    found, of = Counter[bool](), Counter[bool]()
    for name in ("mtrag", "summedits", "begin", "wice"):
        for number, row in enumerate(rows(shared_dir / "data" / f"faith_{name}_dev.jsonl.gz")):
            record = record_from_json(row, fallback_id=str(number))
            audit = await OverlapJudge().audit(record)
            is_bad = bool(row["hallucinated"])
            of[is_bad] += 1
            found[is_bad] += is_contradicted(audit.claims, audit.invented or (), record)
    assert of == {False: 372, True: 270}
    assert found[False] == 0
    assert found[True] >= 9


@pytest.mark.parametrize(
    ("name", "ok", "unsupported"), [("mtrag", (60, 1), (72, 29)), ("begin", (68, 8), (10, 61))]
)
async def test_faithful_and_unfaithful_answers(
    shared_dir: Path, name: str, ok: tuple[int, int], unsupported: tuple[int, int]
) -> None:
    counts = (Counter[str](), Counter[str]())
    for number, row in enumerate(rows(shared_dir / "data" / f"faith_{name}_dev.jsonl.gz")):
        counts[row["hallucinated"]][await verdict(record_from_json(row, fallback_id=str(number)))] += 1
    assert counts[0]["ok"] >= ok[0], counts
    assert counts[1]["ok"] <= ok[1], counts
    assert counts[0]["unsupported"] <= unsupported[0], counts
    assert counts[1]["unsupported"] >= unsupported[1], counts
