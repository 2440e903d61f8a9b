"""Redaction of events, and of what a person reports: what was different stays so, and words of the protocol stay."""

from __future__ import annotations

import re

import pytest

from ragtrace.capture import Recorder
from ragtrace.capture.content_blocks import content_text
from ragtrace.capture.events import Asked, Ended, Event, Gave, Redactor, Said, Sought, shed
from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import RecordedRun, head, lines_of, read_runs
from ragtrace.capture.values import Doc, Redacted, Turn, identity_of
from tests.kept import Keeper, ids
from tests.unit.capture.test_events import Story


def no_digits(text):
    return re.sub(r"\d", "#", text)


def no_letters(text):
    return re.sub(r"\w", "#", text)


def redacted(data, redact=no_letters, kind="chain"):
    return Redactor(redact).event(Event(kind, data=data, ended_ns=1)).data


def test_passages_that_a_person_reports():
    keeper = Keeper()
    with Recorder(keeper, redact=no_digits).start(query="Where?") as run:
        run.retrieved([f"Room {i} is free." for i in range(4)])
        run.reranked(["Room 2 is free.", "Room 1 is free."])
        run.answered("Room 2.")
    found = ids(keeper.only, "retrieved")
    assert len(set(found)) == 4
    assert ids(keeper.only, "reranked") == [found[2], found[1]]


def test_a_person_and_an_integration_give_a_passage_the_same_id():
    text = "Room 2 is free."
    told, keeper = Story(redact=no_digits), Keeper()
    told.ends(told.begins("search", Sought("?"), "plan"), [Doc(text), Doc("Room 3 is free.")])
    with Recorder(keeper, redact=no_digits).start(query="Where?") as run:
        run.retrieved([text])
    assert ids(told.ended(), "retrieved")[0] == ids(keeper.only, "retrieved")[0]


def test_another_form_of_unicode_is_the_same_passage():
    told = Story(redact=no_digits)
    told.ends(told.begins("search", Sought("?"), "plan"), [Doc("Zürich 1"), Doc("Zürich 2")])
    told.step([Doc("Zu\u0308rich 1"), Doc("Zu\u0308rich 2")], [Doc("Zu\u0308rich 2")])
    told.asks("Use: Zürich 2")
    run = told.ended()
    assert len(ids(run, "retrieved")) == 2
    assert ids(run, "reranked") == ids(run, "retrieved")[1:]


def test_passages_that_lost_their_texts_stay_apart():
    events = [Event("search", data=[Doc("Room 1"), Doc("Room 2")], ended_ns=1)]
    made = [Redactor(no_digits).event(event) for event in events]
    names = [identity_of(doc.text) for doc in made[0].data]
    assert shed([*made, Event("model", data=Asked([Turn("user", "x" * 999)]))], 0).passages == 2
    assert [doc.id for doc in made[0].data] == names
    assert len(set(names)) == 2


def test_a_text_that_nothing_was_taken_out_of_is_none_of_ours():
    assert type(redacted(Gave("Where?"), no_digits).value) is str
    assert type(redacted(Gave("Room 2"), no_digits).value) is Redacted


def test_a_key_says_nothing_of_the_text():
    first, again, other = (redacted(Gave(text), no_digits).value for text in ("Room 2", "Room 2", "Room 3"))
    assert first == other == "Room #"
    assert (identity_of(first) == identity_of(again), identity_of(first) == identity_of(other)) == (True, False)
    assert "2" not in repr(first)


def test_no_original_is_kept_once_the_run_has_ended():
    redactor = Redactor(no_digits)
    redactor.event(Event("chain", data=Gave("Room 2", is_streamed=True), ended_ns=1))
    redactor.event(Event("model", data=Said([Turn("assistant", "Room 2 is free.")]), ended_ns=1))
    redactor.event(Event("end", ended_ns=1))
    assert "Room 2" not in repr(vars(redactor))


@pytest.mark.parametrize("outcome", [None, "partial", "interrupted"])
def test_what_a_framework_tells_of_the_end(outcome):
    ended = redacted(Ended(outcome, "In Oslo.", ("In Oslo.",), "Sure?"), kind="end")
    assert ended == Ended(outcome, "## ####.", ("## ####.",), "####?")


def test_an_outcome_is_no_text():
    assert redacted("partial", kind="end") == "partial"


BLOCKS = [
    {"type": "text", "text": "Hi"},
    {"type": "thinking", "thinking": "Hm"},
    {"type": "search_result", "title": "Labs", "source": "s", "content": [{"type": "text", "text": "In Oslo."}]},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "In Oslo."}},
    {"type": "refusal", "refusal": "No"},
    {"type": "tool_result", "content": "In Oslo."},
    {"type": "web_search_call", "id": "w1"},
    {"type": "image_url", "picture": "picture:eef0aa760531f96a"},
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["type"])
def test_a_block_reads_as_before_with_its_texts_redacted(block):
    made = redacted(Gave([block])).value
    words = ("Labs", "In Oslo.", "Hi", "No")
    want = content_text([block], is_prompt=True)
    for word in words:
        want = want.replace(word, no_letters(word))
    assert content_text(made, is_prompt=True) == want


def test_a_word_of_the_protocol_elsewhere_is_a_text():
    made = redacted(Gave({"type": "Ada", "role": "Ada", "text": "text", "kind": "text"})).value
    assert made == {"type": "###", "role": "###", "text": "####", "kind": "####"}


def test_ids_of_calls_stay():
    made = redacted(Gave({"role": "tool", "tool_call_id": "call_1", "content": "In Oslo."})).value
    assert made == {"role": "tool", "tool_call_id": "call_1", "content": "## ####."}


@pytest.mark.parametrize("fuses", ["all", "several", "always"])
def test_how_a_search_joins_its_inner_ones_is_no_text(fuses):
    assert redacted(Sought("Where?", fuses=fuses), kind="search").fuses == fuses


def test_a_redacted_text_of_a_step_that_a_prompt_shows_is_unread():
    told = Story(redact=no_digits)
    text = "The lab is in Oslo, near the station, on the second floor, behind the door 12."
    told.step(None, {"found": text}, "gather")
    told.asks(f"Use: {text}")
    record = told.ended().record
    (sign,) = record.signs
    assert (record.contexts, sign.name, sign.about) == ((), "evidence_unread", "gather.found")
    assert "12" not in sign.text


@pytest.mark.parametrize("masker", [None, Masker()], ids=["plain", "masked"])
def test_a_recorded_run_tells_them_apart_too(masker):
    found = [Doc("Room 1 is free."), Doc("Room 2 is free."), Doc("Room 1 is free.")]
    event = Redactor(no_digits).event(Event("search", "1", data=found, ended_ns=1))
    run = RecordedRun("w", 1, [event, event])
    (read,) = read_runs([head(is_masked=masker is not None), *lines_of(run, 1, masker)])
    marks = [[identity_of(doc.text) for doc in one.data] for one in read.events]
    assert marks[0] == marks[1] == [identity_of(doc.text) for doc in event.data]
    assert len(set(marks[0])) == 2
    assert read.events[0].data is read.events[1].data
