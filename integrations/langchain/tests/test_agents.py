"""Agents as spans `invoke_agent {name}`, the nearest one around its model calls, tool calls and searches."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool

import ragtrace_langchain
from integrations.langchain.tests.parts import Broken, Faq, Scripted, calls, lcel
from ragtrace.capture import internal_errors
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER, ROOT, edges

classic = pytest.importorskip("langchain_classic.agents")
graphs = pytest.importorskip("langgraph.graph")
prebuilt = pytest.importorskip("langgraph.prebuilt")
types = pytest.importorskip("langgraph.types")

ASKED = {"messages": [("user", "Where is the lab?")]}


@pytest.fixture
def kept():
    return Recording()


@pytest.fixture
def config(kept):
    return {"callbacks": [RagtraceHandler(kept.recorder)]}


def search(retriever=None):
    return create_retriever_tool(retriever or Faq(size=2), "search", "Searches the handbook.")


def searching(name=None, **options):
    model = Scripted(replies=[calls("search", query="lab"), ANSWER])
    return create_agent(model, [search()], name=name, **options)


def asking(agent, name="ask"):
    """A tool that asks an agent."""

    @tool(name)
    def ask(question: str) -> str:
        """Asks a colleague."""
        return agent.invoke({"messages": [("user", question)]})["messages"][-1].text

    return ask


ALONE = [
    (ROOT, None),
    ("invoke_agent clerk", ROOT),
    ("chat Scripted", "invoke_agent clerk"),
    ("execute_tool search", "invoke_agent clerk"),
    ("retrieval Faq", "execute_tool search"),
    ("chat Scripted", "invoke_agent clerk"),
]


def test_an_agent_is_one_step_below_its_run(kept, config):
    searching("clerk").invoke(ASKED, config)
    assert edges(kept) == ALONE
    (span,) = kept.spans_of("invoke_agent")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "openinference.span.kind": "AGENT",
        "agent.name": "clerk",
    }
    inner = [one for one in kept.spans if one.parent and one.parent.span_id == span.context.span_id]
    assert all(span.start_time <= one.start_time <= one.end_time <= span.end_time for one in inner)
    record = kept.only.record
    assert (record.query, record.answer) == ("Where is the lab?", ANSWER)
    assert [passage.id for passage in record.pool("retrieved")] == ["d0", "d1"]


def test_async(kept, config):
    asyncio.run(searching("clerk").ainvoke(ASKED, config))
    assert edges(kept) == ALONE


def test_streamed(kept, config):
    assert list(searching("clerk").stream(ASKED, config))
    assert edges(kept) == ALONE


def test_streamed_async(kept, config):
    async def read():
        return [piece async for piece in searching("clerk").astream(ASKED, config)]

    assert asyncio.run(read())
    assert edges(kept) == ALONE


def test_a_name_of_the_request_is_not_the_agent_s(kept, config):
    searching("clerk").invoke(ASKED, {**config, "run_name": "support"})
    assert edges(kept) == ALONE


def test_an_agent_without_a_name(kept, config):
    searching().invoke(ASKED, config)
    (span,) = kept.spans_of("invoke_agent")
    assert (span.name, "gen_ai.agent.name" in span.attributes) == ("invoke_agent", False)
    assert len([edge for edge in edges(kept) if edge[1] == "invoke_agent"]) == 3


def test_an_agent_of_langgraph(kept, config):
    model = Scripted(replies=[calls("search", query="lab"), ANSWER])
    with pytest.warns(match="create_react_agent has been moved"):
        agent = prebuilt.create_react_agent(model, [search()], name="clerk")
    agent.invoke(ASKED, config)
    assert edges(kept) == ALONE


@pytest.mark.parametrize("form", ["invoke", "stream"])
def test_an_agent_executor(kept, config, form):
    prompts = pytest.importorskip("langchain_core.prompts")
    prompt = prompts.ChatPromptTemplate.from_messages([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    model, tools = Scripted(replies=[calls("search", query="lab"), ANSWER]), [search()]
    agent = classic.create_tool_calling_agent(model, tools, prompt)
    executor = classic.AgentExecutor(agent=agent, tools=tools, name="clerk")
    given = {"input": "Where is the lab?"}
    list(executor.stream(given, config)) if form == "stream" else executor.invoke(given, config)
    assert edges(kept) == ALONE


def test_a_graph_and_a_chain_are_no_agents(kept, config):
    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("agent", lambda state: {"messages": [Scripted(replies=[ANSWER]).invoke(state["messages"])]})
    graph.add_edge(graphs.START, "agent")
    graph.compile(name="agent").invoke(ASKED, config)
    lcel().with_config(run_name="agent").invoke("Where?", config)
    assert not kept.spans_of("invoke_agent")


def test_a_graph_that_the_application_calls_an_agent(kept, config):
    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("reply", lambda state: {"messages": [Scripted(replies=[ANSWER]).invoke(state["messages"])]})
    graph.add_edge(graphs.START, "reply")
    graph.compile().with_config({"metadata": {"lc_agent_name": "clerk"}}).invoke(ASKED, config)
    assert edges(kept) == [(ROOT, None), ("invoke_agent clerk", ROOT), ("chat Scripted", "invoke_agent clerk")]


def test_an_agent_in_a_tool_of_another(kept, config):
    ask = asking(searching("clerk"))
    create_agent(Scripted(replies=[calls("ask", question="Where?"), ANSWER]), [ask], name="desk").invoke(
        ASKED, config
    )
    assert edges(kept) == [
        (ROOT, None),
        ("invoke_agent desk", ROOT),
        ("chat Scripted", "invoke_agent desk"),
        ("execute_tool ask", "invoke_agent desk"),
        ("invoke_agent clerk", "execute_tool ask"),
        *ALONE[2:],
        ("chat Scripted", "invoke_agent desk"),
    ]
    assert kept.only.record.answer == ANSWER


def test_a_graph_in_a_tool_of_an_agent_is_no_agent(kept, config):
    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("reply", lambda state: {"messages": [Scripted(replies=[ANSWER]).invoke(state["messages"])]})
    graph.add_edge(graphs.START, "reply")
    ask = asking(graph.compile())
    create_agent(Scripted(replies=[calls("ask", question="Where?"), ANSWER]), [ask], name="desk").invoke(
        ASKED, config
    )
    assert [span.name for span in kept.spans_of("invoke_agent")] == ["invoke_agent desk"]
    assert ("chat Scripted", "execute_tool ask") in edges(kept)


class State(TypedDict):
    question: str
    answer: str


def test_an_agent_that_a_node_asks(kept, config):
    clerk = searching("clerk")
    graph = graphs.StateGraph(State)
    graph.add_node("ask", lambda state: {"answer": clerk.invoke(ASKED)["messages"][-1].text})
    graph.add_edge(graphs.START, "ask")
    graph.compile().invoke({"question": "Where is the lab?"}, config)
    assert edges(kept) == ALONE


def test_a_supervisor_that_hands_over_to_two_agents(kept, config):
    def hand_over(name):
        @tool(f"transfer_to_{name}")
        def transfer():
            """Hands over."""
            return types.Command(goto=name, graph=types.Command.PARENT)

        return transfer

    replies = [calls("transfer_to_clerk"), calls("transfer_to_poet"), ANSWER]
    boss = create_agent(Scripted(replies=replies), [hand_over("clerk"), hand_over("poet")], name="boss")
    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("boss", boss, destinations=("clerk", "poet"))
    graph.add_node("clerk", searching("clerk"))
    graph.add_node("poet", create_agent(Scripted(replies=["A lab by the sea."]), [], name="poet"))
    graph.add_edge(graphs.START, "boss")
    graph.add_edge("clerk", "boss")
    graph.add_edge("poet", "boss")
    graph.compile(name="team").invoke(ASKED, config)
    assert [edge for edge in edges(kept) if edge[0].startswith("invoke_agent")] == [
        ("invoke_agent boss", ROOT),
        ("invoke_agent clerk", ROOT),
        ("invoke_agent boss", ROOT),
        ("invoke_agent poet", ROOT),
        ("invoke_agent boss", ROOT),
    ]
    assert {edge[1] for edge in edges(kept) if edge[0] == "chat Scripted"} == {
        "invoke_agent boss", "invoke_agent clerk", "invoke_agent poet",
    }  # fmt: skip
    assert all(span.status.is_ok or span.status.is_unset for span in kept.spans_of("invoke_agent"))


class Asking(BaseRetriever):
    """Has an agent search, and returns a passage of its own."""

    def _get_relevant_documents(self, query, *, run_manager):
        found = searching("clerk").invoke(ASKED, {"callbacks": run_manager.get_child()})
        return [Document(found["messages"][-1].text, id="own")]


def test_an_agent_in_a_retriever_leaves_its_steps_to_the_retriever(kept, config):
    lcel(Asking(), reranker=lambda documents: documents).invoke("Where is the lab?", config)
    told = edges(kept)
    assert ("invoke_agent clerk", "retrieval Asking") in told
    assert ("execute_tool search", "retrieval Asking") in told
    assert ("retrieval Faq", "retrieval Asking") in told


def test_two_agents_in_turn_in_a_chain(kept, config):
    then = RunnableLambda(lambda state: {"messages": [("user", state["messages"][-1].text)]})
    (searching("clerk") | then | create_agent(Scripted(replies=[ANSWER]), [], name="poet")).invoke(ASKED, config)
    assert [edge for edge in edges(kept) if edge[0].startswith("invoke_agent")] == [
        ("invoke_agent clerk", ROOT),
        ("invoke_agent poet", ROOT),
    ]


def test_an_agent_that_fails(kept, config):
    agent = create_agent(Scripted(replies=[calls("search", query="lab")]), [search(Broken())], name="clerk")
    with pytest.raises(ConnectionError):
        agent.invoke(ASKED, config)
    (span,) = kept.spans_of("invoke_agent")
    assert (span.name, span.attributes["error.type"]) == ("invoke_agent clerk", "ConnectionError")
    assert not span.status.is_ok
    assert kept.only.record.outcome == "error"


def test_an_agent_whose_failure_is_caught(kept, config):
    clerk = create_agent(Scripted(replies=[TimeoutError("late")]), [], name="clerk")
    poet = create_agent(Scripted(replies=[ANSWER]), [], name="poet")
    clerk.with_fallbacks([poet]).invoke(ASKED, config)
    told = {span.name: span.attributes.get("error.type") for span in kept.spans_of("invoke_agent")}
    assert told == {"invoke_agent clerk": "TimeoutError", "invoke_agent poet": None}
    assert (kept.only.record.outcome, kept.only.record.answer) == ("answered", ANSWER)


def test_an_agent_whose_stream_is_abandoned(kept, config):
    pieces = searching("clerk").stream(ASKED, config)
    next(pieces)
    next(pieces)
    pieces.close()
    assert edges(kept) == ALONE[:5]
    (span,) = kept.spans_of("invoke_agent")
    assert "error.type" not in span.attributes
    assert kept.only.record.outcome == "partial"


def test_an_agent_that_is_open_when_its_run_ends(kept):
    ragtrace_langchain.instrument(recorder=kept.recorder)
    try:
        with kept.recorder.start(query="Where is the lab?") as run:
            pieces = searching("clerk").stream(ASKED)
            next(pieces)
            next(pieces)
            run.answered(ANSWER)
        pieces.close()
    finally:
        ragtrace_langchain.uninstrument()
    assert edges(kept) == ALONE[:5]


def test_in_a_block(kept, config):
    with kept.recorder.start(query="Where is the lab?"):
        searching("clerk").invoke(ASKED, config)
    assert edges(kept) == ALONE
    assert kept.only.record.answer == ANSWER


def test_twice_in_a_block(kept, config):
    with kept.recorder.start(query="Where is the lab?"):
        searching("clerk").invoke(ASKED, config)
        searching("clerk").invoke(ASKED, config)
    (_, *once) = ALONE
    assert edges(kept) == [ALONE[0], *once, *once]


def test_a_node_whose_function_has_hints_that_name_nothing(kept, config):
    """With fallbacks it looks up the hints of its function as soon as it is asked for that."""

    def ask(state):
        return {"answer": ANSWER}

    ask.__annotations__ = {"state": "Nowhere"}

    before = internal_errors()
    graph = graphs.StateGraph(dict)
    graph.add_node("search", lambda state: {**state, "docs": Faq(size=2).invoke("Where?")})
    graph.add_node("ask", RunnableLambda(ask).with_fallbacks([RunnableLambda(lambda state: state)]))
    graph.set_entry_point("search")
    graph.add_edge("search", "ask")
    graph.compile().invoke({"question": "Where?"}, config)
    assert [run.record.query for run in kept.runs] == ["Where?"]
    assert internal_errors() == before
