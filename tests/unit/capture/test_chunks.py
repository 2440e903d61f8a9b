"""Different passages under one id have an id each, the same in every run; what is made of a passage keeps its id."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from msgspec.structs import replace

from ragtrace.capture import Recorder
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import Labels, chunk_id, content_id
from tests.kept import Keeper

TEXTS = (
    "The return window is thirty days from delivery.",
    "Shipping to Norway takes five working days.",
    "Gift cards cannot be exchanged for cash.",
    "The support desk is open from nine to five, also on the days before a holiday, and answers in two languages.",
)
OWN = [chunk_id("manual", text) for text in TEXTS]


def hit(n, text=None, **more):
    return {"id": "manual", "text": TEXTS[n] if text is None else text, **more}


def run_of(*searches, chosen=None, prompt=None, **more):
    keeper = Keeper()
    with Recorder(keeper).start(query="How long may I return it?") as run:
        for found in searches:
            run.retrieved(found)
        if chosen is not None:
            run.reranked(chosen)
        if prompt is not None:
            run.add_prompt(prompt)
        for name, value in more.items():
            getattr(run, name)(value)
        run.answered("Thirty days.")
    return keeper.runs[0]


def ids(run, stage="retrieved"):
    return [passage.id for passage in run.record.pool(stage)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_chunk_has_the_same_id_in_whatever_order_it_was_found(order) -> None:
    run = run_of([hit(n) for n in order], prompt=TEXTS[order[1]])
    assert ids(run) == [OWN[n] for n in order]
    assert run.prompt_ids == (OWN[order[1]],)
    assert [passage.id for passage in run.record.contexts] == [OWN[order[1]]]
    assert [passage.id for passage in run.steps[0].passages] == ids(run)


def test_one_chunk_keeps_its_id() -> None:
    assert ids(run_of([hit(0), {"id": "other", "text": TEXTS[1]}])) == ["manual", "other"]
    assert ids(run_of([hit(0)], [hit(0)])) == ["manual"]


def test_ids_of_their_own_stay() -> None:
    found = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    assert ids(run_of(found, found[:2])) == ["0", "1", "2", "3"]


def test_two_searches_find_other_chunks() -> None:
    run = run_of([hit(0)], [hit(1), hit(0)], chosen=[hit(1)])
    assert ids(run) == [OWN[0], OWN[1]]
    assert ids(run, "reranked") == [OWN[1]]
    assert [passage.id for passage in run.steps[2].candidates] == [OWN[0], OWN[1]]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda text: f"Returns\n=======\n{text}", id="a header"),
        pytest.param(lambda text: f"<p>{text}</p>", id="tags"),
        pytest.param(str.upper, id="another case"),
        pytest.param(lambda text: text[: 2 * len(text) // 3], id="an extract"),
        pytest.param(lambda text: f"{text} And what stands behind it in the book.", id="a wider window"),
    ],
)
class TestForms:
    def test_two_searches_that_show_one_passage_in_two_forms(self, form) -> None:
        assert set(ids(run_of([hit(3)], [hit(3, form(TEXTS[3]))]))) == {"manual"}

    def test_a_form_of_one_chunk_has_its_id(self, form) -> None:
        run = run_of([hit(n) for n in range(4)], chosen=[hit(3, form(TEXTS[3])), hit(1, form(TEXTS[1]))])
        assert ids(run, "reranked") == [OWN[3], OWN[1]]

    def test_a_form_of_a_passage_keeps_its_id(self, form) -> None:
        assert ids(run_of([hit(3)], chosen=[hit(3, form(TEXTS[3]))]), "reranked") == ["manual"]


def test_translations_have_the_ids_of_what_was_chosen_before() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="?") as run:
        run.retrieved([hit(n) for n in range(3)])
        run.reranked([hit(2), hit(0)])
        run.used([hit(2, "Presentkort l\u00f6ses inte in."), hit(0, "Returr inom trettio dagar.")])
    assert ids(keeper.runs[0], "used") == [OWN[2], OWN[0]]


def test_what_is_made_of_several_chunks_keeps_the_shared_id() -> None:
    run = run_of([hit(0), hit(1)], chosen=[hit(0, " ".join(TEXTS[:2]))])
    assert ids(run, "reranked") == ["manual"]


def test_the_same_text_in_two_forms_of_unicode_is_one_passage() -> None:
    one, other = "The caf\u00e9 is in Malm\u00f6, near the sea.", "The cafe\u0301 is in Malmo\u0308, near the sea."
    assert len(set(ids(run_of([one, other])))) == 1
    assert set(ids(run_of([{"id": "manual", "text": one}, {"id": "manual", "text": other}]))) == {"manual"}


def test_a_text_without_an_id_keeps_its_id_in_another_form() -> None:
    run = run_of(["The \ufb01le", TEXTS[1]], chosen=["the file"])
    assert ids(run, "reranked") == [content_id("The \ufb01le")] == ids(run)[:1]


def test_parts_that_cite_the_shared_id_cite_the_closest_chunk() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="?") as run:
        run.retrieved([hit(n) for n in (1, 0, 2)])
        run.answered(
            "Thirty days.", parts=[{"text": "The return takes thirty days.", "citations": ["manual", "x"]}]
        )
    (part,) = keeper.runs[0].record.answer_parts
    assert part.citations == (OWN[0], "x")


def test_an_answer_that_cites_the_shared_id() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="?") as run:
        run.retrieved([hit(n) for n in (1, 0, 2)])
        run.answered("Shipping takes five days [manual]. Returns take thirty days from delivery [manual].")
    assert [part.citations for part in keeper.runs[0].record.answer_parts] == [(OWN[1],), (OWN[0],)]


def scored(run, grades, name):
    record = replace(run.record, labels=Labels(grades=grades))
    (result,) = [one for one in asyncio.run(evaluate(select([name]), EvalContext(record))) if not one.variant]
    return result


CHUNKS = [hit(0), hit(1), hit(2)]


@pytest.mark.parametrize(
    ("found", "grades", "value"),
    [
        (CHUNKS, {"manual": 5}, 1.0),
        (CHUNKS, {OWN[1]: 5, OWN[0]: 1, OWN[2]: 1}, 0.5),
        ([hit(1)], {OWN[1]: 5}, 1.0),
        ([hit(1)], {"manual": 5}, 1.0),
        (CHUNKS, {OWN[1]: 5, "manual": 1}, 0.5),
    ],
)
def test_labels_name_a_chunk_by_either_id(found, grades, value) -> None:
    result = scored(run_of(found), grades, "mrr")
    assert (result.value, result.reason) == (value, None)


@pytest.mark.parametrize("grades", [{"manual": 5}, {OWN[1]: 5, OWN[0]: 1, OWN[2]: 1}])
def test_the_diagnosis_finds_a_needed_chunk_by_either_id(grades) -> None:
    cut = scored(run_of(CHUNKS, prompt=f"{TEXTS[0]} {TEXTS[2]}"), grades, "diagnosis").details
    assert (cut["n_needed_in_pool"], cut["n_needed_in_prompt"]) == (1, int("manual" in grades))
    shown = scored(run_of(CHUNKS, prompt=TEXTS[1]), grades, "diagnosis").details
    assert (shown["n_needed"], shown["n_needed_in_pool"], shown["n_needed_in_prompt"]) == (1, 1, 1)
