"""Long runs, and collections of garbage at every place: nothing is lost or told twice."""

from __future__ import annotations

import gc
import sys

import pytest
from llama_index.core.tools import FunctionTool

from integrations.llamaindex.tests.parts import Best, Llm, engine
from ragtrace.capture import Recorder
from ragtrace_llamaindex import instrumented
from tests.collecting import collects_at, ends_uncollected
from tests.kept import ANSWER, Keeper, Waiting, ids


def no_ones(text):
    return text.replace("1", "#")


@pytest.fixture(params=[None, no_ones], ids=["plain", "redacted"])
def redact(request):
    return request.param


def engine_that(works):
    """An engine that works before it searches."""

    class Working(type(engine())):
        def _query(self, query_bundle):
            works()
            return super()._query(query_bundle)

    made = engine()
    return Working(
        retriever=made.retriever,
        response_synthesizer=made._response_synthesizer,
        node_postprocessors=[Best()],
    )


def calls_tools():
    tool = FunctionTool.from_defaults(lambda n: None, name="wait", description="Wait.")
    for number in range(2_000):
        tool.call(n=number)


def thinks():
    model = Llm(says="Hm.")
    for number in range(300):
        model.complete(f"Think of {number}.")


@pytest.mark.parametrize("works", [calls_tools, thinks])
def test_a_search_behind_many_steps(works, redact):
    keeper = Waiting()
    with instrumented(Recorder(keeper, redact=redact)):
        engine_that(works).query("Where?")
    keeper.process()
    run = keeper.only
    assert (run.record.answer, len(ids(run, "retrieved")), ids(run, "reranked")) == (ANSWER, 6, ["d5", "d4"])
    assert run.prompt_ids[:2] == ("d5", "d4")
    assert len(run.steps) == 256


@pytest.mark.parametrize("is_joined", [False, True], ids=["own", "joined"])
def test_a_stream_that_is_collected_at_any_place_of_another_run(redact, is_joined):
    keeper = Keeper()
    recorder = Recorder(keeper, redact=redact)

    def asks():
        for place in range(0, 120, 6):
            response = engine(streaming=True).query("Left?")
            next(response.response_gen)
            cycle = {"response": response}
            cycle["itself"] = cycle
            del response, cycle
            collects_at(place)
            if is_joined:
                with recorder.start(query="Where?"):
                    engine().query("Where?")
            else:
                engine().query("Where?")
            sys.setprofile(None)
        gc.collect()

    with instrumented(recorder):
        assert ends_uncollected(asks)
    said = sorted((run.record.query, run.record.outcome, run.record.answer) for run in keeper.runs)
    assert said == [("Left?", "partial", "The")] * 20 + [("Where?", "answered", ANSWER)] * 20
    assert recorder.open_runs == 0
