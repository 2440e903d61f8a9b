"""The JSON of documents and messages: valid, within budget, texts cut from the lowest ranks up, no id lost."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtrace import semconv
from ragtrace.model import Message, Passage
from ragtrace.telemetry import Budget, Documents, Limit, Messages, Reranked, clean_value, to_json
from ragtrace.telemetry.wire import AttributeLimits
from ragtrace.text import cut_bytes, size_bytes

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)  # lone surrogates and NUL too
DOCUMENTS = semconv.GEN_AI_RETRIEVAL_DOCUMENTS
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


def written(pool, limit, *, has_content):
    return Documents(pool, has_content=has_content).write(DOCUMENTS, limit)[DOCUMENTS]


def clean(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@settings(max_examples=200, deadline=None)
@given(pools(), st.integers(0, 20_000), st.booleans())
def test_any_budget_keeps_ids_scores_and_ranks_and_drops_texts_from_the_lowest_rank_up(pool, budget, has_content):
    found = written(pool, Limit(texts=budget), has_content=has_content)
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
    wide = Budget(1_000_000)
    twice = [wide.fit({DOCUMENTS: Documents(pool, has_content=True)}) for _ in range(2)]
    rows = [row for one in twice for row in json.loads(one[DOCUMENTS])]
    assert sum("content" in row for row in rows) == len({text for text in texts if text}), "each text goes once"


@settings(max_examples=100, deadline=None)
@given(pools(), st.integers(2, 600))
def test_a_limit_of_the_sdk_keeps_the_json_whole(pool, limit):
    values = {
        DOCUMENTS: Documents(pool, has_content=True),
        semconv.RERANK_DOCUMENTS: Reranked(pool, pool),
    }
    found = Budget(1_000_000, limits=AttributeLimits(length=limit)).fit(values)
    rows = {name: json.loads(found[name]) for name in values}
    assert all(len(found[name]) <= limit for name in rows)
    for name, value in values.items():
        whole = json.loads(value.write(name, Limit(texts=0))[name])
        ids = [(row["id"], row["rank"]) for row in whole]
        assert [(row["id"], row["rank"]) for row in rows[name]] == ids[: len(rows[name])]
    assert len(rows[DOCUMENTS]) == found[semconv.RETRIEVAL_DOCUMENT_CAPTURED]


@settings(max_examples=200, deadline=None)
@given(st.lists(ANY_TEXT, max_size=6), st.integers(0, 3_000))
@example(["\x07" * 8 + "\ud800" + "\U00010000" * 9] * 4, 840)  # no character of the cut text may stop the cut
def test_messages_fit_and_stay_valid(texts, budget):
    room = Budget(1_000_000)
    room.left = budget
    found = room.fit({"said": Messages([Message(role="user", content=t) for t in texts], 0.5)})
    text = found.get("said", "")
    assert not text or len(json.loads(text)) == len(texts)
    assert size_bytes(text) <= budget // 2
    assert room.left == budget - size_bytes(text)


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
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00+00:00"'),
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
    found = Documents(pool, has_content=True).write(DOCUMENTS, Limit(texts=2_000))
    assert "content" not in found[DOCUMENTS]
    assert found[semconv.RETRIEVAL_DOCUMENT_TRUNCATED] == 2


@given(pools(), st.data())
def test_a_choice_knows_its_places(pool, data):
    chosen = data.draw(st.lists(st.sampled_from(pool), max_size=4)) if pool else []
    rows = json.loads(Reranked(pool, chosen).write("it", Limit())["it"])
    ids = [p.id for p in pool]
    assert [row["previous_rank"] for row in rows] == [ids.index(p.id) + 1 for p in chosen]
