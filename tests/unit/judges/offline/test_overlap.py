"""The offline judge and embedder: what they see, what they cannot, and that no text breaks them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.judges import OverlapEmbedder, OverlapJudge
from tests.unit.judges.offline.scoring import results
from tests.unit.judges.records import record

CONTEXTS = (
    "The lab is in Oslo. It opened in 2010.",
    "Refunds are paid within five working days. Ask Maria Berg for an invoice.",
)


async def audit(answer: str, contexts: tuple[str, ...] = CONTEXTS):
    return await OverlapJudge().audit(record(*contexts, answer=answer))


async def test_a_supported_sentence_points_at_its_context() -> None:
    (claim,) = (await audit("Refunds are paid within five working days.")).claims
    assert (claim.support, claim.verdict, claim.sources) == (1.0, "supported", (1,))
    assert "five working days" in claim.reason


async def test_an_invented_sentence_is_marked_also_when_it_is_short() -> None:
    good, bad = (await audit("The lab is in Oslo. Our office sits in Lisbon.")).claims
    assert good.verdict == "supported"
    assert bad.verdict == "not_supported"
    assert bad.support < OverlapJudge.thresholds["faithfulness"]
    assert "Lisbon" in bad.reason


async def test_an_unseen_number_and_name_cost_what_is_stated() -> None:
    (seen,) = (await audit("The lab opened in 2010.")).claims
    (number,) = (await audit("The lab opened in 2011.")).claims
    assert number.support < seen.support - 0.10
    assert "2011" in number.reason
    (name,) = (await audit("Ask Igor Berg for an invoice.")).claims
    assert "Igor" in name.reason


async def test_list_marks_and_courtesies_are_no_claims() -> None:
    claims = (await audit("Sure!\n\n1. **The lab is in Oslo.**\n2. It opened in 2010.")).claims
    assert [claim.text for claim in claims] == ["The lab is in Oslo.", "It opened in 2010."]


async def test_a_one_word_answer_is_judged() -> None:
    (claim,) = (await audit("Oslo.")).claims
    assert claim.support == 1.0


@settings(max_examples=150, deadline=None)
@given(answer=st.text(max_size=400), contexts=st.lists(st.text(max_size=400), max_size=4))
async def test_no_text_breaks_it(answer: str, contexts: list[str]) -> None:
    found = await OverlapJudge().audit(record(*contexts, answer=answer))
    assert all(0.0 <= claim.support <= 1.0 for claim in found.claims)
    assert all(0 <= source < len(contexts) for claim in found.claims for source in claim.sources)


@pytest.mark.parametrize(
    "text",
    [
        "1.234,5 million",
        "\ud800 lone",
        "北京是中国的首都。",
        "مرحبا بالعالم",
        "a" * 100_000,
        "\x00\u202e",
        "\ue000 [`\ue001`](a/b)",
    ],
)
async def test_odd_texts(text: str) -> None:
    assert (await audit(text, (text,))) is not None
    assert (await OverlapEmbedder().embed([text])).shape[0] == 1


def test_order_of_hashing_changes_no_digit() -> None:
    import os
    import subprocess
    import sys

    code = """
import asyncio
from ragtrace.judges import OverlapJudge
from ragtrace.model import *
pool = Pool(stage="used", passages=(Passage(id="a", text="Refunds are paid within five working days. Ask Maria Berg.", rank=1),))
r = RagRecord(id="1", query="q", answer="Refunds for parcels are usually paid in cash within three days of session Igor.", pools=(pool,))
print(repr(asyncio.run(OverlapJudge().audit(r)).claims[0].support))
"""
    seen = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, text=True)
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("answer", "contexts", "facts", "reason"),
    [
        ("", CONTEXTS, {}, "no_answer"),
        ("The lab is in Oslo.", (), {}, "no_contexts"),
        ("The lab is in Oslo.", (" ", ""), {}, "no_contexts"),
        ("I don't know.", CONTEXTS, {}, "abstained"),
        ("Shall we?", CONTEXTS, {}, "no_claims"),
    ],
)
async def test_faithfulness_is_na_with_its_reason(
    answer: str, contexts: tuple[str, ...], facts: dict, reason: str
) -> None:
    found = (await results(answer, *contexts, **facts))["faithfulness"]
    assert (found.state, found.reason, found.value) == ("na", reason, None)


async def test_faithfulness_passes_at_the_judges_own_threshold() -> None:
    good = (await results("The lab is in Oslo.", *CONTEXTS))["faithfulness"]
    bad = (await results("Penguins rule the southern harbours.", *CONTEXTS))["faithfulness"]
    assert (good.value, good.passed) == (1.0, True)
    assert bad.passed is False
    assert bad.details["unsupported"] == ["Penguins rule the southern harbours."]
    assert good.judge.model == "overlap"
    assert len(good.version) == 8


@pytest.mark.parametrize(("answer", "value"), [("", 0.0), ("I do not know!", 0.0), ("The lab is in Oslo.", 1.0)])
async def test_answered(answer: str, value: float) -> None:
    found = (await results(answer, *CONTEXTS, metrics=["no_answer"], query=""))["answered"]
    assert found.value == value
    assert found.details.get("short_circuit", False) == (not value)


async def test_the_embedder_gives_unit_rows_and_zero_for_nothing() -> None:
    rows = await OverlapEmbedder().embed(["refund time", "the time of refunds", "parcel", "the of"])
    assert np.allclose((rows[:3] ** 2).sum(axis=1), 1.0)
    assert rows[0] @ rows[1] == pytest.approx(1.0)
    assert rows[0] @ rows[2] == 0.0
    assert not rows[3].any()
