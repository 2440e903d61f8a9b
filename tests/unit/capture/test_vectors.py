"""Values that are long, deep or without an end: vectors are left out, the rest is read within a budget."""

from __future__ import annotations

import threading
import time
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

from ragtrace.capture import Recorder
from ragtrace.capture.values import MOST_PARTS, VECTOR, Opaque, Walker, copied, told, within
from ragtrace.text import MAX_REDACTED_CHARS, clean_metadata, first_items, is_vector
from tests.cpu import leave_out_what_is_older, slower
from tests.kept import Keeper
from tests.vectors import VECTOR as VECTOR_1536
from tests.vectors import Endless

MATRIX = [VECTOR_1536] * 1_000
MOST_S = 0.25  # of CPU; each of these took 0.5 s or had no end


class EndlessMapping(dict):
    def __iter__(self):
        return count()

    def keys(self):
        return count()

    def __getitem__(self, key):
        return key


@dataclass
class Held:
    vectors: Any
    secret: str = field(default="s", repr=False)


class Model(BaseModel):
    vectors: Any
    secret: str = Field(default="s", repr=False)


class Text(str):
    __slots__ = ()


class Quiet(BaseModel):
    vectors: Any

    def __str__(self):
        return "quiet"


def zeros(dimensions):
    value: Any = 0
    for _ in range(dimensions):
        value = [value] * 33
    return value


# Each is made where it is asked for: together they are 0.7 GB, which every process that collects tests would keep.
VECTORS: dict[str, Callable[[], Any]] = {
    "list": lambda: VECTOR_1536,
    "tuple": lambda: tuple(VECTOR_1536),
    "whole numbers": lambda: list(range(1_000_000)),
    "decimals": lambda: list(map(Decimal, range(100_000))),
    "numpy's numbers": lambda: list(np.array(VECTOR_1536)),
    "list of lists": lambda: MATRIX,
    "list of arrays": lambda: [np.array(VECTOR_1536)] * 1_000,
    "list of arrays of Python's": lambda: [array("d", VECTOR_1536)] * 1_000,
    "list of deques": lambda: [deque(VECTOR_1536)] * 1_000,
    "mapping of vectors": lambda: dict.fromkeys(range(1_000), VECTOR_1536),
}
for _depth in (3, 4, 5, 6):
    VECTORS[f"zeros of {_depth} dimensions"] = partial(zeros, _depth)
LONG = {
    "array": lambda: np.zeros((1_000, 1_536)),
    "deque": lambda: deque(range(1_000_000)),
    "set": lambda: set(range(1_000_000)),
    "list of another kind": lambda: UserList(range(1_000_000)),
    "texts": lambda: ["Oslo"] * 1_000_000,
    "mapping": lambda: {str(number): "Oslo" for number in range(1_000_000)},
    "numbers by name": lambda: {str(number): number for number in range(1_000_000)},
    "rows": lambda: [{"town": "Oslo", "rooms": number} for number in range(100_000)],
    "numbers behind a gap": lambda: [[None, *VECTOR_1536]] * 1_000,
    "lists": lambda: [["Oslo"] * 100] * 100_000,
    "list without end": Endless,
    "mapping without end": EndlessMapping,
    "iterator without end": count,
    "dataclass": lambda: Held(MATRIX),
    "model": lambda: Model(vectors=MATRIX),
}


def doubled(times):
    value: Any = "Oslo"
    for _ in range(times):
        value = [value, value]
    return value


LONG["one list in many places"] = lambda: doubled(40)
PRINTED = {
    "vectors of a mapping": lambda: dict.fromkeys(range(1_000), VECTOR_1536).values(),
    "items of a mapping": lambda: dict.fromkeys(range(300_000)).items(),
    "vectors of another mapping": lambda: UserDict(vectors=MATRIX).values(),
    "mappings in a chain": lambda: ChainMap({"vectors": MATRIX}, {}),
    "namespace": lambda: SimpleNamespace(vectors=MATRIX),
    "bytes": lambda: [b"0" * 10_000_000],
    "texts": lambda: ["\0" * 5_000_000, "\0" * 5_000_000],
    "texts of another kind": lambda: [Text("\0" * 5_000_000), Text("\0" * 5_000_000)],
    "bytes that may change": lambda: bytearray(10_000_000),
    "a long list in many places": lambda: [["Oslo"] * 19_000] * 1_000,
}


def parts_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + sum(map(parts_of, inner))


@pytest.fixture
def value(request):
    return request.param()


@pytest.fixture
def is_quick(value):
    leave_out_what_is_older()
    began = time.thread_time()
    yield
    taken_s = time.thread_time() - began
    assert taken_s < MOST_S * slower()


@pytest.mark.parametrize("value", VECTORS.values(), ids=VECTORS, indirect=True)
@pytest.mark.usefixtures("is_quick")
def test_a_vector_is_left_out_and_says_how_long_it_was(value):
    made = Walker().of({"page": 1, "vector": value})
    assert made["page"] == 1
    assert (made["vector"].kind, str(len(value)) in str(made["vector"])) == (VECTOR, True)
    assert Walker().facts({"page": 1, "vector": value})[0] == {"page": 1}
    assert clean_metadata({"page": 1, "vector": value}) == {"page": 1}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG, indirect=True)
@pytest.mark.usefixtures("is_quick")
def test_what_is_long_is_read_within_a_budget(value):
    walker = Walker()
    made = walker.of({"before": "Oslo", "value": value, "behind": {"town": "Oslo"}})
    assert (made["before"], made["behind"]) == ("Oslo", {"town": "Oslo"})
    assert parts_of(made) <= MOST_PARTS
    assert walker.taken_cut() == 0 or has_sign(made["value"])


def has_sign(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Opaque) or any(map(has_sign, parts))


@pytest.mark.parametrize("value", [*VECTORS.values(), *LONG.values()], ids=[*VECTORS, *LONG], indirect=True)
def test_reports_by_hand(value):
    keeper = Keeper()
    leave_out_what_is_older()
    with Recorder(keeper).start(query="Where?") as run:
        for report in (
            lambda: run.retrieved([{"id": "d1", "text": "In Oslo.", "metadata": {"page": 1, "vector": value}}]),
            lambda: run.used([{"id": "d1", "text": "In Oslo.", "vector": value}]),
            lambda: run.tool_called("look", arguments={"near": value}, result=value),
            lambda: run.failed(ValueError("bad", value)),
            lambda: run.feedback(1.0, comment=value),
            lambda: run.add_metadata({"vector": value}),
            lambda: run.answered(value),
        ):
            began = time.thread_time()
            report()
            taken_s = time.thread_time() - began
            assert taken_s < MOST_S or taken_s < MOST_S * slower()
        run.answered("In Oslo.")
    (passage,) = keeper.only.record.pool("retrieved")
    assert (passage.id, passage.text, passage.metadata["page"]) == ("d1", "In Oslo.", 1)
    assert keeper.only.record.answer == "In Oslo."


@pytest.mark.parametrize(
    "small", [["Oslo", 7], {"town": "Oslo"}, {1, 2}, Held(1), Model(vectors=1), ValueError("a")]
)
def test_a_small_value_is_shown_as_it_says_itself(small):
    assert within(small) is small
    assert told(small) == str(small)


@pytest.mark.parametrize("value", PRINTED.values(), ids=PRINTED, indirect=True)
@pytest.mark.usefixtures("is_quick")
def test_a_long_value_is_told_as_far_as_texts_are_read(value):
    assert 0 < len(told(value)) < 8 * MAX_REDACTED_CHARS
    assert 0 < len(told(ValueError(value))) < 8 * MAX_REDACTED_CHARS


@pytest.mark.parametrize("value", PRINTED.values(), ids=PRINTED, indirect=True)
@pytest.mark.usefixtures("is_quick")
def test_a_long_value_in_place_of_a_name(value):
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?", session=value) as run:
        run.tool_called(value, call_id=value)
        run.retrieved([{"id": value, "text": "In Oslo."}], source=value)
        run.answered("In Oslo.")
    assert keeper.only.record.answer == "In Oslo."


def test_a_list_that_holds_itself_is_no_vector():
    held: list[object] = []
    held.extend([held] * 60)
    assert not is_vector(held)


def test_an_object_that_writes_its_own_text_is_asked_for_it():
    assert told(Quiet(vectors=MATRIX)) == "quiet"


@pytest.mark.parametrize("holder", [Held(MATRIX), Model(vectors=MATRIX)])
def test_fields_that_a_text_hides_stay_hidden(holder):
    assert told(holder) == '{"vectors": "[1000 vectors]"}'
    assert str(copied([holder])[0]) == '{"vectors": "[1000 vectors]"}'


@pytest.mark.parametrize("row", [[7, "Oslo"] * 40, ["Oslo", *range(50)], list(range(32)), [None, 1.5] * 40])
def test_rows_and_short_lists_are_no_vectors(row):
    assert not is_vector(row)
    assert copied(row) == row


def test_vectors_beside_passages_leave_these():
    pairs = [("Passage.", VECTOR_1536)] * 100
    assert [text for text, _ in copied(pairs)] == ["Passage."] * 100


def test_a_mapping_that_another_thread_writes_into():
    written, is_over = {str(number): number for number in range(5_000)}, threading.Event()

    def write():
        for number in count():
            written[f"new {number}"] = written.pop(f"new {number - 50}", number)
            if is_over.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert all(len(first_items(written, most)) == most for most in (100, 4_000) for _ in range(200))
        assert all(len(copied(written)) >= 5_000 for _ in range(20))
    finally:
        is_over.set()
        thread.join()
