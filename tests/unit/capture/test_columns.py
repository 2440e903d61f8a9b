"""Passages read by columns are those read row by row; places in a prompt are those of `str.find`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.capture import PassageReader, ReadPassages, place_of, ranked

texts = st.one_of(
    st.text(max_size=60), st.none(), st.integers(), st.just("\ud800 lone"), st.text(min_size=45, max_size=90)
)
names = st.one_of(st.text(max_size=8), st.none(), st.integers(), st.just("\udfff"), st.just("x" * 300))
scores = st.one_of(st.floats(), st.none(), st.text(max_size=3), st.integers())
facts = st.one_of(
    st.none(),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=5), st.floats()), max_size=3),
)
rows = st.lists(st.tuples(texts, names, scores, facts), max_size=6)
clean_rows = st.lists(
    st.tuples(st.text("abc é", max_size=9), st.text("abc", min_size=1, max_size=5), st.floats(0, 1), facts),
    max_size=6,
)


@given(st.one_of(rows, clean_rows), st.booleans())
def test_columns_are_rows(given_rows, is_redacted):
    redact = str.upper if is_redacted else None
    columns = list(zip(*given_rows, strict=True)) or [(), (), (), ()]
    by_column = PassageReader(redact, 50).columns(*columns, source="faq")
    reader = PassageReader(redact, 50)
    by_row = tuple(
        reader.make(text, rank, name, score, "faq", metadata)
        for rank, (text, name, score, metadata) in enumerate(given_rows, start=1)
    )
    assert by_column == by_row


def test_what_was_read_is_not_read_again():
    reader = PassageReader(str.upper, 100)
    read = reader.read(["a", "b"])
    assert reader.read(read) is read
    assert ranked(read) is read
    assert [p.rank for p in ranked(tuple(reversed(read)))] == [1, 2]
    assert type(ranked(list(read))) is ReadPassages


@given(st.text("ab", max_size=120), st.text("ab", min_size=1, max_size=60), st.integers(0, 20))
def test_a_place_is_that_of_find(prompt, text, start):
    first = prompt.find(text, start)
    assert place_of(text, prompt, start) == (first if first >= 0 else prompt.find(text))


def test_a_beginning_that_comes_back_for_ever_ends():
    prompt = "a" * 400_000
    assert place_of("a" * 60_000 + "b", prompt) == -1
