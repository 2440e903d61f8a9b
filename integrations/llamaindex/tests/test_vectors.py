"""Vectors and values without an end in queries, nodes, tools, events and states: a run is what it is without them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from integrations.llamaindex.tests.parts import Best, Faq, Given, Llm, checked, engine
from ragtrace.capture import Recorder, ToolCall
from ragtrace_llamaindex import instrument, uninstrument
from ragtrace_llamaindex.calls import answer_of
from ragtrace_llamaindex.instrumentation import RagtraceEventHandler, RagtraceSpanHandler
from ragtrace_llamaindex.messages import object_text, structured_answer
from tests import cpu
from tests.kept import ANSWER, Keeper
from tests.kept import step as step_of
from tests.vectors import VALUES, VECTOR, Endless

MOST_S = 0.15  # of CPU in the hooks of a run
HOOKS = (
    (RagtraceSpanHandler, "span_enter"),
    (RagtraceSpanHandler, "span_exit"),
    (RagtraceSpanHandler, "span_drop"),
    (RagtraceEventHandler, "handle"),
)


@pytest.fixture(params=VALUES)
def value(request):
    return VALUES[request.param]


def is_cheap(call, recorder):
    """Tell whether ragtrace takes little of a call: of the last one, whose run is the one that is kept.

    Its own hooks are timed, since an older LlamaIndex copies such values for seconds itself.
    """
    uninstrument()
    instrument(Recorder(Keeper()))
    call()  # what is imported once is no run's cost
    uninstrument()
    instrument(recorder)
    taken = []
    cpu.leave_out_what_is_older()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in HOOKS:
            patch.setattr(owner, name, cpu.timed(getattr(owner, name), taken))
        call()
    assert taken
    return sum(taken) < MOST_S * cpu.slower()


def test_nodes_with_embeddings_and_such_metadata(keeper, recorder, value):
    found = [
        NodeWithScore(
            node=TextNode(
                id_=f"d{number}",
                text=f"Passage {number} says that the lab moved {number} times.",
                embedding=VECTOR,
                metadata={"page": number, "of": value},
                excluded_llm_metadata_keys=["page", "of"],
                excluded_embed_metadata_keys=["page", "of"],
            ),
            score=0.5,
        )
        for number in range(3)
    ]
    query = QueryBundle("Where?", embedding=VECTOR)
    assert is_cheap(lambda: engine(retriever=Given(found)).query(query), recorder)
    (*_, last) = keeper.only.record.pool("retrieved")
    assert (last.id, last.metadata["page"], keeper.only.record.answer) == ("d2", 2, ANSWER)


class Found(Event):
    nodes: list
    vectors: Any = None


class Chosen(Event):
    nodes: list
    vectors: Any = None


# Of the others LlamaIndex itself writes the text of each event: 0.5 s for 1,000 vectors.
@pytest.mark.parametrize(
    "name", ["a few lists", "arrays", "numbers", "texts", "names", "no end", "nothing but an end"]
)
def test_events_and_states_of_a_workflow(keeper, recorder, name):
    class Rag(Workflow):
        @step
        async def find(self, ctx: Context, ev: StartEvent) -> Found:
            await ctx.store.set("vectors", VALUES[name])
            return Found(nodes=await Faq().aretrieve(ev.query), vectors=VALUES[name])

        @step
        async def choose(self, ev: Found) -> Chosen:
            return Chosen(nodes=Best().postprocess_nodes(ev.nodes), vectors=ev.vectors)

        @step
        async def answer(self, ev: Chosen) -> StopEvent:
            reply = await Llm().acomplete("\n".join(one.text for one in ev.nodes))
            return StopEvent(result={"answer": reply.text, "vectors": ev.vectors})

    async def ask():
        return (await Rag().run(query="Where?", near=VALUES[name]))["answer"]

    assert is_cheap(lambda: asyncio.run(ask()), recorder)
    checked(keeper.only)


def test_a_tool_that_gives_and_takes_them(keeper, recorder):
    tool = FunctionTool.from_defaults(lambda near: {"near": near, "town": "Oslo"}, name="look")

    class Asks(Workflow):
        @step
        async def only(self, ev: StartEvent) -> StopEvent:
            tool.call(near=VALUES["a few lists"])
            return StopEvent(result=(await engine().aquery(ev.query)).response)

    async def ask():
        return await Asks().run(query="Where?")

    assert is_cheap(lambda: asyncio.run(ask()), recorder)
    assert step_of(keeper.only, ToolCall).arguments == '{"near": "[100 vectors]"}'


class City(BaseModel):
    town: str
    vectors: Any = None


@pytest.mark.parametrize("read", [structured_answer, lambda city: object_text(_response(city))])
def test_an_object_is_an_answer_without_its_vectors(read):
    assert read(City(town="Oslo")) == '{"town":"Oslo","vectors":null}'
    assert read(City(town="Oslo", vectors=VALUES["lists"])) == '{"town": "Oslo", "vectors": "[1000 vectors]"}'


def _response(city):
    from llama_index.core.base.response.schema import PydanticResponse

    return PydanticResponse(response=city)


def test_a_result_without_a_known_name_is_read_within_a_budget():
    assert answer_of({"vectors": Endless(), "answer": "In Oslo."}) == "In Oslo."
    assert answer_of(VALUES["lists"]) is None
    most_s = MOST_S * cpu.slower()
    assert cpu.seconds(lambda: answer_of({"vectors": Endless(), "answer": "In Oslo."})) < most_s
    assert cpu.seconds(lambda: answer_of(VALUES["lists"])) < most_s
