"""The handbook and its questions are whole: every graded id exists, and the sizes are what the docs say."""

from __future__ import annotations

import pytest

from ragtrace.demo import questions, shuffled_questions
from ragtrace.demo.handbook import handbook

KNOWN = {passage.id for passage in handbook()}
GRADED = [question for question in questions() if question.grades]


def test_passages_are_plain_prose_of_a_readable_length() -> None:
    assert len(KNOWN) == len(handbook()) >= 50
    for passage in handbook():
        assert 40 <= len(passage.text.split()) <= 120, passage.id
        for mark in ("`", "#", "http://", "https://", "/work", "TODO"):
            assert mark not in passage.text, passage.id
        assert passage.text.isascii(), passage.id


def test_questions_are_distinct_and_each_graded_one_has_an_answering_passage() -> None:
    assert len({question.query for question in GRADED}) >= 45
    assert len({question.id for question in questions()}) == len(questions())
    for question in questions():
        assert set(question.grades) <= KNOWN, question.id
        assert set(question.grades.values()) <= {2, 3, 4, 5}, question.id
        assert question.reference.strip(), question.id
        assert not question.grades or max(question.grades.values()) >= 4, question.id


def test_the_labels_grade_the_whole_handbook() -> None:
    labels = questions()[0].labels()
    assert set(labels) == KNOWN
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
