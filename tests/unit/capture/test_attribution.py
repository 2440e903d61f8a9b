"""Which passages an answer was made of, where a run asked its model several times."""

from __future__ import annotations

import json

import pytest

from ragtrace.capture import Recorder
from ragtrace.model import Message
from tests.kept import Keeper

TEXTS = (
    "Annual leave is granted in whole days and is asked for two weeks ahead.",
    "Travel expenses are paid back within thirty days of the journey's end.",
    "Laptops are encrypted and are never left in a car, locked or unlocked.",
    "The office in Bergen closes at four on Fridays from June until August.",
)
LEAVE = "Leave is asked for two weeks before it begins."
LAPTOPS = "Nobody leaves a laptop in a car."
ANSWER = "Ask for leave in time, and take your laptop with you."


def shown(*calls, answer=ANSWER, delivered=TEXTS, order=None):
    """Return the ids in the prompt set of a run with these calls, each a prompt and its reply."""
    return list(run_of(*calls, answer=answer, delivered=delivered, order=order).prompt_ids)


def run_of(*calls, answer=ANSWER, delivered=TEXTS, order=None):
    keeper = Keeper()
    with Recorder(keeper).start(query="What must I do?") as run:
        run.retrieved([{"id": f"p{n}", "text": text} for n, text in enumerate(delivered)])
        for prompt, _ in calls:
            run.add_prompt(prompt)
        for prompt, reply in [calls[n] for n in order] if order else calls:
            outputs = [Message(role="assistant", content=reply)]
            run.generated(inputs=[Message(role="user", content=prompt)], outputs=outputs)
        run.answered(answer)
    return keeper.runs[0]


def asked(*places):
    return "\n".join(TEXTS[place] for place in places)


WRITE = (f"Write:\n{LEAVE}\n{LAPTOPS}", ANSWER)
GRADES = [("Grade: " + text, "yes" if n == 2 else "no") for n, text in enumerate(TEXTS)]
REFUSAL = "I have not enough information to say that."
ASKS = f'Where you cannot tell, say "{REFUSAL}"\n'
OUTLINE = json.dumps({"titel": "Büro", "abschnitte": ["Frei in Urlaub", "Rechner unterwegs"]})
CHECK = f"Facts: {asked(0, 1, 2, 3)}\nClaim: {ANSWER}"
LONG = [f"{text} {other}" for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
TAKEN = [(f"Take out what matters:\n{text}", "" if n else TEXTS[3]) for n, text in enumerate(LONG)]
CASES = {
    "sections of several passages and a writer": (
        [(asked(0, 1), LEAVE), (asked(2, 3), LAPTOPS), WRITE], {}, [0, 1, 2, 3],
    ),
    "sections that ended in another order": ([(asked(0), LEAVE), (asked(2), LAPTOPS), WRITE], {"order": (1, 0, 2)}, [0, 2]),
    "sections that nobody wrote anew": (
        [(asked(0, 1), LEAVE), (asked(2), LAPTOPS), (asked(0, 1, 2, 3), "supported")],
        {"answer": f"{LEAVE}\n\n{LAPTOPS}"}, [0, 1, 2],
    ),
    "what a grader rejected": ([*GRADES, ("Use: " + TEXTS[2], ANSWER)], {}, [2]),
    "a ranking of all in one prompt": ([(asked(0, 1, 2, 3), "2,0"), (asked(2, 0), ANSWER)], {}, [2, 0]),
    "a check of the answer with all": ([(asked(0, 1), ANSWER), (CHECK, "supported")], {}, [0, 1]),
    "an answer of several lines in json": (
        [(asked(0, 1), "0"), (asked(0), f'{{"answer": "{LEAVE}\\nThe rule is called \\"two weeks\\"."}}')],
        {"answer": f'{LEAVE}\nThe rule is called "two weeks".'}, [0],
    ),
    "a summary out of json": (
        [(asked(0), f'{{"facts": ["{LEAVE}", "and so on"]}}'), (f"Combine:\n- {LEAVE}\n- and so on", ANSWER)], {}, [0],
    ),
    "a refined answer of a word": (
        [(asked(0), "p1"), (f"We have an existing answer: p1\nRefine it with {TEXTS[1]}", ANSWER)], {}, [0, 1],
    ),
    "two sources that say the same in a few words": (
        [(asked(0), "Two weeks."), (asked(1), "Two weeks."), ("Join:\nTwo weeks.\n\nTwo weeks.", ANSWER)], {}, [0, 1],
    ),
    "a grade of one word that stands in the last prompt": (
        [(asked(0), "relevant"), (asked(1), "relevant"), (f"Grade:\nrelevant\n{TEXTS[2]}", ANSWER)], {}, [2],
    ),
    "a refusal that every prompt asks for": (
        [(ASKS + asked(0, 1), REFUSAL), (ASKS + asked(2, 3), ANSWER)], {}, [2, 3],
    ),
    "a sentence taken out of a passage": ([*TAKEN, (f"Use: {TEXTS[3]}", ANSWER)], {"delivered": LONG[:3]}, [0]),
    "an answer with links in place of marks": (
        [(asked(0, 1), LEAVE), (asked(2), LAPTOPS), (f"Write:\n{LEAVE}\n{LAPTOPS}", "Parents have two weeks [1], and laptops three years [2, 3].")],
        {"answer": "Parents have two weeks https://a.example, and laptops three years [b](https://b.example)."}, [0, 1, 2],
    ),
    "no reply that leads to the answer": (
        [(TEXTS[0], "s1"), (TEXTS[1], "s2"), ("Title", "T")], {"answer": "Something else altogether."}, [0, 1],
    ),
    "parts of which a program cut the mark at the end": (
        [(asked(0), f"{LEAVE}FINISHED"), (asked(3), "Freitags schließt Bergen um vier. [ENDE]"), (asked(2), LAPTOPS)],
        {"answer": f"{LEAVE} Freitags schließt Bergen um vier. {LAPTOPS}"}, [0, 2, 3],
    ),
    "a draft of which nothing is left": (
        [(asked(1), "Reisen zahlt niemand."), (asked(0), f"{LEAVE}終"), (asked(2), LAPTOPS)],
        {"answer": f"{LEAVE} {LAPTOPS}"}, [0, 2],
    ),
    "an outline that is the answer": ([(asked(0, 3), OUTLINE), (asked(1), "ja")], {"answer": OUTLINE}, [0, 3]),
    "sections that say something": (
        [(asked(0, 3), json.dumps({"sections": [LEAVE, "Bergen"]})), (f"{LEAVE} {asked(1)}", ANSWER)], {}, [0, 1, 3],
    ),
    "a prompt of which a step keeps the beginning": (
        [(asked(0, 1, 2, 3), "0"), ("Use these: " + "filler " * 12_000 + TEXTS[1], ANSWER)], {}, [1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_prompts_that_led_to_the_answer_are_what_was_shown(name) -> None:
    calls, more, places = CASES[name]
    assert shown(*calls, **more) == [f"p{place}" for place in places]


def test_where_all_was_rejected_nothing_was_shown() -> None:
    run = run_of(*[("Grade: " + text, "no") for text in TEXTS], ("Nothing found.", ANSWER))
    assert (run.prompt_ids, [(sign.name, sign.about) for sign in run.record.signs]) == (
        (),
        [("evidence_unread", "prompt")],
    )


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f'Answer({{"answer": "{ANSWER}", "citations": [1]}})', id="a tool call"),
        pytest.param(f"<think>The first two say it.</think>\n{ANSWER}", id="behind its reasoning"),
        pytest.param(f"  {ANSWER}\n", id="with white space"),
    ],
)
def test_a_reply_that_holds_the_answer(reply) -> None:
    assert shown((asked(0, 1, 2, 3), "1, 2"), (asked(0, 1), reply)) == ["p0", "p1"]


@pytest.mark.parametrize("reply", ["42", "Final Answer: 42", '{"answer": "42"}'])
def test_a_short_answer(reply) -> None:
    assert shown(
        (asked(0, 1, 2, 3), "1, 42"), (asked(0), reply), ("Is 42 right?", "It is 42, yes"), answer="42"
    ) == ["p0"]


@pytest.mark.parametrize(
    ("replies", "last"),
    [
        pytest.param(("4", "5"), "Answer in 4 sentences, with 5 examples:\n", id="numbers in a sentence"),
        pytest.param(("yes", "yes"), "Are you sure?\nyes\n", id="a reply that two gave"),
        pytest.param(("relevant", "not it"), "relevant\n", id="a word of its own prompt"),
    ],
)
def test_a_short_reply_that_stands_elsewhere_by_chance(replies, last) -> None:
    calls = [(f"Is this relevant?\n{text}", reply) for text, reply in zip(TEXTS, replies, strict=False)]
    assert shown(*calls, (last + TEXTS[3], ANSWER)) == ["p3"]


@pytest.mark.parametrize("said", ["Friday.", "12 euros", "Two weeks."])
def test_an_agent_that_repeats_a_short_answer_of_its_tool(said) -> None:
    assert shown((asked(0), said), (f"Leave?\n{said}", said), answer=said) == ["p0"]


def test_a_passage_shown_in_two_parts() -> None:
    whole = "b" * 50 + " " + "e" * 50
    calls = (("x " + "b" * 50, LEAVE), ("e" * 50 + " y", LAPTOPS), (f"{LEAVE}\n{LAPTOPS}", ANSWER))
    assert [p.text for p in run_of(*calls, delivered=(whole,)).record.pool("used")] == [whole]
    cut = run_of(calls[0], calls[2], delivered=(whole,)).record.pool("used")
    assert [(p.text, p.truncated) for p in cut] == [("b" * 50, 101)]


LIBRARY = (
    "Books may be kept for 28 days.\nA long loan of 12 weeks exists for students of Oslo.",
    "A library card is free for residents, yes, also for those of Oslo.",
    "Group rooms hold 4 to 8 people and are booked online until 2012 or later.",
    "The caf\u00e9 P\u00e4rlan serves soup from 11 to 14, and no meat.",
)
# How the next prompt holds the answer of a sub-question.
HOLDING = {
    "a field": "Facts: {}. Answer in Swedish.",
    "a field, and more": "Known: {}, as the handbook says. Answer in Swedish.",
    "a line": "Sub question: How long?\nResponse: {}\nNow answer.",
    "a line of its own": "Facts:\n{}\nNow answer.",
    "an item": "Facts:\n- {}\n- nothing else\nNow answer.",
    "json": '{{"how long": "{}"}}\nNow answer.',
    "bold": "The handbook says **{}**. Now answer.",
    "a cell": "| how long | {} |\nNow answer.",
    "folded": "FACTS: {}. ANSWER IN SWEDISH.",
}


@pytest.mark.parametrize("holding", HOLDING)
@pytest.mark.parametrize("said", ["28 days.", "28 days", "12", "12.", "12 weeks", "students", "Oslo"])
def test_a_short_answer_of_a_sub_question(said, holding) -> None:
    """It is taken out of a passage, so that its own prompt holds it too."""
    last = HOLDING[holding].format(said.upper() if holding == "folded" else said)
    calls = [("How long? From:\n" + "\n".join(LIBRARY[:2]), said), (last, "Det \u00e4r s\u00e5.")]
    assert shown(*calls, answer="Det \u00e4r s\u00e5.", delivered=LIBRARY) == ["p0", "p1"]


@pytest.mark.parametrize(
    "shown_as",
    [
        "* Leave is asked for\n* two weeks before it begins",
        "LEAVE is asked for -- two weeks before it begins",
    ],
)
def test_a_reply_of_which_a_list_was_made_leads_back(shown_as) -> None:
    calls = [(asked(0), "Leave is asked for, two weeks before it begins."), (f"Write:\n{shown_as}", ANSWER)]
    assert shown(*calls) == ["p0"]


def test_a_reply_without_letters_leads_nowhere() -> None:
    assert shown((asked(0), "=" * 20), (f"Write:\n{asked(1)}", ANSWER)) == ["p1"]


def test_the_answer_of_an_agent_that_reasons_leads_back() -> None:
    said = f"Thought: I can answer without using any more tools. I'll use the user's language.\nAnswer: {LEAVE}"
    assert shown((asked(0), said), (f"Go on:\n{LEAVE}", ANSWER)) == ["p0"]


def test_a_reply_that_an_engine_cut_at_a_search_of_its_own_leads_back() -> None:
    said = f"{LEAVE[:-1]} [Search(When does it begin?)]."
    assert shown((asked(0), said), (f"Go on:\n{LEAVE[:-1]}", ANSWER)) == ["p0"]


@pytest.mark.parametrize("said", ["28 days.", "12", "Oslo"])
def test_two_sub_questions_with_the_same_short_answer(said) -> None:
    calls = [
        (f"From: {LIBRARY[0]}", said),
        (f"From: {LIBRARY[1]} {said} said somebody.", "8"),
        (f"By: {LIBRARY[0]}", said),
    ]
    last = f"1: {said}\n2: {said}\nNow answer.\n{LIBRARY[2]}"
    assert shown(*calls, (last, "Ja."), answer="Ja.", delivered=LIBRARY) == ["p0", "p2"]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("Is this relevant? Say yes or no.", "yes"),
        ("Is this relevant? Say Yes or No.", "Yes."),
        ("Is this relevant? Say YES or NO.", "no"),
        ("Rate from 1 to 5, where 4 is good.", "4"),
        ("Which city does the user ask for, in: Where is the soup of Oslo?", "Oslo"),
        ("Classify: rooms, soup or books.", "soup"),
    ],
)
@pytest.mark.parametrize("last", ["Grade: {}.\n", "- {}\n", '"{}"\n', "{}\n"])
def test_a_grade_leads_nowhere_though_a_passage_says_it(ask, said, last) -> None:
    calls = [(f"{ask}\n{LIBRARY[n]}", said if n else "nothing") for n in (0, 1, 3)]
    assert shown(*calls, (last.format(said) + LIBRARY[2], "Ja."), answer="Ja.", delivered=LIBRARY) == ["p2"]


@pytest.mark.parametrize("said", ["4", "8", "12"])
def test_a_number_that_only_a_passage_of_the_next_prompt_says(said) -> None:
    lines = ("Rooms:\n4\n8\n12", *LIBRARY[:2])
    calls = [("Rate it: " + LIBRARY[n], said) for n in (0,)]
    assert shown(*calls, ("Use:\n" + lines[0], "Ja."), answer="Ja.", delivered=lines) == ["p0"]


@pytest.mark.parametrize("said", ["\u516b\u6642", "\u516b\u6642\u3002"])
def test_a_short_answer_without_blanks(said) -> None:
    text = "\u6d77\u8fba\u306e\u30db\u30c6\u30eb\uff1a\u671d\u98df\u306f\u516b\u6642\u304b\u3089\u3067\u3059\u3002"
    calls = [
        (f"\u8cc7\u6599\uff1a{text}", said),
        (f"\u4e8b\u5b9f\uff1a{said}\u3002\u82f1\u8a9e\u3067\u3002", "At eight."),
    ]
    assert shown(*calls, answer="At eight.", delivered=[text, LIBRARY[0]]) == ["p0"]


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (((1, 9), (20, 40), (30, 50), (60, 70)), [0, 2, 1, 3]),
        (((1, 9), (10, 19), (20, 29), (30, 39)), [0, 1, 2, 3]),
        (((1, 40), (10, 50), (20, 60), (30, 70)), [2, 1, 0, 3]),
    ],
    ids=["two of four", "one after the other", "all"],
)
def test_only_what_was_searched_side_by_side_stands_as_the_prompt_has_it(times, order) -> None:
    keeper, prompt = Keeper(), asked(2, 1)
    with Recorder(keeper).start(query="What must I do?") as run:
        for place, (started_ns, ended_ns) in enumerate(times):
            found = [{"id": f"p{place}", "text": TEXTS[place]}]
            run.retrieved(found, started_ns=started_ns, ended_ns=ended_ns)
        run.add_prompt(prompt)
        run.answered(ANSWER)
    assert [one.id for one in keeper.runs[0].record.pool("retrieved")] == [f"p{place}" for place in order]
