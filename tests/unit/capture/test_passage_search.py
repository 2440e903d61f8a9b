"""Which passages stood in the prompt: whole, cut, with a header in common, overlapping, over several prompts."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder, found_in
from ragtrace.model import Passage, chunk_id
from tests.kept import Keeper

HEADER = "Source: Employee handbook of the company, edition 2026, chapter 4, page 17.\n"
BODIES = (
    "Annual leave is granted in whole days and is asked for two weeks ahead.",
    "Travel expenses are paid back within thirty days of the journey's end.",
    "Laptops are encrypted and are never left in a car, locked or unlocked.",
    "The office in Bergen closes at four on Fridays from June until August.",
)


def passages(texts, ids=None):
    return [Passage(id=ids[n] if ids else f"p{n}", text=text, rank=n + 1) for n, text in enumerate(texts)]


def ids_in(prompt, given):
    return [p.id for p in found_in(prompt, given)]


def test_a_header_that_all_passages_have_shows_none_of_the_others():
    given = passages([HEADER + body for body in BODIES])
    assert ids_in(f"Answer from this:\n{given[2].text}\nQuestion?", given) == ["p2"]


def test_with_other_white_space_too():
    given = passages([HEADER + body for body in BODIES])
    assert ids_in("Answer from this: " + " ".join(given[1].text.split()), given) == ["p1"]


def test_a_passage_that_is_cut_behind_the_header_is_the_only_one():
    given = passages([HEADER + body for body in BODIES])
    (found,) = found_in(f"Context: {given[3].text[:110]}...", given)
    assert (found.id, found.text, found.truncated) == ("p3", given[3].text[:110], len(given[3].text))


def test_passages_that_are_all_cut_in_one_place_are_all_there():
    given = passages([HEADER + body for body in BODIES])
    prompt = "\n".join(p.text[: len(HEADER) + 30] for p in given)
    assert ids_in(prompt, given) == ["p0", "p1", "p2", "p3"]


def test_the_beginning_of_the_next_passage_in_the_end_of_this_one_does_not_show_it():
    text = " ".join(BODIES)
    given = passages([text[:160], text[100:240]])  # split with 60 characters in common
    assert ids_in(f"Context: {given[0].text}\n\nQuestion?", given) == ["p0"]
    assert ids_in(f"Context: {given[0].text}\n{given[1].text[:120]}\n\nQuestion?", given) == ["p0", "p1"]


def test_what_is_cut_keeps_its_place_among_what_is_whole():
    given = passages(BODIES)
    assert ids_in(f"{BODIES[0][:50]}\n{BODIES[1]}\n{BODIES[2][:60]}", given) == ["p0", "p1", "p2"]


def test_of_a_thousand_with_one_header_one_is_there():
    given = passages([HEADER + f"{n} " + BODIES[n % 4] * 10 for n in range(1_000)])
    assert ids_in("Context: " + given[500].text, given) == ["p500"]


def used(pool, prompts, chosen=None):
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.retrieved([{"id": p.id, "text": p.text} for p in pool])
        if chosen is not None:
            run.reranked([{"id": p.id, "text": p.text} for p in chosen])
        for prompt in prompts:
            run.add_prompt(prompt)
    return list(keeper.runs[0].prompt_ids)


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        pytest.param([*BODIES, "Summarise: leave, expenses, laptops, Bergen."], "0123", id="map and reduce"),
        pytest.param(["\n".join(BODIES), *BODIES], "0123", id="a check of each passage after the answer"),
        pytest.param(
            [*BODIES, "\n".join(BODIES[1:3])], "12", id="grades of each passage, and a formatter that drops"
        ),
        pytest.param(["\n".join(BODIES[:2]), "\n".join(BODIES[2:])], "23", id="a second attempt"),
        pytest.param(["\n".join(BODIES[:2]), "A title for this"], "01", id="a title after the answer"),
        pytest.param([BODIES[3], BODIES[0][:50]], "03", id="one passage each, one of them cut"),
    ],
)
def test_over_several_prompts(prompts, expected):
    assert used(passages(BODIES), prompts) == [f"p{n}" for n in expected]


def test_a_passage_that_was_delivered_twice_is_there_once():
    pool = passages(BODIES)
    assert used(pool, ["\n".join(BODIES)], [pool[0], pool[3], pool[0], pool[3]]) == ["p0", "p3"]


def test_other_texts_of_one_id_are_told_apart():
    found = used(passages(BODIES, ["a", "a", "b", "b"]), ["\n".join(BODIES[1:])])
    assert found == [chunk_id(name, text) for name, text in zip("abb", BODIES[1:], strict=True)]
