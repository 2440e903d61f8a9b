"""Records as JSON: what is written is read back, plain lines are read, and what is wrong is named."""

from __future__ import annotations

import json
import math
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.errors import InputError
from ragtrace.model import (
    SCHEMA,
    SCHEMA_ID,
    SIGNS,
    AnswerPart,
    Call,
    Feedback,
    Found,
    How,
    JudgeInfo,
    Labels,
    LabelStratum,
    Message,
    MetricResult,
    Passage,
    Pool,
    RagRecord,
    Reading,
    Sign,
    Source,
    Usage,
    content_id,
    record_from_json,
    record_to_json,
    score_to_json,
)

WORDS = st.text(max_size=12)
NAMES = st.text(min_size=1, max_size=8)
COUNTS = st.integers(0, 10**6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def passages(draw: st.DrawFn) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            id=name,
            text=draw(WORDS),
            rank=rank,
            score=draw(st.none() | NUMBERS),
            source=draw(st.none() | WORDS),
            metadata=draw(st.dictionaries(NAMES, COUNTS, max_size=2)),
            truncated=draw(COUNTS),
        )
        for rank, name in enumerate(draw(st.lists(NAMES, max_size=3)), start=1)
    )


@st.composite
def pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    stages = draw(st.lists(st.sampled_from(("retrieved", "reranked", "used")), unique=True))
    return tuple(
        Pool(stage=stage, passages=draw(passages()))
        for stage in ("retrieved", "reranked", "used")
        if stage in stages
    )


STRATA = st.dictionaries(st.integers(1, 5), st.integers(0, 9), max_size=5).map(
    lambda counts: LabelStratum(size=99, labelled=max(1, sum(counts.values())), counts=counts)
)
LABELS = st.builds(
    Labels,
    grades=st.dictionaries(NAMES, st.integers(1, 5), max_size=3),
    label_scope=st.sampled_from(("gold", "cache", "pool", "shadow", "stratified", "sample")),
    scale=st.sampled_from(("direct5", "umbrela_mapped", "umbrela_mapped_strict")),
    version=st.none() | WORDS,
    strata=st.lists(STRATA, max_size=2).map(tuple),
    query=st.none() | WORDS,
)
FOUND = st.builds(Found, place=WORDS, how=st.sampled_from(get_args(How)))
SOURCES = st.builds(
    Source,
    name=NAMES,
    kind=st.sampled_from(("search", "tool", "state", "marked")),
    **dict.fromkeys(("passages", "chosen", "shown", "left_out"), COUNTS),
    why=WORDS,
    how=st.sampled_from(get_args(How)),
)
SIGNED = st.builds(Sign, name=st.sampled_from(tuple(SIGNS)), about=WORDS, text=WORDS, declare=WORDS)
READINGS = st.builds(
    Reading,
    question=st.none() | FOUND,
    answers=st.lists(FOUND, max_size=2).map(tuple),
    sources=st.lists(SOURCES, max_size=2).map(tuple),
    signs=st.lists(SIGNED, max_size=2).map(tuple),
    roots=st.lists(NAMES, max_size=3).map(tuple),
)
RECORDS = st.builds(
    RagRecord,
    id=NAMES,
    trace_id=WORDS,
    span_id=WORDS,
    workflow=NAMES,
    session=st.none() | NAMES,
    user=st.none() | NAMES,
    environment=st.none() | NAMES,
    corpus=st.none() | NAMES,
    corpus_version=st.none() | NAMES,
    query=WORDS,
    history=st.lists(st.builds(Message, role=NAMES, content=WORDS), max_size=2).map(tuple),
    pools=pools(),
    unranked_contexts=passages(),
    selection_source=st.none() | WORDS,
    answer=WORDS,
    answer_parts=st.lists(
        st.builds(AnswerPart, text=WORDS, citations=st.lists(NAMES, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
    reference=st.none() | WORDS,
    labels=st.none() | LABELS,
    k=st.none() | COUNTS,
    usage=st.none() | st.builds(Usage, **dict.fromkeys(Usage.__struct_fields__, st.none() | COUNTS)),
    feedback=st.lists(
        st.builds(Feedback, value=st.floats(0, 1), comment=st.none() | WORDS, source=NAMES), max_size=2
    ).map(tuple),
    started=st.floats(0, 2e9),
    ended=st.floats(0, 2e9),
    outcome=st.sampled_from(("answered", "partial", "cancelled", "interrupted", "error")),
    head_probability=st.none() | st.floats(0, 1),
    model=st.none() | NAMES,
    tags=st.lists(WORDS, max_size=2).map(tuple),
    metadata=st.dictionaries(NAMES, st.one_of(WORDS, COUNTS, st.booleans()), max_size=2),
    revision=COUNTS,
    lossy=st.dictionaries(NAMES, COUNTS, max_size=2),
    reading=st.none() | READINGS,
)


@given(RECORDS)
def test_what_is_written_is_read_back(record: RagRecord) -> None:
    text = json.dumps(record_to_json(record), allow_nan=False)
    assert record_from_json(json.loads(text), fallback_id="other") == record


@given(RECORDS)
def test_the_schema_names_every_field_that_is_written(record: RagRecord) -> None:
    assert set(record_to_json(record)) <= set(SCHEMA["properties"])


def test_the_schema_describes_every_field_and_carries_its_version() -> None:
    assert [SCHEMA["$id"]] == [SCHEMA_ID] == SCHEMA["properties"]["schema"]["enum"]
    assert SCHEMA["title"]
    assert all(len(field["description"]) > 5 for field in SCHEMA["properties"].values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted({*SCHEMA["properties"], "other"})), JSON, max_size=4) | JSON)
def test_any_json_is_a_record_or_an_input_error_of_one_line(value: Any) -> None:
    identity, said = "", ""
    try:
        identity = record_from_json(value, fallback_id="1").id
    except InputError as error:
        said = str(error)
    assert bool(identity) != bool(said)
    assert "\n" not in said


def test_a_plain_line_is_read() -> None:
    line = {
        "query": "Where?",
        "answer": "Oslo.",
        "contexts": ["It is in Oslo.", {"id": "b", "text": "Or Bergen.", "score": 0.5, "colour": "blue"}],
        "reference": "Oslo",
        "labels": {"b": 4},
        "history": [{"speaker": "user", "text": "Hello"}, "Hi"],
        "hallucinated": 0,
    }
    record = record_from_json(line, fallback_id="7")
    assert record.id == "7"
    assert [pool.stage for pool in record.pools] == ["used"]
    assert record.contexts == (
        Passage(id=content_id("It is in Oslo."), text="It is in Oslo.", rank=1),
        Passage(id="b", text="Or Bergen.", rank=2, score=0.5),
    )
    assert record.reference == "Oslo"
    assert record.labels == Labels(grades={"b": 4}, label_scope="gold")
    assert record.history == (Message(role="user", content="Hello"), Message(role="user", content="Hi"))


def test_a_pool_is_what_was_retrieved_and_contexts_what_the_model_saw() -> None:
    record = record_from_json({"pool": ["a", "b"], "contexts": ["b"]}, fallback_id="1")
    assert [(pool.stage, len(pool.passages)) for pool in record.pools] == [("retrieved", 2), ("used", 1)]
    assert record.contexts[0].text == "b"


def test_texts_of_tools_stand_beside_the_contexts() -> None:
    told = [{"content": "Open.", "source": "hours"}, "Closed on Sundays."]
    record = record_from_json({"contexts": ["Oslo."], "unranked_contexts": told}, fallback_id="1")
    assert [(one.text, one.source, one.rank) for one in record.unranked_contexts] == [
        ("Open.", "hours", 1), ("Closed on Sundays.", None, 2),
    ]  # fmt: skip
    assert [one.text for one in record.contexts] == ["Oslo.", "Open.", "Closed on Sundays."]
    assert record_from_json({"unranked_contexts": ["Open."]}, fallback_id="1").pools == ()
    with pytest.raises(InputError, match=r"unranked_contexts\[0\]"):
        record_from_json({"unranked_contexts": [7]}, fallback_id="1")


def test_ids_are_kept_as_text_and_missing_ones_take_the_line_number() -> None:
    assert record_from_json({"id": 12}, fallback_id="1").id == "12"
    assert record_from_json({"id": 0}, fallback_id="1").id == "0"
    assert record_from_json({"id": ""}, fallback_id="1").id == "1"
    assert record_from_json({"id": None}, fallback_id="1").id == "1"


def test_a_line_says_where_a_run_was_read() -> None:
    sign = Sign("evidence_unread", "prompt", "| town | rooms |", 'evidence={"state.rows": True}')
    reading = Reading(
        Found("input.question"), (Found("output", "decorator"),), (Source("faq", "search", 3),), (sign,)
    )
    assert record_to_json(RagRecord(id="1", reading=reading))["reading"] == {
        "question": {"place": "input.question", "how": "structure"},
        "answers": [{"place": "output", "how": "decorator"}],
        "sources": [{"name": "faq", "kind": "search", "passages": 3, "how": "structure"}],
        "signs": [
            {
                "name": "evidence_unread",
                "about": "prompt",
                "text": "| town | rooms |",
                "declare": 'evidence={"state.rows": True}',
            }
        ],
    }


def test_a_reading_of_a_newer_version_is_read_without_what_is_unknown() -> None:
    line = {
        "question": {"place": "input.question", "how": "telepathy"},
        "sources": [{"name": "new", "kind": "dream"}, {"name": "faq", "kind": "search", "how": "telepathy"}],
        "signs": [{"name": "answer_dreamt", "about": "output"}, {"name": "answer_guessed"}],
        "weather": "rain",
    }
    assert record_from_json({"reading": line}, fallback_id="1").reading == Reading(
        question=Found("input.question"), sources=(Source("faq", "search"),), signs=(Sign("answer_guessed"),)
    )


def test_losses_of_an_earlier_version_are_read_as_the_sign_that_they_became() -> None:
    for name in ("context_unread", "prompt_unmatched"):
        read = record_from_json({"lossy": {name: 2, "passages": 12}}, fallback_id="1")
        assert (read.signs, read.lossy) == ((Sign("evidence_unread", "prompt"),), {"passages": 12})


def test_an_unknown_head_probability_stays_unknown() -> None:
    assert record_from_json({"head_probability": None}, fallback_id="1").head_probability is None
    assert record_from_json({}, fallback_id="1").head_probability == 1.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "a line must be a JSON object, got a list"),
        ("x", "a line must be a JSON object, got a text"),
        ({"schema": "ragtrace.record/2"}, "schema 'ragtrace.record/2' is not 'ragtrace.record/1'"),
        ({"id": True}, "field 'id'"),
        ({"id": math.inf}, "field 'id'"),
        ({"query": 3}, "field 'query': expected `str | null`, got `int`"),
        ({"answer": ["x"]}, "field 'answer': expected `str | null`, got `array`"),
        ({"contexts": "x"}, "field 'contexts': expected `array | null`, got `str`"),
        ({"contexts": [None]}, "field 'contexts[0]': expected `str | object`, got `null`"),
        ({"pool": ["a", {"text": 3}]}, "field 'pool[1].text': expected `str | null`, got `int`"),
        (
            {"contexts": [{"text": "a", "score": "high"}]},
            "field 'contexts[0].score': expected `float | null`, got `str`",
        ),
        ({"contexts": [{"text": "a", "score": 10**400}]}, "field 'contexts[0].score': number out of range"),
        ({"labels": ["a"]}, "field 'labels': expected `object | null`, got `array`"),
        ({"labels": {"a": "good"}}, "field 'labels.a': expected `int`, got `str`"),
        ({"labels": {"b": 4, "a": True}}, "field 'labels.a': expected `int`, got `bool`"),
        ({"labels": {"grades": {"a": 4.0}}}, "field 'labels.grades.a': expected `int`, got `float`"),
        (
            {"labels": {"grades": {}, "universe": "all"}},
            "field 'labels.universe': expected one of gold, cache, pool",
        ),
        ({"labels": {"grades": {}, "strata": [4]}}, "field 'labels.strata[0]': expected `object`, got `int`"),
        (
            {"labels": {"grades": {}, "strata": [{"size": 2, "labelled": 3, "counts": {}}]}},
            "field 'labels.strata[0]': a stratum of 2 with 3 graded cannot have {}: counts <= labelled <= size",
        ),
        (
            {"labels": {"grades": {}, "strata": [{"size": 2, "labelled": 1, "counts": {"6": 1}}]}},
            "counts of a stratum are by grade",
        ),
        (
            {"labels": {"grades": {}, "strata": [{"size": 2, "labelled": 1, "counts": {"5": 0.5}}]}},
            "field 'labels.strata[0].counts.5': expected `int | null`, got `float`",
        ),
        ({"labels": {"grades": {}, "strata": [{"size": 9, "labelled": 0, "counts": {}}]}}, "at least one"),
        ({"labels": {"grades": {}, "query": 4}}, "field 'labels.query': expected `str | null`, got `int`"),
        ({"history": [4]}, "field 'history[0]': expected `str | object`, got `int`"),
        ({"answer_parts": [4]}, "field 'answer_parts[0]': expected `str | object`, got `int`"),
        ({"feedback": [{"value": 7}]}, "field 'feedback[0].value': expected `float` <= 1.0"),
        ({"k": 2.5}, "field 'k': expected `int | null`, got `float`"),
        (
            {"outcome": "lost"},
            "field 'outcome': expected one of answered, partial, cancelled, interrupted, error, got 'lost'",
        ),
        ({"reading": {"signs": [{"name": 3}]}}, "field 'reading.signs[0].name': expected `str`, got `int`"),
        ({"lossy": 3}, "field 'lossy': expected `object | null`, got `int`"),
    ],
)
def test_a_wrong_field_is_named(line: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        record_from_json(line, fallback_id="1")


def test_a_result_carries_all_that_its_number_rests_on() -> None:
    result = MetricResult(
        name="p_at_k",
        state="ok",
        value=0.5,
        passed=False,
        details={"n": 2},
        judge=JudgeInfo(model="openai:m", label_scale="direct5"),
        k=4,
        label_scope="pool",
        version="0a1b2c3d",
    )
    assert score_to_json(result) == {
        "state": "ok",
        "value": 0.5,
        "passed": False,
        "reason": None,
        "details": {"n": 2},
        "judge": "openai:m",
        "version": "0a1b2c3d",
        "k": 4,
        "universe": "pool",
        "label_scale": "direct5",
    }


def test_a_failure_has_a_reason_and_no_number() -> None:
    shown = score_to_json(MetricResult(name="faithfulness", state="error", reason="judge_unavailable"))
    assert (shown["state"], shown["value"], shown["reason"]) == ("error", None, "judge_unavailable")


@pytest.mark.parametrize(
    ("given", "kept"),
    [("57EDD83B" * 4, "57edd83b" * 4), ("57EDD83B", "57EDD83B"), ("X" * 32, "X" * 32)],
)
def test_a_trace_id_is_lower_case_as_traces_have_it(given: str, kept: str) -> None:
    assert record_from_json({"trace_id": given}, fallback_id="1").trace_id == kept


@pytest.mark.parametrize("line", [{"query": "Where?"}, {"query": "Where?", "answer": None}])
def test_an_answer_that_is_not_given_is_told_from_a_blank_one(line: dict[str, Any]) -> None:
    absent = record_from_json(line, fallback_id="1")
    assert (absent.answer, absent.is_answer_given) == ("", False)
    assert record_from_json(record_to_json(absent), fallback_id="1") == absent
    blank = record_from_json({**line, "answer": ""}, fallback_id="1")
    assert (blank.answer, blank.is_answer_given) == ("", True)
    assert record_from_json(record_to_json(blank), fallback_id="1") == blank


CANONICAL = {"query": "Where?", "answer": "Oslo.", "contexts": ["It is in Oslo."], "reference": "In Oslo."}


@pytest.mark.parametrize(
    "line",
    [
        CANONICAL,
        {"user_input": "Where?", "response": "Oslo.", "retrieved_contexts": ["It is in Oslo."], "reference": "In Oslo."},
        {"input": "Where?", "actual_output": "Oslo.", "retrieval_context": ["It is in Oslo."], "expected_output": "In Oslo."},
        {"input": "Where?", "actual_output": "Oslo.", "context": ["It is in Oslo."], "expected_output": "In Oslo."},
        {"question": "Where?", "answer": "Oslo.", "context": "It is in Oslo.", "ground_truth": "In Oslo."},
        {**CANONICAL, "user_input": "Why?", "response": "No.", "context": ["None."], "expected_output": "x"},
        {"query": None, "user_input": "Where?", "answer": "Oslo.", "contexts": ["It is in Oslo."], "reference": "In Oslo."},
        {
            "user_input": "Where?", "response": "Oslo.", "retrieval_context": ["It is in Oslo."],
            "context": ["The ideal context."], "expected_output": "In Oslo.",
        },
    ],
    ids=["own", "ragas", "deepeval", "deepeval context", "ragas 0.1", "own names win", "null", "delivered before ideal"],
)  # fmt: skip
def test_records_of_ragas_and_deepeval_are_read_under_their_names(line: dict[str, Any]) -> None:
    record = record_from_json(line, fallback_id="1")
    assert (record.query, record.answer, record.reference) == ("Where?", "Oslo.", "In Oslo.")
    assert [passage.text for passage in record.contexts] == ["It is in Oslo."]
    assert record.is_answer_given


def test_the_schema_describes_the_names_of_other_tools() -> None:
    shown = SCHEMA["properties"]
    for alias in ("user_input", "response", "retrieved_contexts", "input", "actual_output", "retrieval_context"):
        assert shown[alias]["description"].startswith("Read as '")


def test_calls_of_turns_come_back_and_old_lines_have_none():
    calls = (Call(name="search", arguments='{"q": "lab"}', id="c-1"), Call(name="ping"))
    turns = (
        Message(role="assistant", content="", calls=calls),
        Message(role="tool", content="In Oslo.", call_id="c-1"),
    )
    line = record_to_json(RagRecord(id="1", history=turns))
    assert line["history"][0]["calls"][1] == {"name": "ping"}
    assert record_from_json(line, fallback_id="2").history == turns
    old = {"history": [{"role": "user", "content": "Hi"}]}
    assert record_from_json(old, fallback_id="2").history == (Message(role="user", content="Hi"),)
