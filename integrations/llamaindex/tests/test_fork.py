"""A process that forks while runs are open: they are its own, and not its child's."""

from __future__ import annotations

import os

import pytest

from integrations.llamaindex.tests.parts import Faq, checked, engine
from ragtrace_llamaindex.instrumentation import tracer
from tests.kept import ANSWER


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_stream_that_parent_and_child_read_is_the_parent_s_run(keeper):
    response = engine(streaming=True).query("Where?")
    first = next(response.response_gen)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            read = first + "".join(response.response_gen)
            engine().query("Here?")
            status = 0 if read == ANSWER and [run.record.query for run in keeper.runs] == ["Here?"] else 2
            status = 3 if len(tracer) else status
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert first + "".join(response.response_gen) == ANSWER
    checked(keeper.only)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_query_whose_end_parent_and_child_reach_is_the_parent_s_run(keeper):
    parent, children = os.getpid(), []

    class Forking(Faq):
        def _retrieve(self, query_bundle):
            children.append(os.fork())
            if os.getpid() != parent:
                engine().query("Inside?")
            return super()._retrieve(query_bundle)

    status = 9
    try:
        engine(Forking()).query("Where?")
        status = len(keeper.runs) + len(tracer)
    finally:
        if os.getpid() != parent:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    checked(keeper.only)
