"""Threads that meet inside a run, or at its end, and collections of garbage there: nothing is lost, nothing twice."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel

import ragtrace
from integrations.langchain.tests.parts import Faq, lcel
from ragtrace.capture import Recorder, interpret
from ragtrace.model import Usage
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from ragtrace_langchain.instrumentation import _installed
from tests.collecting import ends_uncollected
from tests.kept import ANSWER, ids, kinds
from tests.sweeping import HeldSweep, SweepBesideTheLastEvent, add_slowly


def test_an_abandoned_stream_that_is_collected_while_its_run_takes_documents(keeper):
    def redact(text):
        if text.startswith("Passage d5"):
            gc.collect()
        return text

    def pieces(given):
        for _ in given:
            yield [Document(id="x0", page_content="Found first.")]
            yield [Document(id="x1", page_content="Found second.")]
            yield []

    def answer(question):
        stream = RunnableGenerator(pieces).stream(question)
        next(stream), next(stream)
        cycle = {"stream": stream}
        cycle["itself"] = cycle
        del stream, cycle
        Faq().invoke(question)
        return ANSWER

    config = {"callbacks": [RagtraceHandler(Recorder(keeper, redact=redact))]}
    assert ends_uncollected(RunnableLambda(answer).invoke, "Where?", config)
    assert set(ids(keeper.only, "retrieved")) >= {f"d{i}" for i in range(6)}


def test_tokens_of_parallel_calls_add_up(keeper, recorder, config, monkeypatch):
    """In a run that the application opened, their threads report at once."""
    add_slowly(interpret, monkeypatch)
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    models = {
        name: GenericFakeChatModel(messages=iter([AIMessage(ANSWER, usage_metadata=usage)])) for name in "abcd"
    }
    with recorder.start(query="Where?"):
        (RunnableParallel(models) | RunnableLambda(lambda said: said["a"].content)).invoke("Where?", config)
    assert keeper.only.record.usage == Usage(input_tokens=28, output_tokens=20)


def test_a_sweep_beside_the_end_of_a_run_waits_for_its_last_facts(keeper, monkeypatch):
    sweep = SweepBesideTheLastEvent(keeper, ANSWER)
    sweep.watch(monkeypatch)
    config = {"callbacks": [RagtraceHandler(sweep.recorder)]}
    sweep.meets(lambda: lcel().invoke("Where?", config))
    assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])


def test_a_run_that_begins_beside_a_sweep_leaves_it_what_it_has_to_tell(keeper, recorder, handler, config):
    stream = lcel().stream("Where?", config)
    next(stream)
    (run,) = recorder._open.values()
    report = run._before_finish["langchain"]

    def late():
        lcel().invoke("Next?", config)  # in another thread, between the two steps of the end
        report()

    run.before_finish(late, "langchain")
    recorder.sweep(now=1e12)
    swept = next(one for one in keeper.runs if one.record.query == "Where?")
    assert (swept.record.outcome, swept.record.answer) == ("partial", ANSWER[0])
    assert kinds(swept) == ["retrieval", "rerank", "chat"]


def test_a_call_beside_uninstrument_makes_no_handler_of_its_own(recorder, monkeypatch):
    begun = []
    monkeypatch.setattr(ragtrace, "recorder", lambda: begun.append(1) or recorder)
    instrument(recorder)
    asked = _installed.get

    def get():
        handler = asked()
        uninstrument()  # another thread does, between LangChain's two questions
        return handler

    monkeypatch.setattr(_installed, "get", get)
    assert lcel().invoke("Where?") == ANSWER
    assert begun == []


@pytest.fixture
def held(keeper):
    """A sweep that stands inside the end of a leaked run, and the handler of its recorder."""
    sweep = HeldSweep(keeper)
    handler = RagtraceHandler(sweep.recorder)
    leaked = lcel().stream("Leaked?", {"callbacks": [handler]})
    next(leaked)
    sweep.begin()
    yield sweep, handler
    sweep.end()
    leaked.close()


def test_a_new_run_does_not_wait_for_a_sweep_that_ends_another(keeper, held):
    sweep, handler = held
    assert sweep.lets(lambda: lcel().invoke("Other?", {"callbacks": [handler]}))
    assert {run.record.query for run in keeper.runs} == {"Leaked?", "Other?"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_is_forked_while_a_sweep_ends_a_run_asks_on(held):
    _, handler = held
    (tree,) = handler._runs._trees.values()
    child = os.fork()
    if not child:
        signal.alarm(20)
        with tree.lock:
            os._exit(7 if lcel().invoke("Child?", {"callbacks": [handler]}) == ANSWER else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
