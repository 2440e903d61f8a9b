"""Recorded events come back as they were, masked ones with nothing of the application's words."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.capture.events import Began, Event, Gave
from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import RecordedRun, head, lines_of, read_runs, replayed
from ragtrace.capture.values import Doc, Fields, Opaque, Prompt, Steer, Turn
from ragtrace.errors import InputError
from ragtrace.text import folded

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.dates() | st.times()
    | st.datetimes() | st.decimals(allow_nan=False) | st.binary()
)  # fmt: skip
NAMES = st.text() | st.integers() | st.none()


def _held(inner):
    return (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(NAMES, inner)
        | st.dictionaries(st.text(), inner).map(Fields)
        | st.builds(Doc, st.text(), st.none() | st.text(), st.dictionaries(st.text(), inner), st.integers(0, 9))
        | st.builds(Turn, st.text(), inner, st.lists(st.dictionaries(st.text(), inner)), artifact=inner)
        | st.builds(Steer, inner, inner, inner)
        | st.builds(Opaque, st.text(), st.text(), st.none() | st.text(), st.booleans())
        | st.builds(Prompt, st.lists(st.builds(Turn, st.text(), st.text())))
    )


VALUES = st.recursive(SCALARS, _held, max_leaves=12)


def again(value, masker=None):
    run = RecordedRun("rag", 1, [Event("chain", "0", data=Began(value))], ended_ns=2)
    (read,) = read_runs([head(is_masked=masker is not None), *lines_of(run, 1, masker)])
    return read.events[0].data.value


def kinds(value):
    """Return the types in a value, in its order."""
    if isinstance(value, dict):
        return type(value), [(type(key), kinds(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [kinds(part) for part in value]
    fields = getattr(value, "__struct_fields__", ())
    return type(value), [kinds(getattr(value, name)) for name in fields]


@given(VALUES)
def test_a_value_comes_back(value):
    found = again(value)
    assert found == value
    assert kinds(found) == kinds(value)


@given(VALUES)
def test_a_masked_value_can_be_read(value):
    found = again(value, Masker())
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value", [float("inf"), 1 << 70, "half \ud800", date(2026, 1, 2), time(8), Decimal("1.50")]
)
def test_an_odd_scalar_comes_back(value):
    assert again(value) == value


def test_a_number_that_is_none_comes_back():
    assert repr(again(float("nan"))) == "nan"


@pytest.mark.parametrize("masker", [None, Masker()], ids=["plain", "masked"])
def test_one_object_is_one_object_again(masker):
    documents, text = [Doc("The lab is in Oslo.")], str(b"In Oslo.", "ascii")
    other = str(b"In Oslo.", "ascii")
    found = again({"documents": documents, "kept": documents, "answer": text, "same": text, "equal": other}, masker)
    first, second, answer, same, equal = found.values()
    assert first is second
    assert answer is same
    assert equal == answer
    assert equal is not answer


def test_a_masked_date_is_a_date():
    assert type(again(datetime(2024, 2, 29, 8, tzinfo=UTC), Masker())) is datetime


def test_a_pair_of_a_role_and_a_text_keeps_its_role():
    ((role, text),) = again([("user", "Hello.")], Masker())
    assert (role, text != "Hello.") == ("user", True)


# -- masks --

WORDS = re.compile(r"[^\W\d_]{3,}")


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Z", "M"))))
def test_no_word_of_a_text_is_in_its_mask(text):
    said = {folded(word) for word in WORDS.findall(text) if word.isascii()}
    left = {folded(word) for word in WORDS.findall(Masker().text(text))}
    assert not said & left


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Caf\u00e9 Z\u00fcrich", "Cafe\u0301 Zu\u0308rich"),
        ("caf\u00e9", r"caf\u00e9"),
        ("caf\u00e9", "caf&eacute;"),
        ("\ufb01les", "files"),
        ("Oslo", "oslo"),
    ],
)
def test_one_word_in_two_forms_has_one_mask(text, other):
    masker = Masker()
    assert masker.text(text).lower() == masker.text(other).lower()


def test_a_passage_is_in_a_prompt_that_shows_it_as_json():
    masker, passage = Masker(), 'It says "Welcome",\nin C:\\new\\brochures, for 1234 guests.'
    prompt = json.dumps({"text": passage})
    assert json.loads(masker.text(prompt)) == {"text": masker.text(passage)}


@pytest.mark.parametrize("text", ["Is it? [1], (2); <think>", "\n\n- **", "28 [3][12] no", "(source) 1."])
def test_what_is_no_word_stays(text):
    assert re.sub(r"\w", "", Masker().text(text)) == re.sub(r"\w", "", text)


@pytest.mark.parametrize("name", ["question", "chat_history", "content_filter", "FinishReason.SAFETY", "messages"])
def test_a_name_that_a_rule_knows_stays(name):
    assert Masker().name(name) == name


@pytest.mark.parametrize("name", ["retrieved_docs", "save_note", "zanzibar_docs"])
def test_words_of_a_name_that_no_rule_knows_are_masked(name):
    masked = Masker().name(name)
    assert (len(masked), masked.index("_")) == (len(name), name.index("_"))
    assert not {*name.split("_")} & {*masked.split("_")}


def test_ids_stay_different():
    masker = Masker()
    names = [f"{letter}{number}" for letter in "abcdefghijklmnopqrstuvwxyz" for number in range(1_000)]
    assert len({masker.text(name) for name in names}) == len(names)


def test_numbers_keep_their_digits_and_scores_stay():
    found = again({"score": 0.81734, "year": 2026, "page": 3}, Masker())
    score, year, page = found.values()
    assert (score, len(str(year)), page) == (0.81734, 4, 3)


def test_two_files_have_two_masks():
    assert Masker().text("laboratory") != Masker().text("laboratory")


# -- files --

RUN = RecordedRun(
    "rag", 1, [Event("chain", "0", name="ask", started_ns=1, data=Began({"question": "Where is the lab?"})),
               Event("chain", "0", name="ask", started_ns=1, ended_ns=2, data=Gave({"answer": "In Oslo."}))],
    ended_ns=2,
)  # fmt: skip


def test_a_file_that_was_cut_is_read_up_to_its_last_whole_line():
    lines = [head(is_masked=False), *lines_of(RUN, 1), *lines_of(RUN, 2)]
    told = b"".join(lines)
    for end in range(len(told)):
        whole = told[:end].count(b"\n")
        runs = list(read_runs(told[:end].splitlines(keepends=True)))
        assert [run.is_whole for run in runs] == [True] * (whole > 4) + [False] * (1 < whole < 5 or whole > 5)


@pytest.mark.parametrize(
    "line", [b"{}\n", b"[1]\n", b"no\n", b'{"run":7,"event":1}\n', b'{"ragtrace":"events","format":99}\n']
)
def test_a_line_that_is_none_is_named_by_its_number(line):
    with pytest.raises(InputError, match=r"^3: "):
        list(read_runs([head(is_masked=False), b'{"run":1,"begin":{"workflow":"a","started_ns":1}}\n', line]))


def test_a_run_without_a_model_and_a_question_is_discarded():
    run = RecordedRun("rag", 1, [Event("end", ended_ns=2)], ended_ns=2)
    assert replayed(run) is None
