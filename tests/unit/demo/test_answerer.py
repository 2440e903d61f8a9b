"""The offline answerer and the incident repeat with a seed; search finds graded passages."""

from __future__ import annotations

import random

from ragtrace.demo.answerer import REFUSAL, answer
from ragtrace.demo.handbook import handbook
from ragtrace.demo.invention import INVENTING_SHARE, Incident, invented
from ragtrace.demo.questions import questions
from ragtrace.demo.search import TermIndex
from ragtrace.demo.writers import OfflineWriter, rendered

TEXTS = {passage.id: passage.text for passage in handbook()}


def answers(seed: int) -> list[str]:
    writer = OfflineWriter(seed)
    found = []
    for question in questions():
        best = max(question.grades, key=lambda name: question.grades[name], default="sampling#weights")
        found.append(writer.write("", rendered(question.query, [(best, TEXTS[best])])).text)
    return found


def test_the_same_seed_gives_the_same_answers_and_another_seed_other_wording() -> None:
    assert answers(3) == answers(3)
    assert answers(3) != answers(4)


def test_answers_are_made_of_the_prompt() -> None:
    text = "The lab is in Oslo. It opens at nine. Lunch is served at noon."
    said = OfflineWriter(0).write("", rendered("Where is the lab?", [("faq", text)])).text
    assert "The lab is in Oslo." in said


def test_what_the_contexts_do_not_answer_is_declined() -> None:
    unanswerable = [question for question in questions() if not question.grades]
    assert unanswerable
    for question in unanswerable:
        assert answer(question.query, list(TEXTS.values()), random.Random(0)) == REFUSAL


def test_without_an_incident_and_before_it_answers_stay_as_they_are() -> None:
    assert all(Incident(first=None, seed=1).touch("In Oslo.", n) == "In Oslo." for n in range(1, 200))
    assert all(Incident(first=200, seed=1).touch("In Oslo.", n) == "In Oslo." for n in range(1, 200))


def test_the_incident_touches_about_its_share_and_repeats_with_the_seed() -> None:
    touched = [Incident(first=1, seed=1).touch("In Oslo.", n) for n in range(1, 1001)]
    assert touched == [Incident(first=1, seed=1).touch("In Oslo.", n) for n in range(1, 1001)]
    share = sum(said != "In Oslo." for said in touched) / 1000
    assert abs(share - INVENTING_SHARE) < 0.05
    assert all(said.startswith("In Oslo.") for said in touched)


def test_invented_names_stand_nowhere_in_the_handbook() -> None:
    everything = " ".join(TEXTS.values())
    words = {word.strip(".,") for seed in range(200) for word in invented(random.Random(seed)).split()}
    names = {word for word in words if word[:1].isupper() and word.lower() not in everything.lower()}
    assert {"Brightwater", "Halvorsen", "Meridian"} <= names


def test_search_finds_an_answering_passage_for_nine_questions_in_ten() -> None:
    index = TermIndex(handbook())
    graded = [question for question in questions() if question.grades]
    found = sum(
        any(question.grades.get(passage.id, 1) >= 4 for passage, _ in index.search(question.query, 12))
        for question in graded
    )
    assert found >= 0.9 * len(graded)
