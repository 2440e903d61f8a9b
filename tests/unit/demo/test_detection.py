"""Over many seeds: the incident is found soon after it began, and nothing is found without one."""

from __future__ import annotations

import asyncio

import pytest

from ragtrace.demo.chain import rerank
from ragtrace.demo.detector import SPAN_S, TARGET_ARL, TOLERANCE
from ragtrace.demo.handbook import handbook
from ragtrace.demo.invention import Incident
from ragtrace.demo.options import DemoOptions
from ragtrace.demo.questions import asked
from ragtrace.demo.search import TermIndex
from ragtrace.demo.writers import OfflineWriter, rendered
from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.answer.faithfulness import METRIC
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.stats.e_detector import EDetector

INDEX = TermIndex(handbook())
JUDGE = OverlapJudge()


def contexts_of(query: str) -> tuple[Passage, ...]:
    from langchain_core.documents import Document

    candidates = [
        Document(id=p.id, page_content=p.text, metadata={"title": p.title}) for p, _ in INDEX.search(query, 12)
    ]
    chosen = rerank({"question": query, "candidates": candidates})
    return tuple(Passage(id=str(d.id), text=d.page_content, rank=rank) for rank, d in enumerate(chosen, start=1))


def alarm_of(options: DemoOptions) -> int | None:
    """Return the number of the question at which the detector alarms."""
    writer, incident = OfflineWriter(options.seed), Incident(first=options.incident_at, seed=options.seed)
    detector = EDetector(learn=options.baseline, tolerance=TOLERANCE, target_arl=TARGET_ARL, span_s=SPAN_S)
    for number, question in enumerate(asked(options.questions, options.seed), start=1):
        contexts = contexts_of(question.query)
        prompt = rendered(question.query, [(p.id, p.text) for p in contexts])
        record = RagRecord(
            id=str(number),
            query=question.query,
            answer=incident.touch(writer.write("", prompt).text, number),
            pools=(Pool(stage="used", passages=contexts),),
        )
        [result] = asyncio.run(METRIC.compute(EvalContext(record, judge=JUDGE)))
        if result.value is not None and detector.add(result.value) == "alarm":
            return number
    return None


@pytest.mark.parametrize("seed", range(4))
def test_the_incident_is_found_within_forty_questions(seed: int) -> None:
    alarm = alarm_of(DemoOptions(seed=seed))
    assert alarm is not None
    assert 151 <= alarm <= 190


@pytest.mark.parametrize("seed", range(4))
def test_no_alarm_without_an_incident(seed: int) -> None:
    assert alarm_of(DemoOptions(seed=seed, has_incident=False)) is None
