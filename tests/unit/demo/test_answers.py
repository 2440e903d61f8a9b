"""The offline writer and the incident repeat with a seed; search finds graded passages."""

from __future__ import annotations

from functools import cache

from ragtrace.demo.answers import REFUSAL, OfflineWriter, best_sentences, render_prompt
from ragtrace.demo.handbook import handbook, questions
from ragtrace.demo.incident import HURT_CHANNEL, INVENTING_SHARE, Incident, channel_of
from ragtrace.demo.search import rerank, search

TEXTS = {passage.id: passage.text for passage in handbook()}


@cache
def prompts() -> dict[str, str]:
    found = {}
    for question in questions():
        passages = rerank({"question": question.query, "candidates": search(question.query, 12)})
        found[question.id] = render_prompt(question.query, [(str(it.id), it.page_content) for it in passages])
    return found


def answers(seed: int) -> dict[str, str]:
    writer = OfflineWriter(seed)
    return {name: str(writer.write("", prompt).content) for name, prompt in prompts().items()}


def test_the_same_seed_gives_the_same_answers_and_another_seed_other_wording() -> None:
    assert answers(3) == answers(3) != answers(4)


def test_questions_that_the_handbook_does_not_answer_are_refused_and_few_others() -> None:
    refused = {name for name, text in answers(0).items() if text == REFUSAL}
    unanswerable = {question.id for question in questions() if not question.grades}
    assert unanswerable <= refused
    assert len(refused) <= len(unanswerable) + 2
    assert best_sentences("Which cheese goes well with red wine?", list(TEXTS.values())) == []


def test_the_incident_changes_about_its_share_and_repeats_with_the_seed() -> None:
    def said(**options: int | None) -> list[str]:
        incident = Incident(**options, seed=1)  # type: ignore[arg-type]
        return [incident.apply("In Oslo.", number) for number in range(1, 1001)]

    changed = said(first=1)
    assert changed == said(first=1)
    hurt = [text != "In Oslo." for n, text in enumerate(changed, start=1) if channel_of(n, seed=1) == HURT_CHANNEL]
    assert abs(sum(hurt) / len(hurt) - INVENTING_SHARE) < 0.05
    assert sum(hurt) == sum(text != "In Oslo." for text in changed)
    assert all(text.startswith("In Oslo.") for text in changed)
    assert set(said(first=None)) == set(said(first=1001)) == {"In Oslo."}


def test_search_finds_an_answering_passage_for_nine_questions_in_ten() -> None:
    graded = [question for question in questions() if question.grades]
    found = sum(
        any(question.grades.get(str(it.id), 1) >= 4 for it in search(question.query, 12)) for question in graded
    )
    assert found >= 0.9 * len(graded)
