"""The offline judge and what people act on: links, hosts, files, mailboxes, phone numbers, codes and conditions."""

from __future__ import annotations

import pytest

from tests import make
from tests.unit.judges.offline.scoring import results

CONTEXTS = (
    "The copier uses black toner, cartridge KX-990A. Error TB-5031 means a duplicate. Ask Maria Berg in Room B-12.",
    "Write to help@acme.example or open https://acme.example/help/start.html?lang=en#top.",
    "Call +49 (0)30 901820, or 1-800-555-0199.",
    "The log is /var/log/acme/debug.log, and the form is Travel_Claim_2024.xlsx. Tests of the Nova X2 are known.",
)
HELD = (
    "Write to Help@Acme.example.", "Mail [help@acme.example](mailto:help@acme.example).", "Open acme.example.",
    "Open https://www.acme.example/.", "Open http://acme.example/help/start.html.",
    "See [the help page](https://acme.example/help/start.html).", "Call 030 901820.", "Call 0049 30 90 18 20.",
    "Call (030) 901820.", "Call 800-555-0199.", "The log is debug.log.", "Fill in travel_claim_2024.xlsx.",
    "The copier uses cartridge KX 990A.", "Error TB5031 means a duplicate.", "Ask Maria Berg in room B12.",
    "Tests are known [1](https://evil.example/a).", "Tests are known ![x](https://evil.example/a.png).",
    "Tests are known. (Source: https://evil.example/a)", "Tests are known.\n\nSources:\n- https://evil.example/a",
)  # fmt: skip
LACKED = {
    "Write to desk@acme.example.": "desk@acme.example",
    "Mail [us](mailto:desk@acme.example).": "desk@acme.example",
    "Open https://acme.example/help.": "https://acme.example/help",
    "Open help.acme.example.": "help.acme.example",
    "Tests are known, see www.evil.example.": "www.evil.example",
    "Tests are known ([here](https://evil.example/a)).": "https://evil.example/a",
    "Tests are known <https://evil.example>.": "https://evil.example",
    "Call 030 901821.": "030 901821",
    "Call 800-555-0198.": "800-555-0198",
    "The log is error.log.": "error.log",
    "The log is C:\\acme\\a.ini.": "C:\\acme\\a.ini",
    "Fill in Travel_Claim_2025.xlsx.": "Travel_Claim_2025.xlsx",
    "The copier uses cartridge KX-990B.": "KX-990B",
    "Error TB-5032 means a duplicate.": "Error TB-5032",
    "Tests of the Nova X3 are known.": "Tests of the Nova X3",
}


@pytest.mark.parametrize("answer", HELD)
async def test_what_the_contexts_hold_is_not_invented(answer: str) -> None:
    found = (await results(answer, *CONTEXTS, metrics=("invented_specifics",)))["invented_specifics"]
    assert found.details["invented"] == []


@pytest.mark.parametrize("answer", LACKED)
async def test_what_they_lack_is_invented_and_its_claim_has_no_support(answer: str) -> None:
    found = await results(answer, *CONTEXTS, metrics=("faithfulness", "invented_specifics"))
    assert found["invented_specifics"].details["invented"] == [LACKED[answer]]
    assert found["faithfulness"].details["unsupported"]


@pytest.mark.parametrize(
    "facts",
    [
        {"ids": ["https://acme.example/faq"]},
        {"source": "acme.example/faq/"},
        {"metadata": {"urls": ["HTTPS://ACME.example/faq"]}},
    ],
)
async def test_id_source_and_metadata_of_a_passage_hold_an_address(facts: dict) -> None:
    from msgspec.structs import replace

    from ragtrace.metrics import EvalContext, evaluate, select

    given = make.record("The desk is open.", answer="The desk is open, see https://acme.example/faq.")
    (pool,) = given.pools
    passage = replace(pool.passages[0], **({"id": facts["ids"][0]} if "ids" in facts else facts))
    record = replace(given, pools=(replace(pool, passages=(passage,)),))
    (found,) = await evaluate(select(["invented_specifics"]), EvalContext(record))
    assert found.details["invented"] == []


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Shoes can be returned within 30 days of delivery.", "supported"),
        ("Shoes can be returned within 30 days, if you are at home.", "supported"),
        ("Shoes can be returned within 30 days of delivery, unless you paid by invoice.", "not_supported"),
        ("Shoes can be returned within 30 days of delivery, provided a manager agreed.", "not_supported"),
    ],
)
async def test_a_condition_that_no_context_holds_takes_the_support(answer: str, verdict: str) -> None:
    contexts = ("Shoes can be returned within 30 days of delivery, if you are at home.", "The office is closed.")
    found = (await results(f"The office is closed. {answer}", *contexts))["faithfulness"]
    assert found.details["claims"][-1]["verdict"] == verdict  # type: ignore[index]
