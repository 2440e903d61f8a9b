"""The documents' JSON is that of the standard encoder, whatever stands in texts, ids and scores."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.model import Passage
from ragtrace.telemetry.spans.documents import Room, documents_json, reranked_json
from ragtrace.telemetry.wire import quoted

texts = st.one_of(
    st.text(max_size=40),
    st.text("plain words", min_size=1, max_size=300),
    st.sampled_from(['"', "\\", "\n", "\x00", "\x7f"]),
)
scores = st.one_of(st.none(), st.floats(), st.floats(0, 1))


def passages(rows):
    return [Passage(id=name, text=text, rank=rank, score=score) for rank, (name, text, score) in enumerate(rows, 1)]


@given(st.lists(st.tuples(texts, texts, scores), max_size=6))
def test_rows_hold_what_the_passages_hold(rows):
    pool = passages(rows)
    written = json.loads(documents_json(pool, Room(document_bytes=100_000, text_bytes=0), has_content=True).json)
    assert [row["id"] for row in written] == [p.id for p in pool]
    assert [row["rank"] for row in written] == [p.rank for p in pool]
    for row, passage in zip(written, pool, strict=True):
        is_finite = passage.score is not None and math.isfinite(passage.score)
        assert row["score"] == (passage.score if is_finite else 1 / passage.rank)
        assert ("score_kind" in row) is not is_finite
        if "content" in row:
            assert row["content"] == passage.text
    said = [row["content"] for row in written if "content" in row]
    assert set(said) == {p.text for p in pool if p.text}
    assert len(said) == len(set(said))  # each text once


@given(st.lists(st.tuples(texts, texts, scores), min_size=1, max_size=6), st.data())
def test_a_choice_knows_its_places(rows, data):
    pool = passages(rows)
    chosen = data.draw(st.lists(st.sampled_from(pool), max_size=4))
    written = json.loads(reranked_json(pool, chosen, Room(document_bytes=100_000, text_bytes=0)))
    ids = [p.id for p in pool]
    assert [row["previous_rank"] for row in written] == [ids.index(p.id) + 1 for p in chosen]


def test_marks_end_and_find_what_stands_twice():
    from ragtrace.telemetry.spans.messages import PassageMarks

    text = "Refunds take five working days."
    marks = PassageMarks([Passage(id="a", text=text, rank=1)])
    assert marks.applied(f"{text} {text} And?") == "[passage a] [passage a] And?"
    loop = PassageMarks([Passage(id=text, text=text, rank=1)])
    assert len(loop.applied(f"{text} What now?")) < 400


@pytest.mark.parametrize("character", ["", "\n", '"', "\\", "\t", "\x00", "\x1f", "\x7f", "é"])
def test_long_texts_in_lines_are_valid_json(character):
    text = "plain words in a line\n" * 20 + character
    assert json.loads(quoted(text)) == text
