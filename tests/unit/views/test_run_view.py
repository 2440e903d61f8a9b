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


def test_texts_of_tools_stand_behind_the_passages_with_their_claims(tmp_path):
    claims = [{"text": "Order 0 is free.", "verdict": "supported", "support": 1.0, "sources": [1]}]
    told = [{"id": "t", "text": "Order 0 costs nothing.", "source": "orders"}, {"id": "b", "text": "Shipping."}]
    given = line(0, unranked_contexts=told, scores={"faithfulness": score(1.0, claims=claims)})
    found = Views.of_file(write(tmp_path / "a.jsonl", [given])).run("1")
    assert [(it.id, it.has_rank, it.source, it.claims) for it in found.passages] == [
        ("a", True, None, ()),
        ("b", True, None, ()),  # found too, so that it has a rank
        ("t", False, "orders", (1,)),
    ]
    assert found.claims[0].evidence == ("t",)
    assert found.stages == ("retrieved", "used")


def test_labels_grade_texts_of_tools_and_lists_of_grades_do_not(tmp_path):
    told = [{"id": "t", "text": "Order 0 costs nothing."}]
    by_list = line(0, unranked_contexts=told, scores={"p_at_k": score(1.0, judge="labels", grades=[4])})
    labelled = {**by_list, "labels": {"a": 2, "t": 5}}
    views = Views.of_file(write(tmp_path / "a.jsonl", [by_list, labelled]))
    grades = [{it.id: it.grade for it in views.run(number).passages} for number in "12"]
    assert grades == [{"a": 4, "b": None, "t": None}, {"a": 2, "b": None, "t": 5}]
