"""Metadata, tags and ratings hold the scalars that stores and applications use, each in one plain form."""

from __future__ import annotations

import datetime as dt
import ipaddress
import uuid
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

from ragtrace.capture import Recorder, internal_errors
from ragtrace.model import record_from_json, record_to_json
from ragtrace.text import MAX_METADATA_CHARS, clean_metadata
from tests.kept import Keeper


class Plan(Enum):
    GOLD = "gold"


class Tier(str, Enum):  # noqa: UP042 - a StrEnum's text is its value, this one's is not
    GOLD = "gold"


class Level(IntEnum):
    HIGH = 3


class ObjectId:
    """As a document database has them."""

    __slots__ = ("_hex",)

    def __init__(self, text: str) -> None:
        self._hex = text

    def __str__(self) -> str:
        return self._hex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectId) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)


class Unshowable(ObjectId):
    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError("no text")


class Customer:
    """An entity, and no value: two with the same fields are not the same one."""

    def __str__(self) -> str:
        return "Ada Lovelace"


UTC = dt.UTC
FORMS: list[tuple[Any, Any]] = [
    (uuid.UUID(int=3), "00000000-0000-0000-0000-000000000003"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
    (dt.time(3, 4), "03:04:00"),
    (dt.timedelta(days=2, seconds=5), "2 days, 0:00:05"),
    (Decimal("1.50"), "1.50"),
    (Fraction(1, 3), "1/3"),
    (Plan.GOLD, "gold"),
    (Tier.GOLD, "gold"),
    (Level.HIGH, 3),
    (PurePosixPath("/faq/a.pdf"), "/faq/a.pdf"),
    (ipaddress.ip_address("::1"), "::1"),
    (ObjectId("65a1"), "65a1"),
    (np.int64(7), 7),
    (np.uint8(7), 7),
    (np.uint64(2**64 - 1), "18446744073709551615"),
    (np.float32(0.5), 0.5),
    (np.float64(0.5), 0.5),
    (np.bool_(True), True),
    (np.str_("faq"), "faq"),
    (np.array(3), 3),
    (np.datetime64("2026-01-02T03:04:05.123456789"), "2026-01-02T03:04:05.123456789"),
    (np.timedelta64(5, "D"), "5 days"),
]
NONE = [
    None, float("nan"), np.float32("nan"), np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN"), b"bytes",
    np.bytes_(b"bytes"), 1j, np.complex64(1), object(), Customer(), Unshowable("x"), ValueError("x"), print, Plan, {"a": 1},
    np.array([1, 2]), range(3), memoryview(b"x"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "form"), FORMS, ids=lambda value: type(value).__name__)
def test_a_scalar_has_one_form(given: Any, form: Any) -> None:
    found = clean_metadata({"one": given, "some": [given]})
    assert found == {"one": form, "some": [form]}
    assert {type(found["one"]), type(found["some"][0])} == {type(form)}, "of an exact type, which encoders ask for"


@pytest.mark.parametrize("given", NONE, ids=lambda value: type(value).__name__)
def test_what_is_no_scalar_is_left_out(given: Any) -> None:
    assert clean_metadata({"odd": given, "odd ones": [given], "page": 3}) == {"page": 3}


def test_a_text_made_of_a_scalar_is_redacted_and_cut() -> None:
    path = PurePosixPath("/home/ada/" + "a" * 1_000)
    found = clean_metadata({"file": path, "files": [path]}, lambda text: text.replace("ada", "[name]"))
    assert found["file"].startswith("/home/[name]/")
    assert len(found["file"]) == MAX_METADATA_CHARS
    assert "ada" not in str(found)


def test_an_embedding_of_numpy_numbers_is_left_out() -> None:
    assert clean_metadata({"vector": [np.float32(0.5)] * 384, "page": 3}) == {"page": 3}


def test_all_that_takes_metadata_takes_them() -> None:
    keeper, before = Keeper(), internal_errors()
    names = tuple(f"m{n}" for n in range(len(FORMS)))
    meta = {name: given for name, (given, _) in zip(names, FORMS, strict=True)}
    forms = {name: form for name, (_, form) in zip(names, FORMS, strict=True)}
    recorder = Recorder(keeper, span_metadata=names)
    with recorder.start(query="Where?") as run:
        run.add_metadata(meta)
        run.add_tags([uuid.UUID(int=3), dt.date(2026, 1, 2), Plan.GOLD])  # type: ignore[list-item]
        run.feedback(np.float32(0.5))  # type: ignore[arg-type]
        run.retrieved([{"id": uuid.UUID(int=4), "text": "In Oslo.", "score": Decimal("0.5"), "metadata": meta}])
        run.retrieved([Document("In Bergen.", id="b", metadata=meta)])
        run.retrieved([NodeWithScore(node=TextNode(text="In Bodø.", id_="c", metadata=meta), score=0.5)])
        run.answered("In Oslo.")
    record = keeper.only.record
    assert record.metadata == forms
    assert record.tags == ("00000000-0000-0000-0000-000000000003", "2026-01-02", "gold")
    assert [one.value for one in record.feedback] == [0.5]
    passages = record.pool("retrieved")
    assert [passage.metadata for passage in passages] == [forms] * 3
    assert (passages[0].id, passages[0].score) == ("00000000-0000-0000-0000-000000000004", 0.5)
    assert record_from_json(record_to_json(record), fallback_id="r") == record
    assert internal_errors() == before
