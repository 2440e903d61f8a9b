"""Searches that leave no `Document`: tools that return texts and mappings, states that hold them, middleware."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from pydantic import BaseModel

from integrations.langchain.tests.parts import PROMPT, Faq, chat
from ragtrace.capture import Rerank, Retrieval
from ragtrace.model import content_id
from tests.kept import ANSWER, ids, kinds, scores, step

pytest.importorskip("langgraph")
pytest.importorskip("langchain.agents")

from langchain import agents
from langchain.agents.middleware import AgentMiddleware, dynamic_prompt
from langgraph.graph import END, START, StateGraph

OSLO = 'The "lab" is in Oslo,\nat Karl Johans gate 22, på tredje etasje.'
HOURS = "It opens at 8 o'clock\\ and closes at 17.\n\tOn Sundays it is closed, 日曜日."
RESULTS = [{"id": "a", "text": OSLO, "score": 0.9}, {"id": "b", "text": HOURS, "score": 0.4}]
DOCUMENTS = [Document(id=r["id"], page_content=r["text"], metadata={"score": r["score"]}) for r in RESULTS]
HASHES = [content_id(OSLO), content_id(HOURS)]


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def call(name, query="the lab", call_id="1"):
    return AIMessage("", tool_calls=[{"name": name, "args": {"query": query}, "id": call_id}])


def run_agent(tools, config, calls=None, **options):
    said = [call(t.name, call_id=str(n)) for n, t in enumerate(tools)] if calls is None else calls
    model = Model(messages=iter([*said, AIMessage(ANSWER)]))
    agent = agents.create_agent(model, tools, **options)
    agent.invoke({"messages": [("user", "Where is the lab?")]}, config)


def tool_of(value, **options):
    @tool("search", **options)
    def search(query: str) -> Any:
        """Search the handbook."""
        return value

    return search


# What the tool returns, and the passages that a person sees in it: ids, scores.
OUTPUTS = {
    "mappings": (RESULTS, ["a", "b"], [0.9, 0.4]),
    "mappings as JSON": (json.dumps(RESULTS), ["a", "b"], [0.9, 0.4]),
    "mappings as repr": (str(RESULTS), ["a", "b"], [0.9, 0.4]),
    "documents": (DOCUMENTS, ["a", "b"], [0.9, 0.4]),
    "documents without ids": ([Document(page_content=OSLO)], HASHES[:1], [None]),
    "an envelope": ({"query": "lab", "results": RESULTS, "took": 3}, ["a", "b"], [0.9, 0.4]),
    "one mapping": (RESULTS[0], ["a"], [0.9]),
}
TOOL_TEXTS = {
    "a text": (OSLO, [OSLO]),
    "a list of texts": ([OSLO, HOURS], [OSLO, HOURS]),
    "MCP blocks": ([{"type": "text", "text": OSLO}, {"type": "text", "text": HOURS}], [OSLO, HOURS]),
    "other JSON": ('{"order": 7, "status": "shipped"}', ['{"order": 7, "status": "shipped"}']),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_a_tool_returns_is_the_pool(keeper, config, name):
    value, expected, marks = OUTPUTS[name]
    run_agent([tool_of(value)], config)
    run = keeper.only
    assert (ids(run, "retrieved"), scores(run, "retrieved")) == (expected, marks)
    assert (ids(run, "used"), run.prompt_ids) == (expected, tuple(expected))
    assert (run.record.query, run.record.answer) == ("Where is the lab?", ANSWER)
    assert {p.source for p in run.record.pool("retrieved")} == {"search"}
    assert run.record.lossy == {}


@pytest.mark.parametrize("name", TOOL_TEXTS)
def test_texts_of_a_tool_are_contexts_without_rank(keeper, config, name):
    value, expected = TOOL_TEXTS[name]
    run_agent([tool_of(value)], config)
    run = keeper.only
    assert (run.record.pools, run.record.selection_source) == ((), None)
    assert [(p.text, p.source, dict(p.metadata)) for p in run.record.unranked_contexts] == [
        (one, "search", {"kind": "tool_output"}) for one in expected
    ]
    assert run.record.contexts == run.record.unranked_contexts
    assert run.prompt_ids == tuple(map(content_id, expected))
    assert (run.record.query, run.record.answer, run.record.lossy) == ("Where is the lab?", ANSWER, {})
    assert ("tool_text_guessed", "tool search") in signs(run)


def signs(run):
    return [(sign.name, sign.about) for sign in run.record.signs]


def context_ids(run):
    return [one.id for one in run.record.unranked_contexts]


@pytest.mark.parametrize("artifact", [DOCUMENTS, RESULTS, {"results": RESULTS}])
def test_an_artifact_comes_before_the_text(keeper, config, artifact):
    @tool("search", response_format="content_and_artifact")
    def search(query: str):
        """Search the handbook."""
        return f"{OSLO}\n\n{HOURS}", artifact

    run_agent([search], config)
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["a", "b"], ("a", "b"))
    assert step(keeper.only, Retrieval).source == "search"


def test_another_tool_displaces_no_documents(keeper, config):
    @tool("order_status")
    def order_status(query: str):
        """Look up an order."""
        return "Order 7 was shipped on May 4 to the lab."

    search = create_retriever_tool(Faq(size=2), "search", "Searches.")
    run_agent([order_status, search], config)
    run = keeper.only
    assert ids(run, "retrieved") == ["d0", "d1"]
    assert (ids(run, "used"), context_ids(run)) == (
        ["d0", "d1"],
        [content_id("Order 7 was shipped on May 4 to the lab.")],
    )
    assert (run.record.k, run.record.selection_source) == (None, "retriever")  # K is the number of the used
    assert list(run.prompt_ids) == [*ids(run, "used"), *context_ids(run)]


def test_a_calculator_alone_is_what_the_answer_was_made_of(keeper, config):
    @tool("multiply")
    def multiply(query: str):
        """Multiply."""
        return 12

    agent = agents.create_agent(Model(messages=iter([call("multiply"), AIMessage("It is 12.")])), [multiply])
    agent.invoke({"messages": [("user", "How much is it?")]}, config)
    assert [p.text for p in keeper.only.record.contexts] == ["12"]


def test_a_search_that_found_nothing_is_an_empty_pool(keeper, config):
    run_agent([create_retriever_tool(Faq(size=0), "search", "Searches.")], config)
    run = keeper.only
    assert ([pool.stage for pool in run.record.pools], run.record.contexts) == (["retrieved"], ())
    assert run.record.lossy == {}


def test_a_tool_that_failed_found_nothing(keeper, config):
    @tool("search")
    def search(query: str):
        """Search."""
        raise ConnectionError("index is down")

    search.handle_tool_error = True

    def broken(query: str):
        return ToolMessage("Error: index is down", tool_call_id="0", status="error")

    run_agent([tool("search", description="Search.")(broken)], config)
    assert keeper.only.record.pools == ()


def test_earlier_turns_are_no_pool_of_this_question(keeper, config):
    earlier = [
        ("user", "Who?"),
        call("search"),
        ToolMessage(HOURS, tool_call_id="1", name="search"),
        ("ai", "Ada."),
    ]
    model = Model(messages=iter([call("search", call_id="2"), AIMessage(ANSWER)]))
    agent = agents.create_agent(model, [tool_of(OSLO)])
    agent.invoke({"messages": [*earlier, ("user", "Where is the lab?")]}, config)
    assert (context_ids(keeper.only), keeper.only.record.query) == (HASHES[:1], "Where is the lab?")


@pytest.mark.parametrize(("content", "expected"), [(OSLO, HASHES[:1]), (json.dumps(RESULTS), ["a", "b"])])
def test_tools_called_by_hand(keeper, config, content, expected):
    def answer(question):
        asked = [HumanMessage(question), call("search")]
        said = chat().invoke([*asked, ToolMessage(content, tool_call_id="1", name="search")])
        return chat().invoke([*asked, ToolMessage(content, tool_call_id="1", name="search"), said]).content

    RunnableLambda(answer).invoke("Where is the lab?", config)
    assert ([one.id for one in keeper.only.record.contexts], keeper.only.record.answer) == (expected, ANSWER)
    assert {p.source for p in keeper.only.record.contexts} == {"search"}


def test_an_agent_in_a_tool_is_no_source(keeper, config):
    inner = agents.create_agent(
        Model(messages=iter([call("search"), AIMessage("It is in Oslo city.")])), [tool_of(OSLO)]
    )

    @tool("researcher")
    def researcher(query: str):
        """Ask a researcher."""
        return inner.invoke({"messages": [("user", query)]})["messages"][-1].content

    run_agent([researcher], config)
    assert (context_ids(keeper.only), keeper.only.prompt_ids) == (HASHES[:1], tuple(HASHES[:1]))


class Chunk(BaseModel):
    chunk_id: str
    text: str
    score: float


@dataclass
class Hit:
    id: str
    content: str
    score: float


CHUNKS = {
    "mappings": (RESULTS, lambda part: part["text"], ["a", "b"], [0.9, 0.4]),
    "texts": ([OSLO, HOURS], str, HASHES, [None, None]),
    "models": (
        [Chunk(chunk_id=r["id"], text=r["text"], score=r["score"]) for r in RESULTS],
        lambda part: part.text,
        ["a", "b"],
        [0.9, 0.4],
    ),
    "dataclasses": ([Hit(*r.values()) for r in RESULTS], lambda part: part.content, ["a", "b"], [0.9, 0.4]),
    "pairs of a text and its score": ([(OSLO, 0.9), (HOURS, 0.4)], lambda part: part[0], HASHES, [0.9, 0.4]),
    "pairs of a text and its distance": ([(OSLO, 0.1), (HOURS, 0.4)], lambda part: part[0], HASHES, [None, None]),
    "pairs of a mapping and its score": (
        [({"id": "a", "text": OSLO}, 0.9), ({"id": "b", "text": HOURS}, 0.4)],
        lambda part: part[0]["text"],
        ["a", "b"],
        [0.9, 0.4],
    ),
    "Elasticsearch hits": (
        [{"_id": r["id"], "_score": r["score"], "_source": {"body": r["text"]}} for r in RESULTS],
        lambda part: part["_source"]["body"],
        ["a", "b"],
        [0.9, 0.4],
    ),
}


class State(TypedDict, total=False):
    question: str
    queries: list
    plan: list
    documents: list
    messages: list
    answer: str


def graph(found, text_of, *, keeps=slice(None), field="documents"):
    nodes = {
        "rewrite": lambda s: {
            "queries": ["Where is the lab now?", "When does it open?"],
            "plan": ["search it first"],
        },
        "retrieve": lambda s: {field: found},
        "grade": lambda s: {field: s[field][keeps]},
        "write": lambda s: {"answer": chat().invoke("\n\n".join([s["question"], *map(text_of, s[field])])).content},
    }
    built = StateGraph(State)
    for name, node in nodes.items():
        built.add_node(name, node)
    for one, next_one in zip([START, *nodes], [*nodes, END], strict=True):
        built.add_edge(one, next_one)
    return built.compile()


@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.parametrize("keeps", [slice(None), slice(1, 2)])
def test_chunks_in_a_graphs_state(keeper, config, name, keeps):
    found, text_of, expected, marks = CHUNKS[name]
    graph(found, text_of, keeps=keeps).invoke({"question": "Where is the lab?"}, config)
    run = keeper.only
    assert (ids(run, "retrieved"), scores(run, "retrieved")) == (expected, marks)
    assert step(run, Retrieval).source == "retrieve"
    assert run.prompt_ids == tuple(expected[keeps])
    is_choice = keeps != slice(None)
    assert kinds(run) == ["retrieval", *(["rerank"] if is_choice else []), "chat"]
    assert ids(run, "reranked") == (expected[keeps] if is_choice else [])
    assert (run.record.answer, run.record.lossy) == (ANSWER, {})


def test_texts_of_a_function_that_are_joined_as_a_context_have_no_rank(keeper, config):
    retrieve = RunnableLambda(lambda question: [OSLO, HOURS], name="retrieve")
    given = {"context": retrieve | "\n".join, "question": RunnablePassthrough()}
    (given | PROMPT | chat() | StrOutputParser()).invoke("Where?", config)
    assert keeper.only.record.pools == ()
    assert [one.text for one in keeper.only.record.unranked_contexts] == [f"{OSLO}\n{HOURS}"]


def test_texts_that_a_state_holds_as_its_context_are_passages(keeper, config):
    retrieve = RunnableLambda(lambda given: {**given, "context": [OSLO, HOURS]}, name="retrieve")
    rank = RunnableLambda(lambda given: {**given, "context": given["context"][::-1]}, name="rank")
    written = RunnableLambda(lambda given: {**given, "context": "\n".join(given["context"])})
    (retrieve | rank | written | PROMPT | chat() | StrOutputParser()).invoke({"question": "Where?"}, config)
    run = keeper.only
    assert (ids(run, "retrieved"), ids(run, "reranked"), run.prompt_ids) == (
        HASHES,
        HASHES[::-1],
        tuple(HASHES[::-1]),
    )
    assert step(run, Rerank).model == "rank"


JOINED = f"{OSLO}\n\n{HOURS}"


class Joined(TypedDict, total=False):
    question: str
    context: str
    answer: str


def joined_graph():
    built = StateGraph(Joined)
    built.add_node("retrieve", lambda s: {"context": JOINED})
    built.add_node(
        "write", lambda s: {"answer": chat().invoke(f"Context: {s['context']}\n{s['question']}").content}
    )
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "write")
    return built.compile()


CONTEXT_AND_QUESTION = {
    "state.context": joined_graph(),
    "search_faq": {
        "context": RunnableLambda(lambda given: JOINED, name="search_faq"),
        "question": RunnableLambda(lambda given: given["question"]),
    }
    | PROMPT
    | chat(),
    "input.context": PROMPT | chat(),
}


@pytest.mark.parametrize("place", CONTEXT_AND_QUESTION)
def test_a_context_in_one_text_has_no_rank(keeper, config, place):
    given = {"context": JOINED} if place == "input.context" else {}
    CONTEXT_AND_QUESTION[place].invoke({"question": "Where is the lab?", **given}, config)
    assert (keeper.only.record.pools, keeper.only.record.lossy) == ((), {})
    assert [one.text for one in keeper.only.record.unranked_contexts] == [JOINED]
    assert signs(keeper.only) == []


def test_a_context_made_of_documents_is_no_passage(keeper, config):
    def retrieve(state):
        return {"context": "\n".join(f"* {d.page_content.upper()}" for d in Faq(size=2).invoke(state["question"]))}

    chain = RunnablePassthrough.assign(context=lambda s: retrieve(s)["context"]) | PROMPT | chat()
    chain.invoke({"question": "Where is the lab?"}, config)
    assert ids(keeper.only, "retrieved") == ["d0", "d1"]
    assert [p.id for p in keeper.only.record.contexts] == ["d0", "d1"]


def test_a_context_that_a_model_wrote_is_no_passage(keeper, config):
    written = PROMPT | chat("The lab moved to Oslo, where it has been since 2014 or so.") | StrOutputParser()
    chain = RunnablePassthrough.assign(context=written) | PROMPT | chat()
    chain.invoke({"question": "Where?", "context": ""}, config)
    assert keeper.only.record.pools == ()


OTHER_LISTS = {
    "turns": {"messages": [{"role": "user", "content": "Where is the lab?"}]},
    "queries": {"queries": ["Where is the lab?", "When does it open?"]},
    "a plan": {"plan": [{"id": 1, "text": "Find the lab.", "status": "open"}]},
    "replies": {"documents": [ANSWER]},
    "names of sources": {"documents": ["faq.md", "hours.md"]},
}


@pytest.mark.parametrize("name", OTHER_LISTS)
def test_other_lists_of_a_state_are_no_passages(keeper, config, name):
    built = StateGraph(State)
    built.add_node("work", lambda s: {**OTHER_LISTS[name], "answer": chat().invoke(s["question"]).content})
    built.add_edge(START, "work")
    built.compile().invoke({"question": "Where is the lab?"}, config)
    assert (keeper.only.record.pools, keeper.only.record.answer) == ((), ANSWER)


def test_context_that_middleware_puts_into_the_prompt_is_not_silent(keeper, config):
    found = iter([OSLO, HOURS])

    @dynamic_prompt
    def with_context(request):
        return f"Use the following context in your response:\n\n{next(found)}"

    for _ in range(2):
        run_agent([], config, middleware=[with_context])
    assert [run.record.pools for run in keeper.runs] == [(), ()]
    assert [signs(run) for run in keeper.runs] == [[], [("evidence_unread", "prompt")]]


def test_documents_in_the_state_of_middleware(keeper, config):
    class WithDocuments(AgentMiddleware):
        def before_model(self, state, runtime):
            asked = f"Context: {OSLO}\n{HOURS}\n{state['messages'][-1].content}"
            return {"messages": [HumanMessage(asked)], "context": DOCUMENTS}

    run_agent([], config, middleware=[WithDocuments()])
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["a", "b"], ("a", "b"))


def test_a_model_without_contexts_is_not_lossy(keeper, config):
    run_agent([], config, system_prompt="You are a helpful assistant.")
    assert (keeper.only.record.pools, dict(keeper.only.record.lossy)) == ((), {})
