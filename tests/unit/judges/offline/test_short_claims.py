"""The offline judge and claims of one term: none is dropped, and its verdict heeds "no" and "not"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from ragtrace.model import MetricResult

FACT = "The museum opens at nine in the morning."
FEE = "There is a fee of 40 euros."


async def verdicts(context: str, said: str) -> list[str]:
    found = (await results(f"{FACT} {said}", f"{FACT} {context}"))["faithfulness"]
    return [claim["verdict"] for claim in claims_of(found)]


def claims_of(result: MetricResult) -> list[dict[str, Any]]:
    found: Any = result.details["claims"]
    return found


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("Entry is free.", "It is free."),
        ("Entry is free.", "It's free!"),
        ("Entry is free.", "Free."),
        ("Entry is free.", "There is no fee."),
        ("Entry is free, but the tour is not.", "It is free."),
        ("There is no charge.", "It is free."),
        ("No fee is charged.", "There is no fee."),
        ("Visitors are charged 40 euros.", "You will be charged."),
        ("Visitors are not charged.", "You won't be charged."),
        ("Tickets are not refundable.", "It is not refundable."),
        ("Tickets are non-refundable.", "It is not refundable."),
        ("Booking is mandatory.", "It is mandatory."),
        ("No refunds are given.", "No refunds."),
        ("Membership never expires.", "It never expires."),
    ],
)
async def test_a_short_claim_that_the_context_makes_is_supported(context: str, said: str) -> None:
    assert await verdicts(context, said) == ["supported", "supported"]


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (FEE, "There is no fee."),
        (FEE, "It is free."),
        (FEE, "You will be charged."),
        (FEE, "It is not refundable."),
        (FEE, "Free."),
        ("Entry is free.", "It is not free."),
        ("Entry is never free.", "It is free."),
        ("Visitors are not charged.", "You will be charged."),
        ("Tickets are refundable.", "It is not refundable."),
        ("Tickets aren't refundable.", "They are refundable."),
        ("Tickets are non-refundable.", "It is refundable."),
        ("Booking is not mandatory.", "It is mandatory."),
        ("Booking is optional.", "It is mandatory."),
        ("Refunds are given.", "No refunds."),
        ("Membership expires.", "It never expires."),
    ],
)
async def test_a_short_claim_that_the_context_lacks_or_denies_is_not(context: str, said: str) -> None:
    supported, other = await verdicts(context, said)
    assert supported == "supported"
    assert other != "supported"


@pytest.mark.parametrize(
    "said",
    [
        "Yes.", "No.", "Yes, it does.", "No, it is not.", "Sure!", "Okay.", "Right.", "That is correct.", "Not really.",
        "Hello!", "Hi there!", "Good morning!", "Dear Anna,", "Thanks!", "You're welcome!", "No worries.", "Enjoy!",
        "Good luck!", "Take care!", "Kind regards", "I hope this helps!", "Let me check.", "Let's begin.", "I guess so.",
        "See below.", "Here is what I found:", "In summary:", "Details:", "2.", "Prices", "Hurry up!",
    ],
)  # fmt: skip
async def test_greetings_agreement_and_lead_ins_claim_nothing(said: str) -> None:
    assert await verdicts(FEE, said) == ["supported"]


async def test_the_sentence_before_tells_what_a_short_claim_is_about() -> None:
    context = "The day ticket costs 9 euros and is refundable. The gift card costs 40 euros and is not refundable."
    for subject, verdict in (("day ticket costs 9", "supported"), ("gift card costs 40", "contradicted")):
        found = (await results(f"The {subject} euros. It is refundable.", context))["faithfulness"]
        assert [claim["verdict"] for claim in claims_of(found)] == ["supported", verdict]


async def test_words_of_a_list_are_claims() -> None:
    found = (await results("The offices are:\n- Oslo\n- Lisbon", "The offices are in Oslo and Bergen."))[
        "faithfulness"
    ]
    assert [claim["text"] for claim in claims_of(found)] == ["The offices are:", "Oslo", "Lisbon"]
    assert found.details["unsupported"] == ["Lisbon"]


async def test_a_title_does_not_end_a_sentence() -> None:
    found = (await results("Dr. Stein leads the team. It meets on Monday.", "Dr. Stein leads the team."))[
        "faithfulness"
    ]
    assert [claim["text"] for claim in claims_of(found)] == [
        "Dr. Stein leads the team.",
        "It meets on Monday.",
    ]
