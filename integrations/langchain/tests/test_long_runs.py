"""Long runs, several handlers at once, and collections of garbage at every place: nothing is lost or told twice."""

from __future__ import annotations

import gc
import sys

import pytest
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Faq, Scripted, chat, lcel, shown
from ragtrace.capture import Recorder
from ragtrace_langchain import RagtraceHandler
from tests.collecting import collects_at, ends_uncollected
from tests.kept import ANSWER, Keeper, Waiting, ids, kinds


def no_ones(text):
    return text.replace("1", "#")


@pytest.fixture(params=[None, no_ones], ids=["plain", "redacted"])
def redact(request):
    return request.param


def test_two_thousand_steps(redact):
    keeper = Waiting()
    step = RunnableLambda(lambda state: {**state, "n": state["n"] + 1})

    def steps(question):
        state = {"question": question, "docs": Faq().invoke(question), "n": 0}
        for _ in range(2_000):
            state = step.invoke(state)
        return chat().invoke(shown(state["docs"][:2])).content

    RunnableLambda(steps).invoke("Where?", {"callbacks": [RagtraceHandler(Recorder(keeper, redact=redact))]})
    keeper.process()
    record = keeper.only.record
    assert (record.answer, len(ids(keeper.only, "retrieved")), dict(record.lossy)) == (ANSWER, 6, {})
    assert keeper.only.prompt_ids == ("d0", "d1")


def test_a_search_behind_hundreds_of_model_calls(redact):
    keeper = Waiting()
    model = Scripted(replies=["Hm."] * 300 + [ANSWER])

    def steps(question):
        for number in range(300):
            model.invoke(f"Think of {number}.")
        return model.invoke(shown(Faq().invoke(question)[:2])).content

    RunnableLambda(steps).invoke("Where?", {"callbacks": [RagtraceHandler(Recorder(keeper, redact=redact))]})
    keeper.process()
    record = keeper.only.record
    assert (record.answer, len(ids(keeper.only, "retrieved"))) == (ANSWER, 6)
    assert keeper.only.prompt_ids == ("d0", "d1")
    assert record.lossy["steps"] == 302 - 256


def test_several_handlers_at_once():
    keepers = [Keeper(), Keeper(), Keeper()]
    redactions = (None, no_ones, None)
    handlers = [
        RagtraceHandler(Recorder(keeper, redact=redact)) for keeper, redact in zip(keepers, redactions, strict=True)
    ]
    lcel().invoke("Where?", {"callbacks": [*handlers, handlers[0]]})
    for keeper in keepers:
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])
        assert ids(keeper.only, "reranked") == ["d3", "d2"]
    texts = [keeper.only.record.pool("retrieved")[1].text for keeper in keepers]
    assert [("#" in text, "1" in text) for text in texts] == [(False, True), (True, False), (False, True)]


@pytest.mark.parametrize("is_joined", [False, True], ids=["own", "joined"])
def test_a_stream_that_is_collected_at_any_place_of_another_run(redact, is_joined):
    keeper = Keeper()
    recorder = Recorder(keeper, redact=redact)
    config = {"callbacks": [RagtraceHandler(recorder)]}

    def asks():
        for place in range(0, 120, 6):
            stream = lcel().stream("Left?", config)
            next(stream)
            cycle = {"stream": stream}
            cycle["itself"] = cycle
            del stream, cycle
            collects_at(place)
            if is_joined:
                with recorder.start(query="Where?"):
                    lcel().invoke("Where?", config)
            else:
                lcel().invoke("Where?", config)
            sys.setprofile(None)
        gc.collect()

    assert ends_uncollected(asks)
    said = sorted((run.record.query, run.record.outcome, run.record.answer) for run in keeper.runs)
    assert said == [("Left?", "partial", "T")] * 20 + [("Where?", "answered", ANSWER)] * 20
    assert recorder.open_runs == 0
