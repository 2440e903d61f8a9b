"""The offline judge and the way people write: a claim keeps its score in every form."""

from __future__ import annotations

import pytest

from ragtrace.judges.offline.judge import THRESHOLD, OverlapJudge
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import MetricResult, Passage, Pool, RagRecord
from tests.unit.judges.offline.written_forms import CONTEXTS, FORMS, SUPPORTED, UNSUPPORTED


async def scores(answer: str) -> dict[str, MetricResult]:
    passages = tuple(Passage(id=f"p{i}", text=text, rank=i) for i, text in enumerate(CONTEXTS, start=1))
    record = RagRecord(id="1", query="q", answer=answer, pools=(Pool(stage="used", passages=passages),))
    results = await evaluate(
        select(["faithfulness", "invented_specifics"]), EvalContext(record, judge=OverlapJudge())
    )
    return {result.name: result for result in results}


def in_form(form: str, claim: str) -> str:
    return form.format(s=claim, c=claim.removesuffix("."))


def test_there_are_enough_forms() -> None:
    assert len(FORMS) >= 60


@pytest.mark.parametrize("name", FORMS)
async def test_a_supported_claim_keeps_its_score(name: str) -> None:
    bare = await scores(SUPPORTED)
    found = await scores(in_form(FORMS[name], SUPPORTED))
    assert found["faithfulness"].value == pytest.approx(bare["faithfulness"].value, abs=0.05)
    assert found["invented_specifics"].value == 0.0, found["invented_specifics"].details


@pytest.mark.parametrize("name", FORMS)
async def test_an_unsupported_claim_stays_below_the_threshold(name: str) -> None:
    found = await scores(in_form(FORMS[name], UNSUPPORTED))
    assert found["faithfulness"].state == "ok"
    assert found["faithfulness"].value < THRESHOLD
