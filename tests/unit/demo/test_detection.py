"""With other seeds than that of the test in `tests/e2e`: the incident is found soon after it began, and nothing is found without one."""

from __future__ import annotations

import asyncio
from statistics import median

import pytest

from ragtrace.demo import (
    DemoOptions,
    Fall,
    Incident,
    OfflineWriter,
    Tally,
    has_answer,
    render_prompt,
    rerank,
    shuffled_questions,
)
from ragtrace.demo.search import search
from ragtrace.demo.tally import TAG
from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, all_metrics
from ragtrace.model import Pool, RagRecord
from tests import make

pytestmark = pytest.mark.slow


def fall_of(options: DemoOptions) -> Fall | None:
    """Return the fall that is found in a run without capture and scorer."""
    writer, incident = OfflineWriter(options.seed), Incident(first=options.incident_at, seed=options.seed)
    tally = Tally(total=options.questions, incident_at=options.incident_at)
    for number, question in enumerate(shuffled_questions(options.questions, options.seed), start=1):
        found = rerank({"question": question.query, "candidates": search(question.query, 12)})
        contexts = make.passages(*(d.page_content for d in found), ids=[str(d.id) for d in found])
        prompt = render_prompt(question.query, [(p.id, p.text) for p in contexts])
        answer = str(writer.write("", prompt).content)
        record = RagRecord(
            id=str(number),
            query=question.query,
            answer=incident.apply(answer, number, has_answer=has_answer(prompt)),
            pools=(Pool(stage="used", passages=contexts),),
            tags=(f"{TAG}{number}",),
            ended=float(number),
            session=f"visitor {number}",
        )
        results = asyncio.run(all_metrics()["faithfulness"].compute(EvalContext(record, judge=OverlapJudge())))
        tally.emit(record, make.scores(record, *results))
    worst = tally.progress({}).worst
    assert [it.value for it in worst] == sorted(it.value for it in worst)
    return tally.fall


def test_the_incident_is_found() -> None:
    distances = []
    for seed in (1, 2, 3):
        fall = fall_of(DemoOptions(seed=seed))
        assert fall is not None, seed
        assert 151 <= fall.question <= 240, seed
        assert fall.recent_mean < fall.before_mean - 0.1, seed
        distances.append(abs(fall.changed_at - 151))
    assert median(distances) <= 10, "the change is placed near its question"


def test_no_fall_without_an_incident() -> None:
    assert fall_of(DemoOptions(seed=0, has_incident=False)) is None
