"""A short claim counts beside a supported sentence; greetings, "Yes." and lead-ins do not."""

from __future__ import annotations

from tests.cases.numbers.judging import judged

QUERY = "How can I return my order?"
CONTEXT = "Returns are accepted within 30 days. Send the parcel to the warehouse in Oslo."
SENTENCE = "Returns are accepted within 30 days."

CLAIMS = (
    "There is no fee.",
    "It is free.",
    "You will be charged.",
    "It is not refundable.",
    "That costs extra.",
    "We pay it.",
    "No fee applies.",
    "Fees apply.",
    "You pay shipping.",
    "We cover it.",
    "It expires.",
    "It is illegal.",
    "This is optional.",
    "You need a receipt.",
    "Nobody checks.",
    "It never fails.",
    "There are exceptions.",
    "Members go first.",
    "It's taxed.",
)

NO_CLAIMS_BEFORE = (
    "Yes.",
    "No.",
    "Sure!",
    "Of course.",
    "Certainly!",
    "Hello!",
    "Hi there,",
    "Good morning!",
    "Great question!",
    "Thanks for asking!",
    "Here is what I found:",
    "Let me explain.",
    "In short:",
    "To answer your question:",
    "Here's a summary:",
)
NO_CLAIMS_AFTER = (
    "I hope this helps.",
    "Hope that helps!",
    "Let me know if you have any questions.",
    "You're welcome!",
    "Have a nice day!",
    "Is there anything else?",
)


def test_every_short_claim_counts() -> None:
    answers = [f"{SENTENCE} {claim}" for claim in CLAIMS]
    found = judged([(QUERY, CONTEXT, answer) for answer in answers])
    dropped = [
        claim
        for claim, one in zip(CLAIMS, found, strict=True)
        if not any(claim.strip(".") in it["text"] and it["verdict"] != "supported" for it in one.claims)
    ]
    assert dropped == []


def test_every_short_claim_lowers_faithfulness() -> None:
    found = judged([(QUERY, CONTEXT, f"{SENTENCE} {claim}") for claim in CLAIMS])
    unmoved = [
        claim
        for claim, one in zip(CLAIMS, found, strict=True)
        if one.faithfulness is None or one.faithfulness >= 0.999
    ]
    assert unmoved == []


def test_a_short_claim_counts_before_and_alone_on_its_line() -> None:
    shapes = ("{claim} {sentence}", "- {sentence}\n- {claim}", "{sentence}\n\n{claim}")
    keys = [(claim, shape) for claim in CLAIMS[:5] for shape in shapes]
    found = judged([(QUERY, CONTEXT, shape.format(claim=claim, sentence=SENTENCE)) for claim, shape in keys])
    assert [key for key, one in zip(keys, found, strict=True) if len(one.claims) != 2] == []


def test_a_courtesy_is_no_claim() -> None:
    answers = [f"{said} {SENTENCE}" for said in NO_CLAIMS_BEFORE] + [
        f"{SENTENCE} {said}" for said in NO_CLAIMS_AFTER
    ]
    found = judged([(QUERY, CONTEXT, answer) for answer in answers])
    counted = {
        answer: [it["text"] for it in one.claims]
        for answer, one in zip(answers, found, strict=True)
        if len(one.claims) != 1 or not one.is_supported
    }
    assert counted == {}
