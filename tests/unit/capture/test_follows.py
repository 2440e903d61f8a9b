"""Runs that belong to another run: checks of an answer, and what is none."""

from __future__ import annotations

import gc

import pytest

from ragtrace.capture.follows import MOST_ANSWERS, Before, Root, followed
from tests.public.texts import TEXTS

ANSWER = "The oldest pike of the lake reached 33 years, while most of them live for eleven years at best."
QUESTION = "How old does a pike get?"
PIKE = Root("pike", QUESTION, ANSWER, [QUESTION])
GERMAN = Root(
    "saal",
    "Gibt es einen Lesesaal?",
    "Ja, im zweiten Stock liegt ein Lesesaal mit vierzig Plätzen, der auf den Hof hinausgeht.",
)
JAPANESE = Root("本", "本は何日借りられますか。", "貸出期間は四週間で、予約がなければ二回まで延長できます。")
KOREAN = Root(
    "책",
    "책을 얼마나 빌릴 수 있나요?",
    "책은 사 주 동안 빌릴 수 있고 예약이 없으면 두 번까지 더 연장할 수 있습니다.",
)

FOLLOWERS = [
    (
        "an English grader, a bare model",
        PIKE,
        Root(
            "x",
            f"Grade from 1 to 5 how well this is put.\n\n{ANSWER}\n\nGrade:",
            "4",
            [f"Grade from 1 to 5 how well this is put.\n\n{ANSWER}\n\nGrade:"],
            is_alone=True,
        ),
    ),
    (
        "a German grader, with the question of the run",
        GERMAN,
        Root("x", GERMAN.question, "ja", [GERMAN.question, GERMAN.answer], is_alone=True),
    ),
    (
        "a Japanese grader without a question",
        JAPANESE,
        Root("x", "", "はい", [f"次の回答を採点してください。\n回答: {JAPANESE.answer}\n点数:"], is_alone=True),
    ),
    (
        "a Korean grader without a question",
        KOREAN,
        Root("x", " ", "5점", [KOREAN.answer, "이 답이 질문에 맞습니까?"], is_alone=True),
    ),
    (
        "a support check that is given documents and the answer",
        PIKE,
        Root("x", "", "yes", [TEXTS["pike"], TEXTS["pike_average"], ANSWER], is_alone=True),
    ),
    (
        "a check of a short answer",
        Root("short", "Who built the mole?", "Convicts built it."),
        Root("x", "", "supported", ["Claim: convicts built it. Say whether the notes hold it."], is_alone=True),
    ),
    (
        "an answer that was wrapped and shortened",
        PIKE,
        Root(
            "x",
            "",
            "0.7",
            ["> The oldest pike of the lake\n> reached 33 years, while most of them [...]"],
            is_alone=True,
        ),
    ),
]

OTHERS = [
    (
        "a translation of the answer, which is asked anew",
        PIKE,
        Root(
            "x",
            "How would a Dane say that?",
            "Den ældste gedde ...",
            [ANSWER, "How would a Dane say that?"],
            is_alone=True,
        ),
    ),
    (
        "a second question that quotes a part of the answer",
        PIKE,
        Root(
            "x",
            "You say the oldest pike of the lake was 33. Who has counted its rings, and when was it caught?",
            "A warden.",
            ["You say the oldest pike of the lake was 33. Who has counted its rings, and when was it caught?"],
            is_alone=True,
        ),
    ),
    ("a root that searched", PIKE, Root("x", "", "yes", [ANSWER])),
    ("a root that was given nothing", PIKE, Root("x", "", "yes", [], is_alone=True)),
    ("another chat", PIKE, Root("x", "Sing something.", "La la la.", ["Sing something."], is_alone=True)),
    (
        "an answer of two words",
        Root("two", "Until when does it run?", "Until midnight."),
        Root("x", "", "yes", ["The tram runs until midnight."], is_alone=True),
    ),
    (
        "an answer of five signs",
        Root("五", "何時ですか。", "二階です。"),
        Root("x", "", "はい", ["二階ですから、階段を使ってください。"], is_alone=True),
    ),
]


def after(*roots: Root) -> Before:
    before = Before()
    for root in roots:
        before.add(root, followed(root, before))
    return before


@pytest.mark.parametrize(("earlier", "root"), [case[1:] for case in FOLLOWERS], ids=[case[0] for case in FOLLOWERS])
def test_a_root_follows_the_run_whose_answer_it_was_given(earlier: Root, root: Root) -> None:
    assert followed(root, after(earlier)) == earlier.trace_id


@pytest.mark.parametrize(("earlier", "root"), [case[1:] for case in OTHERS], ids=[case[0] for case in OTHERS])
def test_a_root_that_asks_something_new_follows_none(earlier: Root, root: Root) -> None:
    assert followed(root, after(earlier)) is None


def test_of_several_runs_the_latest_is_followed() -> None:
    before = after(PIKE, PIKE._replace(trace_id="again"), GERMAN)
    assert followed(FOLLOWERS[0][2], before) == "again"


def test_who_is_given_the_words_of_a_check_follows_the_run_that_was_checked() -> None:
    words = "Each sentence of it stands in one of the two notes, so that I would call it well founded."
    check = Root("check", "", words, [TEXTS["pike"], ANSWER], is_alone=True)
    before = after(PIKE, check)
    assert followed(Root("x", "", "yes", [f"Is this check fair? {words}"], is_alone=True), before) == "pike"


def test_a_chat_follows_no_other_chat() -> None:
    chats = [
        Root(
            "c1",
            "Tell me of the storm at the pier.",
            "It took nine buoys off their chains.",
            ["Tell me of the storm at the pier."],
            is_alone=True,
        ),
        Root(
            "c2",
            "Sing of the herring in spring.",
            "They come in April, they go in May.",
            ["Sing of the herring in spring."],
            is_alone=True,
        ),
    ]
    assert followed(chats[1], after(chats[0])) is None
    talk = "\n".join(text for chat in chats for text in (chat.question, chat.answer))
    third = Root("c3", "And then what came?", "Ice.", [talk, "And then what came?"], is_alone=True)
    assert followed(third, after(*chats)) is None


def test_at_most_256_answers_are_kept() -> None:
    before = after(
        PIKE,
        *[
            Root(f"r{number}", f"Question {number}?", f"Answer {number} is one of the many.")
            for number in range(255)
        ],
    )
    assert len(before) == MOST_ANSWERS
    assert followed(FOLLOWERS[0][2], before) == "pike"
    before.add(Root("last", "Where?", "At the end of the pier."))
    assert len(before) == MOST_ANSWERS
    assert followed(FOLLOWERS[0][2], before) is None
    assert followed(Root("x", "", "", ["It is at the end of the pier, they say."], is_alone=True), before) == "last"


def test_no_text_is_kept() -> None:
    before = after(PIKE, GERMAN)
    seen: set[int] = set()
    todo: list[object] = [before]
    texts = set()
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        if isinstance(one, str):
            texts.add(one)
        todo.extend(gc.get_referents(one))
    assert {"pike", "saal"} <= texts
    assert not [text for text in texts if len(text) > 20 or " " in text]


def test_a_long_answer_is_known_by_its_beginning() -> None:
    words = " ".join(f"word{number}" for number in range(40_000))
    before = after(Root("long", "All?", words))
    assert followed(Root("x", "", "", [words], is_alone=True), before) == "long"
    assert len(before._numbers) == 1_024
