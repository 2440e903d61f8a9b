"""The JSON of documents and messages: valid, within budget, texts cut from the lowest ranks up, no id lost."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace import semconv
from ragtrace.model import Message, Passage
from ragtrace.telemetry import (
    Room,
    clean_value,
    documents_json,
    messages_json,
    reranked_json,
    to_json,
    within,
)
from ragtrace.text import cut_bytes, size_bytes

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)  # lone surrogates and NUL too
SCORES = st.none() | st.floats(allow_nan=True, allow_infinity=True)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def pools(draw):
    texts = draw(st.lists(ANY_TEXT, max_size=12))
    return [
        Passage(
            id=draw(ANY_TEXT),
            text=text,
            rank=rank,
            score=draw(SCORES),
            metadata=draw(st.dictionaries(ANY_TEXT, JUNK, max_size=2)),
        )
        for rank, text in enumerate(texts, start=1)
    ]


def clean(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@settings(max_examples=200, deadline=None)
@given(pools(), st.integers(0, 20_000), st.booleans())
def test_any_budget_keeps_ids_scores_and_ranks_and_drops_texts_from_the_lowest_rank_up(pool, budget, has_content):
    room = Room(document_bytes=budget, text_bytes=0)
    found, _ = documents_json(pool, room, has_content=has_content)
    assert room.document_bytes == max(budget - len(found.encode("utf-8")), 0)
    items = json.loads(found)
    assert [(item["id"], item["rank"]) for item in items] == [(clean(p.id), p.rank) for p in pool]
    for item, passage in zip(items, pool, strict=True):
        is_finite = passage.score is not None and math.isfinite(passage.score)
        assert item["score"] == (passage.score if is_finite else 1 / passage.rank)
        assert ("score_kind" in item) is not is_finite
    have_text = ["content" in item for item in items]
    assert not any(have_text) or (has_content and size_bytes(found) <= budget)
    texts = [p.text for p in pool]
    firsts = [have_text[place] for place, text in enumerate(texts) if text and text not in texts[:place]]
    assert firsts == sorted(firsts, reverse=True)
    wide = Room(document_bytes=1_000_000, text_bytes=0)
    rows = [row for _ in range(2) for row in json.loads(documents_json(pool, wide, has_content=True)[0])]
    assert sum("content" in row for row in rows) == len({text for text in texts if text}), "each text goes once"


@settings(max_examples=100, deadline=None)
@given(pools(), st.integers(2, 600))
def test_a_limit_of_the_sdk_keeps_the_json_whole(pool, limit):
    room = Room(document_bytes=100_000, text_bytes=0, limit_chars=limit)
    written = {
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS: documents_json(pool, room, has_content=True)[0],
        semconv.RETRIEVAL_DOCUMENT_CAPTURED: len(pool),
        semconv.RERANK_DOCUMENTS: reranked_json(pool, pool, room),
    }
    found = within(written, 1_000_000, limit)
    rows = {
        name: json.loads(found[name]) for name in (semconv.GEN_AI_RETRIEVAL_DOCUMENTS, semconv.RERANK_DOCUMENTS)
    }
    assert all(len(found[name]) <= limit for name in rows)
    assert all(rows[name] == json.loads(written[name])[: len(rows[name])] for name in rows)
    assert len(rows[semconv.GEN_AI_RETRIEVAL_DOCUMENTS]) == found[semconv.RETRIEVAL_DOCUMENT_CAPTURED]


@settings(max_examples=200, deadline=None)
@given(st.lists(ANY_TEXT, max_size=6), st.integers(0, 3_000))
def test_messages_fit_and_stay_valid(texts, budget):
    room = Room(document_bytes=0, text_bytes=budget)
    text = messages_json([Message(role="user", content=t) for t in texts], room)
    if text is None:
        assert room.text_bytes == budget
        return
    assert len(json.loads(text)) == len(texts)
    assert size_bytes(text) <= budget // 2
    assert room.text_bytes == budget - size_bytes(text)


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_any_value_becomes_valid_json(value):
    text = to_json(value)
    text.encode("utf-8")
    json.loads(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "null"),
        (1 << 70, f'"{1 << 70}"'),
        ("a\ud800", '"a\ufffd"'),
        (b"a", '"a"'),
        ((1, 0.5), "[1,0.5]"),
        ({3: "a", None: "b"}, '{"3":"a","null":"b"}'),
        (np.float64(0.5), "0.5"),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02 00:00:00+00:00"'),
    ],
    ids=repr,
)
def test_what_orjson_refuses_is_cleaned(value, text):
    assert to_json([value, "next"]) == f'[{text},"next"]'


def test_a_cycle_ends():
    loop = {"name": "x"}
    loop["self"] = loop
    assert json.loads(to_json(loop))["name"] == "x"


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_any_attribute_value_can_be_encoded(value):
    cleaned = clean_value(value)
    assert cleaned is None or isinstance(cleaned, str | bool | int | float | tuple)
    for item in cleaned if isinstance(cleaned, tuple) else (cleaned,):
        assert not isinstance(item, int) or -(1 << 63) <= item < 1 << 63
        str(item).encode("utf-8")


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT, st.integers(32, 400))
def test_cut_bytes_fits_and_says_so(text, budget):
    cut = cut_bytes(text, budget)
    assert size_bytes(cut) <= budget
    assert cut == text or f"cut, {len(text)} characters" in cut


def test_escapes_that_blow_a_text_up_are_counted():
    pool = [Passage(id="a", text="\x00" * 1_000, rank=1), Passage(id="b", text="short", rank=2)]
    found, truncated = documents_json(pool, Room(document_bytes=2_000, text_bytes=0), has_content=True)
    assert "content" not in found
    assert truncated == 2


@given(pools(), st.data())
def test_a_choice_knows_its_places(pool, data):
    chosen = data.draw(st.lists(st.sampled_from(pool), max_size=4)) if pool else []
    written = json.loads(reranked_json(pool, chosen, Room(document_bytes=100_000, text_bytes=0)))
    ids = [p.id for p in pool]
    assert [row["previous_rank"] for row in written] == [ids.index(p.id) + 1 for p in chosen]
