from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.judges.nli.premises import pieces, premises

TEXT = st.text(alphabet="ab .!?\n。é", min_size=1, max_size=120).filter(str.strip)


def fits_in(n):
    return lambda text: len(text) <= n


def test_each_premise_begins_with_the_last_context_of_the_one_before():
    made = premises([(i, f"{i}" * 4) for i in range(5)], fits_in(16))
    assert [one.contexts for one in made] == [(0, 1, 2), (2, 3, 4)]
    assert made[0].text == "0000\n\n1111\n\n2222"


def test_the_overlap_is_left_out_where_it_does_not_fit():
    made = premises([(0, "a" * 10), (1, "b" * 10), (2, "c" * 2)], fits_in(15))
    assert [one.contexts for one in made] == [(0,), (1, 2)]


def test_one_premise_when_all_fits_and_places_are_the_records():
    (made,) = premises([(0, "a"), (4, "b")], fits_in(100))
    assert made.contexts == (0, 4)


def test_a_long_context_is_cut_at_sentences_with_one_repeated():
    assert pieces("One is red. Two is big. Three is not.", fits_in(26)) == [
        "One is red. Two is big.",
        " Two is big. Three is not.",
    ]


def test_a_number_is_no_end_of_a_sentence():
    assert pieces("It is 3.5 wide. It is big.", fits_in(20), repeat=False) == ["It is 3.5 wide.", " It is big."]


def test_text_without_spaces_is_cut_anywhere():
    cut = pieces("x" * 100, fits_in(60))
    assert [len(piece) for piece in cut] == [60, 60, 60]  # each repeats 40


def test_a_context_of_a_million_characters_is_cut_in_few_looks():
    looks = 0

    def fits(text):
        nonlocal looks
        looks += 1
        return len(text) <= 2_000

    made = premises([(0, "It is a red lab in Oslo. " * 40_000)], fits)
    assert sum(len(one.text) for one in made) >= 1_000_000
    assert looks < 50_000


@given(contexts=st.lists(TEXT, min_size=1, max_size=6), room=st.integers(3, 80))
def test_every_premise_fits_and_nothing_is_lost(contexts, room):
    made = premises(list(enumerate(contexts)), fits_in(room))
    assert all(len(one.text) <= room for one in made)
    assert {place for one in made for place in one.contexts} == set(range(len(contexts)))
    for place, text in enumerate(contexts):
        held = [one.text for one in made if place in one.contexts]
        assert len(text) > room or any(text in whole for whole in held)
        assert set(text) - set(" \n") <= set("".join(held))


@given(text=TEXT, room=st.integers(3, 40))
def test_without_repeats_the_pieces_join_to_the_text_again(text, room):
    joined = "".join(pieces(text, fits_in(room), repeat=False))
    assert "".join(joined.split()) == "".join(text.split())  # a piece of white space alone is left out


@given(
    contexts=st.lists(TEXT, min_size=1, max_size=6),
    room=st.integers(8, 40),
    odd=st.sets(st.integers(1, 40), max_size=9),
)
def test_a_measure_that_is_not_monotone_ends_too(contexts, room, odd):
    made = premises(list(enumerate(contexts)), lambda text: len(text) <= room and len(text) not in odd)
    assert {place for one in made for place in one.contexts} == set(range(len(contexts)))
