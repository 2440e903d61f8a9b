"""What of a tool's text is evidence: who said what first, and what a later reply says of it."""

from __future__ import annotations

import json

import pytest

from ragtrace.capture.own_words import FirstSpeakers, decide
from ragtrace.capture.words import tokens

LIE = "Books may be kept for 365 days, and the mayor delivers them by bicycle."
PAGE = "Books may be kept for 28 days. Students get a long loan of 12 weeks."
FOUND = "Students get a long loan of 12 weeks."
TODOS = [{"content": "Find loans", "status": "in_progress"}]
NOTE = {"note": LIE}


def kept(text, arguments, *, before=(), later=LIE):
    first = FirstSpeakers()
    for said in before:
        first.add("model", said)
    first.add("model", arguments)
    return decide(text, first.parts(text, arguments), frozenset(tokens(later)))


# Frames around what the call was given.
ECHOES = [
    (f"Reflection recorded: {LIE}", NOTE),
    (LIE.upper(), LIE),
    (f"Thought #3 noted: {LIE}", NOTE),
    (f'{{"status": "saved", "note": "{LIE}"}}', NOTE),
    (str({"ok": True, "note": LIE}), NOTE),
    (str([{"note": LIE, "by": None}]), NOTE),
    (json.dumps({"notes": [LIE], "count": 1}), NOTE),
    (str({"items": [{"note": LIE}, {"note": FOUND}], "total": 2}), {"notes": [LIE, FOUND]}),
    ("weight = bicycle\ncolour = blue", {"colour": "blue", "weight": "bicycle"}),
    ("Hello World\n", {"command": "echo 'Hello World'"}),
    ("Hello World", "print('Hello World')"),
    ("저장되었습니다: 대출은 일 년 동안 가능할 것 같습니다.", {"메모": "대출은 일 년 동안 가능할 것 같습니다."}),
    ("Мысль записана: Книги выдаются на целый год, я думаю.", {"текст": "Книги выдаются на целый год, я думаю."}),
    ("บันทึกแล้ว: ยืมหนังสือได้หนึ่งปีเต็ม", {"ข้อความ": "ยืมหนังสือได้หนึ่งปีเต็ม"}),
    ("Poznámka uložena: Knihy se půjčují na celý rok, myslím.", {"text": "Knihy se půjčují na celý rok, myslím."}),
]
# Three words or fewer, and no reply says them.
SHORT = ["ok", "Saved.", "mem-42", "true", "Note #3 added.", "Сохранено.", "저장했습니다", "已保存。"]
FOUND_TEXTS = [
    ("12", {"a": 3, "b": 4}),
    ("The sum of 3 and 4 is 7", {"a": 3, "b": 4}),
    ("2025-11-27", {}),
    ("It's always sunny in Oslo!", {"city": "Oslo"}),
    ("7: shipped", {"id": 7}),
    ("Monday: yes", {"day": "Monday"}),
    (PAGE, {"query": "loans"}),
    (f"Results for 'How long may I keep a book?':\n{PAGE}", {"query": "How long may I keep a book?"}),
    ('{"order": 7, "status": "shipped"}', {"id": 7}),
    ("The capital of Norway is Oslo", {"country": "Norway"}),
    ("Population of Oslo 2024: 717710", {"query": "population of Oslo 2024"}),
    ("Order 4711 created; delivery on 3 May.", {"item": "soup"}),
    ("Bibliotek lånetid: 28 dagar, studenter 12 veckor", {"query": "bibliotek lånetid"}),
    ("本の貸出期間は28日間です。学生は12週間です。", {"クエリ": "貸出期間"}),
]
# Receipts in more words: nothing tells them from what a tool found. They count, by guess.
RECEIPTS = [
    ("Report saved to report.md (1 section, 14 words).", {"content": LIE, "path": "report.md"}),
    (f"Updated todo list to {TODOS}", {"todos": TODOS}),
    ("Wrote 71 characters to notes.md", {"file_path": "notes.md", "content": LIE}),
]


@pytest.mark.parametrize(("text", "arguments"), ECHOES)
def test_what_the_call_was_given_is_the_models_in_any_frame(text, arguments):
    assert kept(text, arguments).evidence == ""


@pytest.mark.parametrize("text", SHORT)
def test_three_words_count_where_a_later_reply_says_them(text):
    assert [kept(text, NOTE, later=later).evidence for later in (LIE, f"It says: {text}")] == ["", text]


@pytest.mark.parametrize(("text", "arguments"), FOUND_TEXTS)
def test_what_a_tool_found_counts_as_it_is(text, arguments):
    assert kept(text, arguments, later=text) == (text, ())


@pytest.mark.parametrize(("text", "arguments"), RECEIPTS)
def test_a_receipt_of_four_words_counts(text, arguments):
    assert kept(text, arguments).evidence == text


@pytest.mark.parametrize(
    ("text", "evidence", "own"),
    [
        (f"You said: {LIE}\nThe handbook says: {FOUND}", f"The handbook says: {FOUND}", f"You said: {LIE}"),
        (f"{PAGE} ({LIE})", PAGE.replace(". ", ".\n"), f"({LIE})"),
        (json.dumps({"claim": LIE, "found": [FOUND], "count": 1}), f"{FOUND}\n1", LIE),
        (str({"claim": LIE, "found": [FOUND], "count": 1}), f"{FOUND}\n1", LIE),
        (f"Books may be kept for 365 days. {FOUND}", FOUND, "Books may be kept for 365 days."),
        (f"[0.87] {LIE} {FOUND}", FOUND, f"[0.87] {LIE}"),
    ],
)
def test_sentences_of_the_call_are_left_out_beside_others(text, evidence, own):
    assert kept(text, {"claim": LIE}, later="28 days, 12 weeks") == (evidence, (own,))


@pytest.mark.parametrize(
    ("text", "later", "is_evidence"),
    [
        (f"False: {LIE}", "That is false.", True),
        (f"False: {LIE}", LIE, False),
        (json.dumps({"claim": LIE, "votes": 12}), "It has 12 votes.", True),
        (json.dumps({"claim": LIE, "votes": 12}), LIE, False),
        ("Population of Oslo in the census of 2024: 717710", "It had 717710.", True),
        ("Population of Oslo in the census of 2024: 717710", "Nobody knows.", False),
    ],
)
def test_what_is_new_beside_a_statement_counts_where_a_later_reply_says_it(text, later, is_evidence):
    given = {"claim": LIE, "query": "population of Oslo in the census of 2024"}
    assert bool(kept(text, given, later=later).evidence) is is_evidence


@pytest.mark.parametrize(
    "text", [f"- {LIE}\n- Students pay double.", f'["{LIE}", "Students pay double."]', f"[score 0.87] {LIE}"]
)
def test_what_a_model_said_in_an_earlier_call_comes_back_as_nothing(text):
    before = [{"path": "notes.md", "content": f"{LIE}\nStudents pay double."}]
    assert kept(text, {"path": "notes.md"}, before=before).evidence == ""
    assert FOUND in kept(f"{text}\n{FOUND}", {}, before=before, later=FOUND).evidence


def test_what_a_source_said_first_stays_evidence_where_a_model_repeats_it():
    first = FirstSpeakers()
    first.add("evidence", PAGE)
    first.add("model", {"claim": PAGE})
    assert decide(PAGE, first.parts(PAGE, {"claim": PAGE}), frozenset(tokens(PAGE))) == (PAGE, ())
    assert not first.owns(PAGE)


def test_a_long_text_is_looked_at_in_part():
    assert kept(f"{LIE} " * 1_000, NOTE).evidence == ""
    assert kept(f"{LIE} " * 20_000, NOTE).evidence != ""


@pytest.mark.parametrize("rows", [10, 2_000, 8_000])
def test_all_of_a_long_text_counts_beside_a_statement(rows):
    text = "\n".join([LIE, *(f"Room {row} has {row % 9} chairs." for row in range(rows))])
    assert kept(text, NOTE, later="chairs").evidence == text.removeprefix(f"{LIE}\n")
