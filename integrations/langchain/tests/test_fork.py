"""A process that forks while runs are open: they are its own, and not its child's."""

from __future__ import annotations

import os

import pytest
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Faq, chat, lcel, shown
from tests.kept import ANSWER, kinds

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_a_child(check):
    """Return what a forked child's check returned, 9 where it failed."""
    child = os.fork()
    if child == 0:
        status = 9
        try:
            status = check()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_step_that_a_child_goes_on_with_is_the_parent_s(keeper, recorder, handler, config):
    def ask(question):
        found = Faq().invoke(question)

        def goes_on():
            chat().invoke(shown(found))
            lcel().invoke("Inside?")
            return len(keeper.runs) + len(handler._runs)

        assert in_a_child(goes_on) == 0
        return chat().invoke(shown(found)).content

    RunnableLambda(ask).invoke("Where?", config)
    assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "chat"])


def test_a_chain_whose_end_parent_and_child_reach_is_one_run(keeper, handler, config):
    parent, children = os.getpid(), []

    def ask(question):
        found = Faq().invoke(question)
        children.append(os.fork())
        return chat().invoke(shown(found)).content

    status = 9
    try:
        RunnableLambda(ask).invoke("Where?", config)
        status = len(keeper.runs) + len(handler._runs)
    finally:
        if os.getpid() != parent:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert keeper.only.record.answer == ANSWER


def test_a_stream_that_parent_and_child_read_is_the_parent_s_run(keeper, config, handler):
    stream = lcel().stream("Where?", config)
    first = next(stream)

    def reads_on():
        read = first + "".join(stream)
        lcel().invoke("Here?", config)
        said = [run.record.query for run in keeper.runs]
        return 0 if (read, said, len(handler._runs)) == (ANSWER, ["Here?"], 0) else 2

    assert in_a_child(reads_on) == 0
    assert first + "".join(stream) == ANSWER
    assert keeper.only.record.query == "Where?"


def test_a_child_of_an_application_s_own_run_asks_on(keeper, recorder, config):
    with recorder.start(query="Where?") as run:
        lcel().invoke("Where?", config)
        assert in_a_child(lambda: 0 if lcel().invoke("Here?", config) == ANSWER else 2) == 0
        run.answered(ANSWER)
    assert (keeper.only.record.query, keeper.only.record.answer) == ("Where?", ANSWER)
