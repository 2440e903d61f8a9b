"""The handbook and its questions are whole: every graded id exists, and the sizes are what the docs say."""

from __future__ import annotations

import pytest

from ragtrace.demo.handbook import handbook, questions, shuffled_questions

FORBIDDEN = ("http://", "https://", "/work", "TODO")


def test_passages_have_distinct_ids_and_a_readable_length() -> None:
    passages = handbook()
    assert len({passage.id for passage in passages}) == len(passages) >= 50
    lengths = {passage.id: len(passage.text.split()) for passage in passages}
    assert {name: n for name, n in lengths.items() if not 40 <= n <= 120} == {}


def test_passages_are_plain_prose() -> None:
    for passage in handbook():
        assert not any(mark in passage.text for mark in ("`", "```", "#", *FORBIDDEN)), passage.id
        assert passage.text.isascii(), passage.id


def test_at_least_45_distinct_questions_are_graded() -> None:
    graded = [question for question in questions() if question.grades]
    assert len({question.query for question in graded}) >= 45
    assert len({question.id for question in questions()}) == len(questions())


def test_every_graded_passage_exists_and_every_grade_is_on_the_scale() -> None:
    known = {passage.id for passage in handbook()}
    for question in questions():
        assert set(question.grades) <= known, question.id
        assert set(question.grades.values()) <= {2, 3, 4, 5}, question.id
        assert question.reference.strip(), question.id


def test_each_graded_question_has_a_passage_that_answers_it() -> None:
    for question in questions():
        if question.grades:
            assert max(question.grades.values()) >= 4, question.id


def test_the_label_universe_is_the_whole_handbook() -> None:
    labels = questions()[0].labels()
    assert set(labels) == {passage.id for passage in handbook()}
    assert set(labels.values()) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("seed", [0, 7])
def test_questions_come_round_by_round_in_an_order_of_the_seed(seed: int) -> None:
    size = len(questions())
    order = [question.id for question in shuffled_questions(3 * size, seed)]
    rounds = [order[start : start + size] for start in range(0, 3 * size, size)]
    assert all(sorted(part) == sorted(order[:size]) for part in rounds)
    assert rounds[0] != rounds[1]
    assert order == [question.id for question in shuffled_questions(3 * size, seed)]
    assert order != [question.id for question in shuffled_questions(3 * size, seed + 1)]
