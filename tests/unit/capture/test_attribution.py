"""Which passages an answer was made of, where a run asked its model several times."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder
from ragtrace.model import Message
from tests.unit.capture.test_recorder import Keeper

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


def test_sections_of_several_passages_and_a_writer() -> None:
    assert shown((asked(0, 1), LEAVE), (asked(2, 3), LAPTOPS), (f"Write:\n{LEAVE}\n{LAPTOPS}", ANSWER)) == [
        "p0", "p1", "p2", "p3",
    ]  # fmt: skip


def test_sections_that_ended_in_another_order() -> None:
    calls = ((asked(0), LEAVE), (asked(2), LAPTOPS), (f"Write:\n{LEAVE}\n{LAPTOPS}", ANSWER))
    assert shown(*calls, order=(1, 0, 2)) == ["p0", "p2"]


def test_sections_that_nobody_wrote_anew() -> None:
    calls = ((asked(0, 1), LEAVE), (asked(2), LAPTOPS), (asked(0, 1, 2, 3), "supported"))
    assert shown(*calls, answer=f"{LEAVE}\n\n{LAPTOPS}") == ["p0", "p1", "p2"]


def test_what_a_grader_rejected_was_not_shown() -> None:
    grades = [("Grade: " + text, "yes" if n == 2 else "no") for n, text in enumerate(TEXTS)]
    assert shown(*grades, ("Use: " + TEXTS[2], ANSWER)) == ["p2"]


def test_where_all_was_rejected_nothing_was_shown() -> None:
    run = run_of(*[("Grade: " + text, "no") for text in TEXTS], ("Nothing found.", ANSWER))
    assert (run.prompt_ids, run.record.lossy) == ((), {"prompt_unmatched": 4})


def test_a_ranking_of_all_in_one_prompt() -> None:
    assert shown((asked(0, 1, 2, 3), "2,0"), (asked(2, 0), ANSWER)) == ["p2", "p0"]


def test_a_check_of_the_answer_with_all() -> None:
    calls = ((asked(0, 1), ANSWER), (f"Facts: {asked(0, 1, 2, 3)}\nClaim: {ANSWER}", "supported"))
    assert shown(*calls) == ["p0", "p1"]


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


def test_an_answer_of_several_lines_in_json() -> None:
    answer = f'{LEAVE}\nThe rule is called "two weeks".'
    reply = f'{{"answer": "{LEAVE}\\nThe rule is called \\"two weeks\\"."}}'
    assert shown((asked(0, 1), "0"), (asked(0), reply), answer=answer) == ["p0"]


@pytest.mark.parametrize("reply", ["42", "Final Answer: 42", '{"answer": "42"}'])
def test_a_short_answer(reply) -> None:
    assert shown(
        (asked(0, 1, 2, 3), "1, 42"), (asked(0), reply), ("Is 42 right?", "It is 42, yes"), answer="42"
    ) == ["p0"]


def test_a_summary_out_of_json() -> None:
    facts = f'{{"facts": ["{LEAVE}", "and so on"]}}'
    assert shown((asked(0), facts), (f"Combine:\n- {LEAVE}\n- and so on", ANSWER)) == ["p0"]


def test_a_refined_answer_of_a_word() -> None:
    second = f"We have an existing answer: p1\nRefine it with {TEXTS[1]}"
    assert shown((asked(0), "p1"), (second, ANSWER)) == ["p0", "p1"]


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


def test_two_sources_that_say_the_same_in_a_few_words() -> None:
    calls = ((asked(0), "Two weeks."), (asked(1), "Two weeks."), ("Join:\nTwo weeks.\n\nTwo weeks.", ANSWER))
    assert shown(*calls) == ["p0", "p1"]


def test_a_grade_of_one_word_that_stands_in_the_last_prompt() -> None:
    calls = ((asked(0), "relevant"), (asked(1), "relevant"), (f"Grade:\nrelevant\n{TEXTS[2]}", ANSWER))
    assert shown(*calls) == ["p2"]


def test_a_refusal_that_every_prompt_asks_for_is_no_draft() -> None:
    refusal = "I have not enough information to say that."
    asks = f'Where you cannot tell, say "{refusal}"\n'
    assert shown((asks + asked(0, 1), refusal), (asks + asked(2, 3), ANSWER)) == ["p2", "p3"]


def test_a_sentence_taken_out_of_a_passage_leads_back_to_it() -> None:
    long = [f"{text} {other}" for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    calls = [(f"Take out what matters:\n{text}", "" if n else TEXTS[3]) for n, text in enumerate(long)]
    assert shown(*calls, (f"Use: {TEXTS[3]}", ANSWER), delivered=long[:3]) == ["p0"]


def test_where_no_reply_leads_to_the_answer_the_prompts_tell() -> None:
    assert shown((TEXTS[0], "s1"), (TEXTS[1], "s2"), ("Title", "T"), answer="Something else altogether.") == [
        "p0", "p1",
    ]  # fmt: skip


def test_a_passage_shown_in_two_parts() -> None:
    whole = "b" * 50 + " " + "e" * 50
    calls = (("x " + "b" * 50, LEAVE), ("e" * 50 + " y", LAPTOPS), (f"{LEAVE}\n{LAPTOPS}", ANSWER))
    assert [p.text for p in run_of(*calls, delivered=(whole,)).record.pool("used")] == [whole]
    cut = run_of(calls[0], calls[2], delivered=(whole,)).record.pool("used")
    assert [(p.text, p.truncated) for p in cut] == [("b" * 50, 101)]


def test_a_prompt_of_which_a_step_keeps_the_beginning() -> None:
    calls = ((asked(0, 1, 2, 3), "0"), ("Use these: " + "filler " * 12_000 + TEXTS[1], ANSWER))
    assert shown(*calls) == ["p1"]
