"""Threads that meet inside a run, or at its end, and collections of garbage there: nothing is lost, nothing twice."""

from __future__ import annotations

import gc
import os
import signal
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel

import ragtrace
from integrations.langchain.tests.parts import ANSWER, Faq, ids, kinds, lcel
from ragtrace.capture import Generation, Recorder
from ragtrace.model import Usage
from ragtrace_langchain import RagtraceHandler, calls, instrument, uninstrument
from ragtrace_langchain.install import _installed

WAIT_S = 30.0


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
    done = threading.Thread(target=RunnableLambda(answer).invoke, args=("Where?", config), daemon=True)
    gc.disable()
    try:
        done.start()
        done.join(WAIT_S)
    finally:
        gc.enable()
    assert not done.is_alive()
    assert set(ids(keeper.only, "retrieved")) >= {f"d{i}" for i in range(6)}


def test_tokens_of_parallel_calls_add_up(keeper, config, monkeypatch):
    met = threading.Event()

    def slow(*usages):
        met.wait(0.1)  # another call ends here
        return added(*usages)

    added = calls.added_usage
    monkeypatch.setattr(calls, "added_usage", slow)
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    models = {
        name: GenericFakeChatModel(messages=iter([AIMessage(ANSWER, usage_metadata=usage)])) for name in "abcd"
    }
    (RunnableParallel(models) | RunnableLambda(lambda said: said["a"].content)).invoke("Where?", config)
    assert keeper.only.record.usage == Usage(input_tokens=28, output_tokens=20)


def test_a_sweep_beside_the_end_of_a_run_waits_for_its_last_facts(keeper):
    ending, swept = threading.Event(), threading.Event()

    def redact(text):
        steps = next(iter(recorder._open.values())).steps if recorder.open_runs else ()
        is_told = any(isinstance(step, Generation) for step in steps)  # then the answer follows
        if text == ANSWER and is_told and threading.current_thread() is not sweeper:
            ending.set()
            swept.wait(0.5)  # until the sweep has passed by, where it does not wait
        return text

    def sweep():
        assert ending.wait(WAIT_S)
        recorder.end_all()
        swept.set()

    recorder = Recorder(keeper, redact=redact)
    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(recorder)]})
    sweeper.join(WAIT_S)
    assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])


def test_a_run_that_begins_beside_a_sweep_leaves_it_what_it_has_to_tell(keeper, recorder, handler, config):
    stream = lcel().stream("Where?", config)
    next(stream)
    (run,) = recorder._open.values()
    report = run._before_finish

    def late():
        lcel().invoke("Next?", config)  # in another thread, between the two steps of the end
        report()

    run.before_finish(late)
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


def swept_slowly(keeper):
    """Return a configuration beside which a sweep ends a leaked run, and what lets that sweep go on."""
    redacting, go_on = threading.Event(), threading.Event()

    def redact(text):
        if threading.current_thread().name == "sweep":
            redacting.set()
            go_on.wait(WAIT_S)
        return text

    recorder = Recorder(keeper, redact=redact)
    config = {"callbacks": [RagtraceHandler(recorder)]}
    leaked = lcel().stream("Leaked?", config)
    next(leaked)
    sweeper = threading.Thread(target=recorder.end_all, name="sweep")
    sweeper.start()
    assert redacting.wait(WAIT_S)

    def end():
        go_on.set()
        sweeper.join()
        leaked.close()

    return config, end


def test_a_new_run_does_not_wait_for_a_sweep_that_ends_another(keeper):
    config, end = swept_slowly(keeper)
    asking = threading.Thread(target=lcel().invoke, args=("Other?", config), daemon=True)
    asking.start()
    asking.join(WAIT_S / 3)
    is_free = not asking.is_alive()
    end()
    assert is_free
    assert {run.record.query for run in keeper.runs} == {"Leaked?", "Other?"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_is_forked_while_a_sweep_ends_a_run_asks_on(keeper):
    config, end = swept_slowly(keeper)
    (tree,) = config["callbacks"][0]._runs._trees.values()
    child = os.fork()
    if not child:
        signal.alarm(20)
        with tree.lock:
            os._exit(7 if lcel().invoke("Child?", config) == ANSWER else 1)
    _, status = os.waitpid(child, 0)
    end()
    assert os.waitstatus_to_exitcode(status) == 7
