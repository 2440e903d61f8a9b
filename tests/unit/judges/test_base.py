"""A judge that somebody writes in ten lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges import Audit, Claim, Judge
from ragtrace.metrics import EvalContext, evaluate, select
from tests.unit.judges.records import record

if TYPE_CHECKING:
    from ragtrace.model import RagRecord


class Copied(Judge):
    name, tasks = "copied", frozenset({"audit"})

    async def audit(self, record: RagRecord) -> Audit:
        is_copied = any(record.answer in passage.text for passage in record.contexts)
        verdict = "supported" if is_copied else "not_supported"
        claim = Claim(text=record.answer, verdict=verdict, support=float(is_copied))
        return Audit(attempted=True, noncommittal=False, claims=(claim,))


async def test_a_judge_of_ten_lines_scores_what_it_can() -> None:
    asked = record("The lab is in Oslo.", answer="The lab is in Oslo.", reference="Oslo.")
    context = EvalContext(asked, judge=Copied())
    results = {
        result.name: result for result in await evaluate(select(["faithfulness", "context_recall"]), context)
    }
    assert (results["faithfulness"].value, results["faithfulness"].judge.model) == (1.0, "copied")
    assert results["context_recall"].reason == "unsupported_by_judge"


def test_each_task_has_a_version() -> None:
    judge = Copied()
    assert isinstance(judge, Judge)
    assert judge.version("audit") != judge.version("facts")
