"""The answer of a run falls into pieces that its claims own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.views import Views
from ragtrace.views.run_view import pieces, placed_claims
from tests.unit.views.scored_runs import line, score, write

WORDS = st.sampled_from(["refunds", "take", "five", "days", "Oslo.", "it", "rains.", "\n", "  "])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@given(TEXTS, st.lists(TEXTS.filter(str.strip), max_size=6))
def test_the_pieces_are_the_answer(answer, texts):
    rows, spans = placed_claims(answer, [{"text": text, "verdict": "supported"} for text in texts], [])
    found = list(pieces(answer, spans))
    assert "".join(it.text for it in found) == answer
    assert [it.number for it in rows if it.placed] == sorted(it.claim for it in found if it.claim)


def test_a_claim_in_the_judge_s_words_is_placed_in_the_nearest_sentence():
    answer = "Hello. Refunds of orders take five days to arrive. Bye."
    claims = [
        {"text": "Refunds take five days", "verdict": "supported"},
        {"text": "The sun shines", "verdict": "x"},
    ]
    rows, spans = placed_claims(answer, claims, [])
    assert answer[slice(*spans[1])] == "Refunds of orders take five days to arrive."
    assert [it.placed for it in rows] == [True, False]


def test_one_run_whole(tmp_path):
    views = Views.of_file(write(tmp_path / "a.jsonl", [line(0)]), trace_url="http://x/{trace_id}")
    found = views.run("1")
    assert [(it.text, it.claim) for it in found.pieces] == [
        ("Refunds  take five days.", 1), (" ", None), ("Order 0 is free.", 2), (" Bye.", None),
    ]  # fmt: skip
    assert [(it.verdict, it.evidence) for it in found.claims] == [("supported", ("a",)), ("not_supported", ())]
    assert [(it.id, it.rank, it.used, it.claims) for it in found.passages] == [
        ("a", 1, 1, (1,)),
        ("b", 2, None, ()),
    ]
    assert found.stages == ("retrieved", "used")
    assert found.trace_url == f"http://x/{1:032x}"
    assert found.duration_s == 2.0
    assert ("tag", "web") in found.facts
    assert found.scores[0].summary


def test_details_of_another_form_are_left_out(tmp_path):
    odd = score(
        0.5, claims=[7, {"text": 3, "support": "x", "sources": [99, "a"], "verdict": None}], grades={"a": 1}
    )
    views = Views.of_file(write(tmp_path / "a.jsonl", [line(0, scores={"faithfulness": odd})]))
    (claim,) = views.run("1").claims
    assert (claim.text, claim.support, claim.evidence, claim.verdict) == ("3", None, (), "unknown")
