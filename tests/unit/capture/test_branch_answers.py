"""Answers of branches that ran side by side: all are kept, and no score is made of them."""

from __future__ import annotations

import asyncio

import pytest

from ragtrace.capture import Recorder
from ragtrace.metrics import EvalContext, evaluate, select
from tests.kept import Keeper

ANSWERS = ["In Oslo.", "In Bergen."]


def answered(answers):
    keeper = Keeper()
    run = Recorder(keeper).start(query="Where?")
    run.retrieved([{"id": "d1", "text": "The lab is in Oslo."}])
    run.answered_by_branches(answers, model="m", usage=None)
    run.finish()
    return keeper.only.record


def test_the_order_of_branches_changes_nothing():
    one, other = answered(ANSWERS), answered(ANSWERS[::-1])
    assert one.answer == other.answer == "In Bergen.\n\nIn Oslo."
    assert one.lossy == other.lossy == {"several_answers": 2}


@pytest.mark.parametrize("metric", ["faithfulness", "no_answer", "answer_relevancy", "citations", "diagnosis"])
def test_scores_over_the_answer_are_na(metric):
    results = asyncio.run(evaluate(select([metric]), EvalContext(answered(ANSWERS))))
    assert {(one.state, one.reason) for one in results} == {("na", "several_answers")}


def test_one_answer_that_the_application_gives_later_stands():
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.answered_by_branches(ANSWERS, model=None, usage=None)
        run.answered("In Oslo.")
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.", {})
