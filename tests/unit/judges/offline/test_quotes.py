"""Claims of the offline judge are quotes of the answer, by their places in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judges.offline.scoring import results
from tests.unit.judges.offline.test_code_answers import PAIRS
from tests.unit.judges.offline.written_forms import CONTEXTS, FORMS, UNSUPPORTED

# Answers, each with the claims that are printed of it.
QUOTES: dict[str, list[str]] = {
    "You can cancel. See https://shop.example/faq for details.": [
        "You can cancel.",
        "See https://shop.example/faq for details.",
    ],
    "Sure! **The lab** is in Oslo [1].": ["**The lab** is in Oslo [1]."],
    "According to document 2, the lab is in [Oslo](https://a.example/b)": [
        "the lab is in [Oslo](https://a.example/b)"
    ],
    "- *Supplied* cable: 2.5 m\n- Oslo\n- Lima": ["*Supplied* cable: 2.5 m", "Oslo", "Lima"],
    "| Plan | Price |\n|---|---|\n| **Basic** | 10 euros |": ["**Basic** | 10 euros"],
    "<p>The <b>lab</b> is in Oslo.</p>": ["The <b>lab</b> is in Oslo."],
    "Zu\u0308rich is the largest city (in Switzerland)": ["Zu\u0308rich is the largest city (in Switzerland)"],
    '{"answer": "It is \\u00e9 \\"big\\" here."}': ['It is \\u00e9 \\"big\\" here.'],
    '[{"plan": "Basic", "costs": "10 euros"}]': ['"plan": "Basic", "costs": "10 euros"'],
    "See <https://shop.example/faq>": ["See <https://shop.example/faq>"],
}


async def claims_of(answer: str) -> list[dict[str, Any]]:
    found: Any = (await results(answer, *CONTEXTS))["faithfulness"].details["claims"]
    return found


@pytest.mark.parametrize("answer", QUOTES)
async def test_a_claim_is_what_stands_in_the_answer(answer: str) -> None:
    assert [claim["text"] for claim in await claims_of(answer)] == QUOTES[answer]


@pytest.mark.parametrize(
    "answer",
    [
        *(form.format(s=UNSUPPORTED, c=UNSUPPORTED[:-1]) for form in FORMS.values()),
        *(wrong for _, wrong in PAIRS.values()),
    ],
)
async def test_its_places_give_its_text_in_every_form(answer: str) -> None:
    claims = await claims_of(answer)
    assert claims
    assert [claim["text"] for claim in claims] == [answer[claim["start"] : claim["end"]] for claim in claims]
    assert all(
        claim["text"].count(left) == claim["text"].count(right) for claim in claims for left, right in ("()", "[]")
    )
