"""Traps of msgspec, orjson and `json`: each is a row, with what our values, reader, writer and capture do there."""

from __future__ import annotations

import copy
import json
import math
import pickle
import weakref
from abc import ABC
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import ragtrace.model
from ragtrace.errors import InputError
from ragtrace.model import (
    AnswerPart,
    BadClaim,
    Feedback,
    JudgeInfo,
    JudgeUsage,
    Labels,
    LabelStratum,
    Message,
    MetricResult,
    Passage,
    Pool,
    RagRecord,
    Score,
    ScoreKey,
    Usage,
    record_from_json,
)
from ragtrace.model.codec import json_bytes, json_value, record_to_line
from ragtrace.model.file_lines import json_of_line
from ragtrace.testing.recording import Recording

KEY = ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v")
RESULT = MetricResult(name="mrr", state="ok", value=0.5)
PASSAGE = Passage(id="a", text="Oslo.", rank=1, metadata={"page": 3})
STRATUM = LabelStratum(size=9, labelled=3, counts={5: 1})
RECORD = RagRecord(
    id="1",
    query="Where?",
    history=(Message(role="user", content="Hello"),),
    pools=(Pool(stage="used", passages=(PASSAGE,)),),
    answer_parts=(AnswerPart(text="Oslo.", citations=("a",)),),
    labels=Labels(grades={"a": 5}, strata=(STRATUM,)),
    usage=Usage(input_tokens=3),
    feedback=(Feedback(value=1.0),),
)
VALUES = [
    RECORD,
    Score(key=KEY, result=replace(RESULT, judge=JudgeInfo(model="overlap"), details={"n": 1})),
    BadClaim(text="Rome.", verdict="invented"),
    JudgeUsage(llm_calls=1),
]


class Name(str):
    __slots__ = ()


class Share(float):
    pass


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def with_facts(**facts: Any) -> dict[str, Any]:
    """Return the facts of a passage as a payload keeps them."""
    record = replace(RECORD, pools=(Pool(stage="used", passages=(replace(PASSAGE, metadata=facts),)),))
    written = json_value(json_bytes(record_to_line(record)))
    kept: dict[str, Any] = written["contexts"][0].get("metadata")
    return kept


def again(**changes: Any) -> RagRecord:
    """Return a record after it was written and read."""
    record = replace(RECORD, **changes)
    return record_from_json(json_value(json_bytes(record_to_line(record))), fallback_id="")


def read(raw: bytes) -> RagRecord:
    """Return the record of a line of a file."""
    assert json_value(raw) == json.loads(raw)
    return record_from_json(json_of_line(raw), fallback_id="7")


def itself() -> dict[str, Any]:
    """Return facts that hold themselves."""
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def captured(*passages: Any, **facts: Any) -> RagRecord:
    """Return what capture makes of passages and facts, read from the line that a queue would hold."""
    kept = Recording()
    with kept.recorder.start(query="Where?") as run:
        run.set_attributes(**facts)
        run.retrieved(passages)
    record = kept.only.record
    for span in kept.spans:
        json.dumps(dict(span.attributes or {}), ensure_ascii=False).encode()  # half a pair has no UTF-8
    read_again = record_from_json(json.loads(json_bytes(record_to_line(record))), fallback_id="")
    assert read_again == record
    return record


def fact(value: Any) -> Any:
    """Return a fact of a passage as capture keeps it; None where it is left out."""
    return captured({"text": "Oslo.", "metadata": {"x": value}}).contexts[0].metadata.get("x")


def metadata_of_two() -> tuple[int, int]:
    """Change the facts of one passage; return how many it and another have then."""
    one, other = Passage(id="a", text="", rank=1), Passage(id="b", text="", rank=1)
    one.metadata["page"] = 3  # type: ignore[index] # a frozen Struct's dict can be changed
    return len(one.metadata), len(other.metadata)


WRITTEN = {
    "a number that is none is null": (lambda: with_facts(x=math.nan, y=[math.inf, 1.0]), {"x": None, "y": [None, 1.0]}),
    "a score that is none is left out": (lambda: again(pools=scored(math.nan)).contexts[0].score, None),
    "a time that is none is left out": (lambda: again(started=math.inf).started, 0.0),
    "a chance that is none is unknown": (lambda: again(head_probability=math.nan).head_probability, None),
    "half a surrogate pair": (lambda: again(query="a\ud800").query, "a\ufffd"),
    "half a surrogate pair in a fact": (lambda: with_facts(**{"x\ud800": "\udfff"}), {"x\ufffd": "\ufffd"}),
    "a subclass of str is its text": (lambda: with_facts(x=Name("a"), y=np.str_("b")), {"x": "a", "y": "b"}),
    "a subclass of str in a field": (lambda: again(query=Name("Where?")).query, "Where?"),
    "a subclass of float is its number": (lambda: with_facts(x=Share(0.5), y=np.float64(2.5)), {"x": 0.5, "y": 2.5}),
    "a score of numpy": (lambda: again(pools=scored(np.float64(0.5))).contexts[0].score, 0.5),
    "a number of numpy": (lambda: with_facts(x=np.int64(1), y=np.float32(0.5), z=np.bool_(True)), {"x": 1, "y": 0.5, "z": True}),
    "bytes": (lambda: with_facts(x=b"a", y=[{"z": b"\xff"}]), {"x": "a", "y": [{"z": "\ufffd"}]}),
    "an object is its text": (lambda: with_facts(x=Path("a")), {"x": "a"}),
    "a view of a dict is an object": (lambda: with_facts(x=MappingProxyType({"y": 1})), {"x": {"y": 1}}),
    "facts may be a view": (lambda: again(metadata=MappingProxyType({"y": 1})).metadata, {"y": 1}),
    "a whole number may be of any size": (lambda: with_facts(x=10**30), {"x": 10**30}),
    "a key that is no text is one": (lambda: with_facts(x={2: "a", True: "b", None: "c"}), {"x": {"2": "a", "true": "b", "null": "c"}}),
    "a key that is an object": (lambda: with_facts(x={(1, 2): "a"}), {"x": {"(1, 2)": "a"}}),
    "facts that hold themselves": (lambda: len(str(with_facts(x=itself()))) < 200, True),
    "a tuple is a list": (lambda: with_facts(x=(1, (2,))), {"x": [1, [2]]}),
}  # fmt: skip
READ = {
    "a byte order mark": (lambda: read(b'\xef\xbb\xbf{"query": "Where?"}').query, "Where?"),
    "half a surrogate pair": (lambda: read(b'{"query": "a\\ud800"}').query, "a\ud800"),
    "half a surrogate pair in a name": (lambda: read(b'{"contexts": [{"\\ud800": 1, "text": "a"}]}').contexts[0].text, "a"),
    "a name that is a number": (lambda: read(b'{"id": 12}').id, "12"),
    "a passage's name that is a number": (lambda: read(b'{"contexts": [{"id": 1.5}]}').contexts[0].id, "1.5"),
    "a number beyond 64 bit": (lambda: read(b'{"k": 123456789012345678901}').k, 123456789012345678901),
    "a number beyond a float": (lambda: read(b'{"metadata": {"x": 1e999}}').metadata, {"x": math.inf}),
    "a type is checked": (lambda: read(b'{"query": 5}'), InputError("field 'query': expected `str | null`, got `int`")),
    "what a constructor checks": (
        lambda: read(b'{"labels": {"grades": {}, "strata": [{"size": 2, "labelled": 3, "counts": {}}]}}'),
        InputError("field 'labels.strata[0]': a stratum of 2 with 3 graded cannot have {}: counts <= labelled <= size"),
    ),
    "NaN is refused in a file": (lambda: json_of_line(b'{"x": NaN}'), InputError("NaN is not JSON; write null")),
    "NaN of a payload is read": (lambda: math.isnan(json_value(b'{"x": NaN}')["x"]), True),
    "what is no JSON has its column": (lambda: json_of_line(b'{"query": x}'), InputError("not JSON: Expecting value at column 11")),
    "a context is a text or an object": (lambda: len(read(b'{"contexts": ["a", {"text": "b"}]}').contexts), 2),
    "names of ragas": (lambda: read(b'{"user_input": "Where?", "query": null}').query, "Where?"),
    "names of DeepEval": (lambda: read(b'{"input": "Where?", "retrieval_context": ["a"]}').contexts[0].text, "a"),
    "an error in a field of another tool": (lambda: read(b'{"user_input": 5}'), InputError("field 'user_input': expected `str | null`, got `int`")),
    "an error in a list of another tool": (
        lambda: read(b'{"retrieved_contexts": [3]}'),
        InputError("field 'retrieved_contexts[0]': expected `str | object`, got `int`"),
    ),
    "a passage's other names": (lambda: read(b'{"contexts": [{"doc_id": 7, "content": "b"}]}').contexts[0].id, "7"),
    "empty facts of another type": (lambda: read(b'{"contexts": [{"text": "b", "metadata": []}]}').contexts[0].metadata, {}),
    "a subclass of str of a table": (lambda: record_from_json({"query": np.str_("a")}, fallback_id="7").query, "a"),
    "a subclass of float of a table": (
        lambda: record_from_json({"contexts": [{"score": np.float64(0.5)}]}, fallback_id="7").contexts[0].score, 0.5
    ),
    "half a surrogate pair for a number": (
        lambda: read(b'{"query": "q", "k": "\\ud800"}'), InputError("field 'k': expected `int | null`, got `str`")
    ),
    "half a surrogate pair in a list of numbers": (
        lambda: read(b'{"labels": {"a": "\\ud800"}}'), InputError("field 'labels.a': expected `int`, got `str`")
    ),
    "a name that is no text of a table": (lambda: record_from_json({3: "a", "query": "b"}, fallback_id="7").query, "b"),
}  # fmt: skip
CAPTURED = {
    "half a surrogate pair": (lambda: captured("a\ud800").contexts[0].text, "a\ufffd"),
    "a pair that was split": (lambda: captured("\ud83d\ude00").contexts[0].text, "\U0001f600"),
    "a score that is none": (lambda: captured({"text": "a", "score": math.nan}).contexts[0].score, None),
    "a fact that is no number": (lambda: fact(math.inf), None),
    "a fact beyond 64 bit": (lambda: fact(1 << 63), "9223372036854775808"),
    "a number of numpy": (lambda: captured({"text": "a", "score": np.float32(0.5)}).contexts[0].score, 0.5),
    "a subclass of str": (lambda: type(captured(Name("a")).contexts[0].text) is str, True),
    "a subclass of str in a fact": (lambda: type(fact(np.str_("a"))) is str, True),
    "bytes are a text": (lambda: captured(b"a\xff").contexts[0].text, "a\ufffd"),
    "bytes are a name": (lambda: captured("a", user=b"ada").user, "ada"),
    "a view of a dict": (lambda: captured(MappingProxyType({"text": "a", "id": 7})).contexts[0].id, "7"),
    "facts of a view": (lambda: captured({"text": "a", "metadata": MappingProxyType({3: "b"})}).contexts[0].metadata, {"3": "b"}),
    "an object whose text raises": (lambda: captured("a", user=Mute()).user, "<Mute>"),
}  # fmt: skip
VALUE = {
    "a constructor checks no types": (lambda: Passage(id=1, text=None, rank="x").rank, "x"),  # type: ignore[arg-type]
    "a constructor checks what it did": (lambda: LabelStratum(size=2, labelled=3, counts={}), ValueError),
    "replace checks it": (lambda: replace(STRATUM, labelled=99), ValueError),
    "decode checks it": (lambda: msgspec.json.decode(b'{"size":2,"labelled":3,"counts":{}}', type=LabelStratum), msgspec.ValidationError),
    "convert checks it": (lambda: msgspec.convert({"name": "x", "state": "ok"}, MetricResult), msgspec.ValidationError),
    "a result without a number is refused": (lambda: MetricResult(name="x", state="ok", value=math.nan), ValueError),
    "a weight below one is refused": (lambda: Score(key=KEY, result=RESULT, weight=0.5), ValueError),
    "a field cannot be changed": (lambda: setattr(RECORD, "query", "x"), AttributeError),
    "arguments have names": (lambda: Message("user", "Hello"), TypeError),  # type: ignore[misc]
    "facts are of one passage": (metadata_of_two, (1, 0)),
    "a value with a dict has no hash": (lambda: hash(PASSAGE), TypeError),
    "a key has a hash": (lambda: {KEY: 1}[replace(KEY)], 1),
    "a value has no weak reference": (lambda: weakref.ref(RECORD), TypeError),
    "a value has no dict": (lambda: vars(RECORD), TypeError),
    "a value has no cached property": (lambda: cached_property(len).__get__(PASSAGE), TypeError),
    "a value is of no protocol": (lambda: type("Named", (msgspec.Struct, Protocol), {}), TypeError),
    "a value is of no abstract class": (lambda: type("Named", (msgspec.Struct, ABC), {}), TypeError),
    "another class is not equal": (lambda: Usage() == JudgeUsage(), False),
}  # fmt: skip


ROWS: dict[str, dict[str, tuple[Any, Any]]] = {
    "written": WRITTEN,
    "read": READ,
    "captured": CAPTURED,
    "value": VALUE,
}


def scored(score: float) -> tuple[Pool, ...]:
    return (Pool(stage="used", passages=(replace(PASSAGE, score=score),)),)


@pytest.mark.parametrize(
    ("made", "expected"),
    [row for rows in ROWS.values() for row in rows.values()],
    ids=[f"{place}: {trap}" for place, rows in ROWS.items() for trap in rows],
)
def test_a_trap(made: Any, expected: Any) -> None:
    if isinstance(expected, Exception):
        with pytest.raises(type(expected)) as raised:
            made()
        assert str(raised.value) == str(expected)
    elif isinstance(expected, type):
        with pytest.raises(expected):
            made()
    else:
        assert made() == expected


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_outlives_copies_and_says_itself(value: Any) -> None:
    assert type(value).__bases__ == (msgspec.Struct,)  # no Protocol and no ABC can be one
    sent = pickle.loads(pickle.dumps(value))  # noqa: S301 -- as another process gets it
    assert sent == copy.deepcopy(value) == copy.copy(value) == replace(value) == value
    assert eval(repr(value), dict(vars(ragtrace.model))) == value  # noqa: S307
