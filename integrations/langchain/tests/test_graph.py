"""LangGraph: nodes as steps, interrupts and commands that are no errors, agents that search."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import create_retriever_tool

from integrations.langchain.tests.parts import Faq, chat, rerank, shown
from ragtrace.capture import Rerank
from ragtrace.model import Usage
from tests.kept import ANSWER, ids, kinds, step

pytest.importorskip("langgraph")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    question: str
    documents: list
    generation: str
    notes: Annotated[list, operator.add]


def graph(*, asks=False):
    def confirm(state):
        return {"notes": [interrupt({"really": True})] if asks else []}

    nodes = {
        "retrieve": lambda s: {"documents": Faq().invoke(s["question"])},
        "rank": lambda s: {"documents": rerank(s["documents"])},
        "confirm": confirm,
        "generate": lambda s: {"generation": chat().invoke(shown(s["documents"])).content},
    }
    built = StateGraph(State)
    for name, node in nodes.items():
        built.add_node(name, node)
    for one, next_one in zip([START, *nodes], [*nodes, END], strict=True):
        built.add_edge(one, next_one)
    return built.compile(checkpointer=InMemorySaver() if asks else None)


def test_nodes(keeper, config):
    graph().invoke({"question": "Where?"}, config)
    run = keeper.only
    assert kinds(run) == ["retrieval", "rerank", "chat"]
    assert (step(run, Rerank).model, ids(run, "reranked"), run.prompt_ids) == ("rank", ["d3", "d2"], ("d3", "d2"))
    assert (run.record.query, run.record.answer, run.record.outcome) == ("Where?", ANSWER, "answered")


async def test_nodes_async_stream(keeper, config):
    assert [part async for part in graph().astream({"question": "Where?"}, config)]
    assert (ids(keeper.only, "reranked"), keeper.only.record.answer) == (["d3", "d2"], ANSWER)


def test_interrupt_and_resume(keeper, config, caplog):
    config["configurable"] = {"thread_id": "t1"}
    app = graph(asks=True)
    app.invoke({"question": "Where?"}, config)
    run = keeper.runs[0]
    assert (run.record.outcome, run.failure, run.record.session) == ("interrupted", None, "t1")
    assert (ids(run, "reranked"), run.record.interrupt) == (["d3", "d2"], '{"really": true}')
    app.invoke(Command(resume="yes"), config)
    resumed = keeper.runs[1]
    assert (resumed.record.outcome, resumed.record.answer) == ("answered", ANSWER)
    # Nothing was retrieved in this run: what it goes on with is what the state held.
    assert (ids(resumed, "retrieved"), resumed.prompt_ids) == (["d3", "d2"], ("d3", "d2"))
    assert resumed.record.interrupt is None
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_an_interrupt_inside_a_subgraph_is_kept_once(keeper, config):
    config["configurable"] = {"thread_id": "t1"}
    inner = StateGraph(State)
    inner.add_node("ask", lambda s: {"notes": [interrupt("May I?")]})
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=InMemorySaver())
    app.invoke({"question": "Where?"}, config)
    run = keeper.only
    assert (run.record.outcome, run.record.interrupt, run.failure) == ("interrupted", "May I?", None)


def test_interrupts_of_parallel_nodes_are_all_kept(keeper, config):
    config["configurable"] = {"thread_id": "t1"}
    built = StateGraph(State)
    for name in ("one", "two"):
        built.add_node(name, lambda s, name=name: {"notes": [interrupt(name)]})
        built.add_edge(START, name)
    built.compile(checkpointer=InMemorySaver()).invoke({"question": "Where?"}, config)
    assert sorted((keeper.only.record.interrupt or "").split("\n")) == ["one", "two"]


def test_send_fans_out_into_one_run(keeper, config):
    built = StateGraph(State)
    built.add_node("search", lambda s: {"notes": Faq(size=2, prefix=s["question"]).invoke(s["question"])})
    built.add_node("write", lambda s: {"generation": chat().invoke(shown(s["notes"])).content})
    built.add_conditional_edges(START, lambda s: [Send("search", {"question": q}) for q in ("a", "b")])
    built.add_edge("search", "write")
    built.compile().invoke({"question": "Where?"}, config)
    run = keeper.only
    assert kinds(run) == ["retrieval", "retrieval", "chat"]
    assert (sorted(ids(run, "retrieved")), run.record.answer) == (["a0", "a1", "b0", "b1"], ANSWER)


def test_a_subgraph_that_retrieves_belongs_to_the_run(keeper, config):
    inner = StateGraph(State)
    inner.add_node("retrieve", lambda s: {"documents": Faq().invoke(s["question"])})
    inner.add_node("rank", lambda s: {"documents": rerank(s["documents"])})
    inner.add_edge(START, "retrieve")
    inner.add_edge("retrieve", "rank")
    outer = StateGraph(State)
    outer.add_node("search", inner.compile())
    outer.add_node("route", lambda s: Command(goto="write"))
    outer.add_node("write", lambda s: {"generation": chat().invoke(shown(s["documents"])).content})
    outer.add_edge(START, "search")
    outer.add_edge("search", "route")
    outer.compile().invoke({"question": "Where?"}, config)
    run = keeper.only
    assert (ids(run, "retrieved"), ids(run, "reranked")) == ([f"d{i}" for i in range(6)], ["d3", "d2"])
    assert (run.record.outcome, run.prompt_ids) == ("answered", ("d3", "d2"))


def test_agent_that_searches_twice(keeper, config):
    agents = pytest.importorskip("langchain.agents")

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    def call(query):
        args = {"name": "search", "args": {"query": query}, "id": query}
        return AIMessage("", tool_calls=[args], usage_metadata=usage(1))

    def usage(n):
        return {"input_tokens": n, "output_tokens": n, "total_tokens": 2 * n}

    model = Model(messages=iter([call("one"), call("two"), AIMessage(ANSWER, usage_metadata=usage(3))]))
    tool = create_retriever_tool(Faq(size=2), "search", "Searches.")
    agents.create_agent(model, [tool]).invoke({"messages": [("user", "Where?")]}, config)
    run = keeper.only
    assert kinds(run) == ["chat", *["retrieval", "tool", "chat"] * 2, "agent"]
    assert (run.record.query, run.record.answer) == ("Where?", ANSWER)
    assert run.record.usage == Usage(input_tokens=5, output_tokens=5)
    assert [s.query for s in run.steps if hasattr(s, "top_k")] == ["one", "two"]
    assert set(run.prompt_ids) == {"d0", "d1"}
