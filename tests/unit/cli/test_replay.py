"""`ragtrace replay` says where capture read question, answer and evidence."""

from __future__ import annotations

from msgspec.structs import replace

from ragtrace.capture.events import Began, Event, Gave
from ragtrace.capture.recorded import RecordedRun, replayed
from ragtrace.cli.replay import _lines
from ragtrace.model.reading import Found, Reading, Sign

RUN = RecordedRun(
    "rag",
    1,
    [
        Event("chain", "0", name="ask", data=Began({"question": "Where is the lab?"})),
        Event("chain", "0", name="ask", ended_ns=2, data=Gave({"answer": "In Oslo."})),
    ],
    ended_ns=2,
)


def test_the_lines_of_the_preview_stand_under_one_label():
    found = replayed(RUN)
    sign = Sign("question_guessed", "input.body", declare='question="input.body"')
    reading = Reading(Found("input.body", "guess"), (Found("output.answer"),), signs=(sign,))
    lines = list(_lines(1, RUN, replace(found, record=replace(found.record, reading=reading))))
    at = lines.index("  read       question from input.body (guess); answer from output.answer")
    assert lines[at + 1] == "             evidence: none"
    assert lines[at + 2].startswith("             unsure: question_guessed: ")
    assert lines[at + 3].startswith("  question   Where is the lab? ")


def test_a_run_without_a_reading_has_no_such_line():
    found = replayed(RUN)
    lines = list(_lines(1, RUN, replace(found, record=replace(found.record, reading=None))))
    assert not [line for line in lines if line.startswith("  read ")]
