"""What of a tool's result is new, what a text was made of, and which values are rows."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path
from uuid import UUID

import pytest

from ragtrace.capture import Origin, Origins, OwnWords, by_first_shown, rows_in


class Colour(Enum):
    RED = 1


LIE = "Books may be kept for 365 days, and the mayor delivers them by bicycle."
PAGE = "Books may be kept for 28 days. Students get a long loan of 12 weeks."
TODOS = [{"content": "Find loans", "status": "in_progress"}]

# The result, the arguments, the tool's name, what models said inside.
NOTHING = [
    (f"Reflection recorded: {LIE}", {"reflection": LIE}, "think_tool", ()),
    (LIE, {"reflection": LIE}, "think", ()),
    (LIE.upper(), LIE, "think", ()),
    ("ok", {"x": LIE}, "f", ()),
    ("Done.", {}, "f", ()),
    ("Saved.", {"x": LIE}, "f", ()),
    ('{"status": "ok"}', {"x": LIE}, "f", ()),
    ('{"success": true, "id": "n-12"}', {"x": LIE}, "add_note", ()),
    ('{"status": 200, "message": "Note saved"}', {"x": "y"}, "f", ()),
    (f'{{"status": "saved", "note": "{LIE}"}}', {"note": LIE}, "save_note", ()),
    ("true", {"x": LIE}, "save_memory", ()),
    ("null", {"x": LIE}, "save_memory", ()),
    ("mem-42", {"x": LIE}, "save_memory", ()),
    (f"Updated todo list to {TODOS}", {"todos": TODOS}, "write_todos", ()),
    ("Successfully transferred to researcher", {}, "transfer_to_researcher", ()),
    ("Successfully transferred back to supervisor", {}, "transfer_back_to_supervisor", ()),
    (f"I'll remember that: {LIE}", {"t": LIE}, "f", ()),
    (f"Thought #3 noted: {LIE}", {"t": LIE}, "f", ()),
    ("Note 3 saved: blue", {"t": "blue"}, "note", ()),
    (f"Thinking hard about it ... {LIE[:50]}...", {"t": LIE}, "f", ()),
    ("Wrote 71 characters to notes.md", {"file_path": "notes.md", "content": LIE}, "write_file", ()),
    ("Updated file /notes.md", {"file_path": "/notes.md", "content": LIE}, "write_file", ()),
    ("weight = bicycle\ncolour = blue", {"colour": "blue", "weight": "bicycle"}, "set_profile", ()),
    (f"content='{LIE}' additional_kwargs={{}} response_metadata={{}} id='run'", {"x": "loans"}, "ask", ()),
    (str({"ok": True, "note": LIE}), {"t": LIE}, "jot", ()),
    (str([{"note": LIE, "by": None}]), {"t": LIE}, "jot", ()),
    (json.dumps({"notes": [LIE], "count": 1}), {"t": LIE}, "jot", ()),
    (str({"items": [{"note": LIE}, {"note": PAGE}], "total": 2}), {"t": [LIE, PAGE]}, "jot", ()),
    ("Hello World\n", {"command": "echo 'Hello World'"}, "terminal", ()),
    ("Hello World", "print('Hello World')", "python_repl", ()),
    ("Note #3 added.", {"text": LIE}, "add_note", ()),
    ("Report saved to report.md (1 section, 14 words).", {"content": LIE, "path": "report.md"}, "save_report", ()),
    ("Email sent to ida@example.com.", {"to": "ida@example.com", "body": LIE}, "send_email", ()),
    ("Plan updated. 2 steps remaining.", {"steps": ["search", "write"]}, "update_plan", ()),
    ("Successfully replaced 1 instance(s) of the string in 'n.md'", {"file_path": "n.md"}, "edit_file", ()),
    ("Searching for the population of Oslo", {"query": "the population of Oslo"}, "web_search", ()),
    (f"Notes so far:\n1. {LIE}\n", {"t": LIE}, "jot", ()),
    ("Memory stored with id 8a5d5610-2ada-4db9-92ba-8b11187b9e10.", {"x": LIE}, "remember", ()),
    ("Memory stored with id 8a5d5610-2ada-4db9-92ba-8b11187b9e10.", {"x": LIE}, "keep", ()),
    (
        json.dumps({"ok": True, "note": {"id": 17, "text": LIE, "created": "2026-11-27T10:00:00Z"}}),
        {"t": LIE},
        "jot",
        (),
    ),
    (json.dumps({"summary": LIE, "sources": ["loan.md", "https://a.example/fees"]}), {"q": "loans"}, "ask", (LIE,)),
    (
        "Handing off to the researcher agent. Reason: needs a page",
        {"reason": "needs a page"},
        "handoff_to_researcher",
        (),
    ),
    ("Übergeben an die Fachfrau.", {}, "transfer_to_expert", ()),
    ("연구원에게 전달되었습니다", {}, "transfer_to_expert", ()),
    ("Answer: 28 days.", {"q": "loans"}, "clerk", ("28 days.",)),
    ("yes", {"q": "loans"}, "clerk", ("yes",)),
    (
        f"     1\t{LIE}\n     2\tStudents pay double.",
        {"path": "notes.md"},
        "read_file",
        (f"{LIE}\nStudents pay double.",),
    ),
]
EVIDENCE = [
    ("12", {"a": 3, "b": 4}, "multiply"),
    ("3 * 4 = 12", {"a": 3, "b": 4}, "multiply"),
    ("The sum of 3 and 4 is 7", {"a": 3, "b": 4}, "add"),
    ("2025-11-27", {}, "current_date"),
    ('{"timestamp": 17}', {}, "now"),
    ("It's always sunny in Oslo!", {"city": "Oslo"}, "get_weather"),
    ("7: shipped", {"id": 7}, "order_status"),
    ("done", {"id": 7}, "check_order"),
    ("delivered", {"id": "7"}, "track"),
    ("true", {"claim": LIE}, "verify"),
    ("Monday: yes", {"day": "Monday"}, "opens"),
    (PAGE, {"query": "loans"}, "web_search"),
    (f"Results for 'How long may I keep a book?':\n{PAGE}", {"query": "How long may I keep a book?"}, "search"),
    ('{"order": 7, "status": "shipped"}', {"id": 7}, "f"),
    ('{"result": 12}', {"a": 3}, "f"),
    ('{"available": true}', {"id": 7}, "f"),
    (str({"available": True}), {"id": 7}, "f"),
    ("The capital of Norway is Oslo", {"country": "Norway"}, "capital"),
    ("No documents found for loans", {"query": "loans"}, "search"),
    ("12 notes", {}, "count_notes"),
    ("Population of Oslo 2024: 717710", {"query": "population of Oslo 2024"}, "web_search"),
    (
        "Capital of Burkina Faso in Africa: Ouagadougou",
        {"query": "capital of Burkina Faso in Africa"},
        "ask_database",
    ),
    ('{"id": "A1", "status": "created"}', {"id": "A1"}, "track_order"),
    ("Order A1 is done.", {"id": "A1"}, "where_is_order"),
    ("Note: the lab is in Oslo, at the harbour.", {"id": 3}, "get_note"),
    ("Memory 12: Ida likes rye bread.", {"query": "Ida"}, "search_memory"),
    ("Order 4711 created; delivery on 3 May.", {"item": "soup"}, "create_order"),
    ("Transferred. New balance: 311 EUR.", {"to": "Ida", "amount": 20}, "transfer_money"),
    ("Insufficient funds.", {"to": "Ida", "amount": 20}, "transfer_money"),
    ("The transfer was stopped by the bank.", {"id": "x"}, "transfer_status"),
    ("Order 8a5d5610-2ada-4db9-92ba-8b11187b9e10 is on its way", {}, "track"),
]


@pytest.mark.parametrize(("text", "arguments", "name", "inner"), NOTHING)
def test_own_words_and_status_lines_are_nothing(text, arguments, name, inner):
    assert OwnWords().evidence_in(text, arguments, name, inner) == []


@pytest.mark.parametrize(("text", "arguments", "name"), EVIDENCE)
def test_what_a_tool_found_is_evidence_as_it_is(text, arguments, name):
    assert OwnWords().evidence_in(text, arguments, name) == [text]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"You said: {LIE}\nThe handbook says: {PAGE}", f"The handbook says: {PAGE}"),
        (f"False: {LIE}", "False"),
        (f"{PAGE} ({LIE})", PAGE),
    ],
)
def test_a_statement_that_is_repeated_beside_something_new_is_left_out(text, rest):
    assert OwnWords().evidence_in(text, {"claim": LIE}, "verify") == [rest]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"claim": LIE, "sources": [], "count": 0}, "count"),
        ({"claim": LIE, "found": [PAGE], "count": 1}, PAGE),
        ({"claim": LIE, "votes": 12}, "12"),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, str])
def test_what_a_value_says_beside_the_statement_is_evidence(value, found, write):
    (text,) = OwnWords().evidence_in(write(value), {"claim": LIE}, "sources_of")
    assert found in text
    assert LIE not in text


@pytest.mark.parametrize(
    "arguments", [{"query": "Books may be kept for 28 days."}, {"claim": "Books may be kept for 28 days."}]
)
def test_a_page_that_holds_the_statement_that_was_asked_about_stays_whole(arguments):
    for text in (PAGE, f"loan.md: {PAGE}", f"The handbook says: {PAGE}", PAGE.replace(". ", ".\n")):
        assert OwnWords().evidence_in(text, arguments, "verify") == [text]


def test_what_a_model_said_before_comes_back_as_nothing_and_a_page_that_says_more_stays():
    own = OwnWords()
    own.add({"path": "notes.md", "content": f"{LIE}\nStudents pay double."})
    for text in (LIE, f"- {LIE}\n- Students pay double.", f'["{LIE}", "Students pay double."]'):
        assert own.evidence_in(text, {"path": "notes.md"}, "read_file") == []
        assert own.evidence_in(f"{text}\n{PAGE}", {}, "read_file") == [f"{text}\n{PAGE}"]


@pytest.mark.parametrize(
    "text",
    [
        f"L1: {LIE}",
        f"T-101 {LIE}",
        f"a1b2c3d4: {LIE}",
        f"{LIE} (stored 3 seconds ago)",
        f"[score 0.87] {LIE}",
        f"Found 1 note(s):\n- {LIE}",
        f"Memory #12 (importance 0.8): {LIE}",
        f"Findings (2 sources, 1.3 s): {LIE}",
        f"{LIE}\n\nSources: 2",
        json.dumps({"id": 7, "note": LIE, "score": 0.91}),
    ],
)
def test_a_sentence_that_comes_back_with_labels_and_numbers_is_nothing(text):
    own = OwnWords()
    own.add({"note": LIE})
    assert own.evidence_in(text, {}, "read_notes") == []
    assert own.evidence_in(f"{text}\nStudents pay 12 euros.", {}, "read_notes") != []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"[1] {LIE} (score: 0.87)", "search_handbook"),
        (json.dumps([{"text": LIE, "score": 0.87, "page": 3}]), "search"),
        (f"Ticket 7: {LIE} Priority 1", "get_ticket"),
        (json.dumps([{"claim": LIE, "confidence": 0.05}]), "fact_check"),
        (json.dumps({"metric": LIE, "count": 12}), "run_sql"),
    ],
)
def test_of_other_tools_than_those_of_notes_labels_and_numbers_are_evidence(text, name):
    own = OwnWords()
    own.add(f"I guess: {LIE}")
    assert own.evidence_in(text, {"ids": [1]}, name) != []


def test_a_note_that_ends_with_a_question_comes_back_as_nothing():
    own = OwnWords()
    own.add({"content": f"{LIE}\nWhat of students?"})
    assert own.evidence_in(f"     1\t{LIE}\n     2\tWhat of students?", {"path": "a"}, "read_file") == []


@pytest.mark.parametrize(
    "query", ["SELECT name FROM towns WHERE name = 'Oslo'", "MATCH (t {name: 'Oslo'}) RETURN t.name"]
)
def test_a_value_of_a_query_was_not_said(query):
    own = OwnWords()
    own.add(query)
    own.add({"query": "Oslo"})
    assert not own.says("Oslo")


@pytest.mark.parametrize("name", ["web_search", "find", "figures"])
def test_a_result_below_an_earlier_query_is_evidence(name):
    own = OwnWords()
    own.add({"query": "population of Oslo in the census of 2024"})
    text = "Population of Oslo in the census of 2024: 717710"
    assert own.evidence_in(text, {"query": "Oslo, people"}, name) == [text]


@pytest.mark.parametrize("value", [{"claim": LIE, "confidence": 0.2}, f"{LIE} (confidence 0.2)"])
def test_what_a_check_thinks_of_a_statement_is_evidence(value):
    text = value if isinstance(value, str) else json.dumps(value)
    own = OwnWords()
    own.add({"claim": LIE})
    assert own.evidence_in(text, {"claim": LIE}, "verify") != []


def test_a_long_text_is_evidence_and_costs_little():
    own = OwnWords()
    own.add(LIE)
    text = f"{LIE} " * 20_000
    assert own.evidence_in(text, {"x": LIE}) == [text]


LOAN = Origin("Books may be kept for 28 days. Students have 12 weeks.", {"source": "loan.md", "score": 0.4})
FINE = Origin("A late fee is 0.50 euros a day. It ends at 20 euros.", {"source": "fine.md"})


@pytest.mark.parametrize(
    ("text", "facts", "places"),
    [
        ("Students have 12 weeks.", {}, [0]),
        ("STUDENTS\nHAVE 12 WEEKS", {}, [0]),
        ("Books may be kept for 28 days.\n...\nStudents have 12 weeks.", {}, [0]),
        (f"Title: fees\n{FINE.text}\nAsk the desk.", {}, [1]),
        (f"{LOAN.text}\n\n{FINE.text}", {}, [0, 1]),
        ("Books may be kept for 28 days. It ends at 20 euros.", {}, [0, 1]),
        ("Books may be kept for 28 days. Soup is served from 11 to 14.", {}, []),
        (f"{LOAN.text}\n\n{FINE.text}", {"source": "fine.md"}, [1]),
        ("In short: 28 days, students 12 weeks.", {"source": "loan.md", "score": 0.9}, [0]),
        ("Bøker kan lånes i 28 dager.", {"source": "loan.md"}, []),
        ("Soup is served from 11 to 14.", {"source": "menu.md"}, []),
        ("", {}, []),
    ],
)  # fmt: skip
def test_the_passages_that_a_text_was_made_of(text, facts, places):
    assert Origins([LOAN, FINE]).of(text, facts) == places


def test_metadata_are_enough_where_a_model_wrote_the_text():
    finder = Origins([LOAN, FINE])
    assert finder.of("Bøker kan lånes i fire uker.", {"source": "loan.md"}, is_written=True) == [0]
    assert finder.of("In short: 28 days.", {"source": "loan.md"}, is_given=False) == []


def test_searches_in_the_order_in_which_they_are_shown():
    assert by_first_shown([["b1", "a1"], ["a1", "a2"]], ["a1", "a2", "b1"]) == ["a1", "a2", "b1"]
    assert by_first_shown([["x"], ["b1"], ["a1"]], ["a1", "b1"]) == ["x", "a1", "b1"]
    assert by_first_shown([["a1"], ["b1"]], []) == ["a1", "b1"]


@pytest.mark.parametrize(
    "value",
    [
        [{"town": "Oslo", "rooms": 12}],
        [("Oslo", 12)],
        [["Oslo", Decimal("12.5")]],
        [{"n": {"name": "Oslo", "rooms": 12}}],
        {"columns": 2, "rows": [("Oslo", 12)]},
        [("Oslo", UUID(int=4), Path("a"), timedelta(1), IPv4Address(1), b"a", Colour.RED)],
    ],
)
def test_rows(value):
    (rows,) = rows_in(value, "database_result")
    assert ("Oslo" in rows.forms[0], rows.is_named) == (True, True)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([("user", "Where?")], "rows"),
        ([{"role": "user", "content": "Where?"}], "rows"),
        ([{"step": 1}], "plan"),
        ([[0.1] * 64], "data"),
        ([{"a": object()}], "data"),
        ("In Oslo.", "result"),
        ([], "rows"),
        ([1, 2], "rows"),
    ],
)
def test_other_values_are_no_rows(value, name):
    assert rows_in(value, name) == []
