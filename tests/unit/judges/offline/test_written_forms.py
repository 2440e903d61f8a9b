"""The offline judge and the way people write: a claim keeps its score in every form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragtrace.judges import OverlapJudge
from tests.unit.judges.offline.scoring import results
from tests.unit.judges.offline.written_forms import CONTEXTS, FORMS, SUPPORTED, UNSUPPORTED

if TYPE_CHECKING:
    from ragtrace.model import MetricResult


async def scores(answer: str) -> dict[str, MetricResult]:
    return await results(answer, *CONTEXTS, metrics=("faithfulness", "invented_specifics"))


def in_form(form: str, claim: str) -> str:
    return form.format(s=claim, c=claim.removesuffix("."))


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
    assert found["faithfulness"].value < OverlapJudge.thresholds["faithfulness"]
