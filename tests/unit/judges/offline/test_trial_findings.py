"""What a stranger's trial found: repeated sentences, names behind a title, and swapped numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judges.offline.scoring import results


@pytest.mark.parametrize(
    ("contexts", "answer", "verdict"),
    [
        (["Refunds take 5 days.", "Orders of five items take 9 days."], "Refunds take 5 days.", "supported"),
        (["Mr. Hansen leads the lab in Oslo."], "Mr. Hargreaves leads the lab.", "not_supported"),
        (["Dr. Hansen leads the lab in Oslo."], "Dr Hansen leads the lab.", "supported"),
        (
            ["The desk is open. Admission is 12 euros, and a guide costs 8 euros."],
            "A guide costs 12 euros.",
            "contradicted",
        ),
    ],
)
async def test_the_verdict_on_one_claim(contexts: list[str], answer: str, verdict: str) -> None:
    claims: Any = (await results(answer, *contexts))["faithfulness"].details["claims"]
    assert [claim["verdict"] for claim in claims] == [verdict]
