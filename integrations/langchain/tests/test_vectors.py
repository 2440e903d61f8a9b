"""Vectors and values without an end in chains, graphs, tools and metadata: a run is what it is without them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from integrations.langchain.tests.parts import Faq, chat, shown
from ragtrace.capture import Recorder, ToolCall
from ragtrace_langchain import RagtraceHandler
from ragtrace_langchain.values import Values
from tests import cpu
from tests.kept import ANSWER, Keeper, ids, step
from tests.vectors import VALUES, VECTOR

MOST_S = 0.15  # of CPU beyond the run without ragtrace; 1,000 vectors in a chain took 0.5 s, in a graph more


@pytest.fixture(params=VALUES, scope="module")
def value(request):
    return VALUES[request.param]


def spent(call, **config):
    return cpu.seconds(lambda: call(**config), rounds=1)


def is_cheap(call, config):
    """Tell whether ragtrace takes little of a call: of the last one, whose run is the one that is kept."""
    call(config={"callbacks": [RagtraceHandler(Recorder(Keeper()))]})  # what is imported once is no run's cost
    plain = spent(call)
    return spent(call, config=config) - plain < MOST_S * cpu.slower()


def test_steps_that_hand_them_on(keeper, config, value):
    chain = (
        RunnableLambda(lambda question: {"question": question, "docs": Faq().invoke(question), "vectors": value})
        | RunnableLambda(lambda state: {**state, "docs": state["docs"][1:3]})
        | RunnableLambda(lambda state: shown(state["docs"]))
        | chat()
    )
    assert is_cheap(lambda config=None: chain.invoke("Where?", config), config)
    run = keeper.only
    assert (len(ids(run, "retrieved")), ids(run, "reranked"), run.record.answer) == (6, ["d1", "d2"], ANSWER)


class State(TypedDict, total=False):
    vectors: Any
    question: str
    docs: list[Document]
    answer: str


def test_a_graph_with_them_in_its_state(keeper, config, value):
    graph = StateGraph(State)
    graph.add_node("embed", lambda state: {"vectors": value})
    graph.add_node("search", lambda state: {"docs": Faq().invoke(state["question"])})
    graph.add_node("choose", lambda state: {"docs": state["docs"][1:3]})
    graph.add_node("say", lambda state: {"answer": chat().invoke(shown(state["docs"])).content})
    names = [START, "embed", "search", "choose", "say", END]
    for one, other in pairwise(names):
        graph.add_edge(one, other)
    app = graph.compile()
    assert is_cheap(lambda config=None: app.invoke({"question": "Where?"}, config), config)
    run = keeper.only
    assert (run.record.query, run.record.answer) == ("Where?", ANSWER)
    assert (len(ids(run, "retrieved")), ids(run, "reranked"), ids(run, "used")) == (6, ["d1", "d2"], ["d1", "d2"])


def test_a_tool_with_them_as_its_artifact(keeper, config, value):
    @tool(response_format="content_and_artifact")
    def look(place: str) -> tuple[str, Any]:
        """Look at a place."""
        return f"It is in {place}.", {"vectors": value}

    def ask(question):
        call = {"name": "look", "args": {"place": "Oslo"}, "id": "c1", "type": "tool_call"}
        result = look.invoke(call)
        return chat().invoke([HumanMessage(question), AIMessage("", tool_calls=[call]), result]).content

    assert is_cheap(lambda config=None: RunnableLambda(ask).invoke("Where?", config), config)
    assert (step(keeper.only, ToolCall).result, keeper.only.record.answer) == ("It is in Oslo.", ANSWER)


class Embedded(BaseRetriever):
    facts: Any

    def _get_relevant_documents(self, query, *, run_manager):
        texts = [f"Passage {n} says that the lab moved {n} times." for n in range(3)]
        return [Document(text, id=f"d{n}", metadata={"page": n, "of": self.facts}) for n, text in enumerate(texts)]


def test_a_retriever_with_them_in_metadata(keeper, config, value):
    chain = Embedded(facts=value) | shown | chat()
    assert is_cheap(lambda config=None: chain.invoke("Where?", config), config)
    (*_, last) = keeper.only.record.pool("retrieved")
    assert (last.id, last.metadata["page"], ids(keeper.only, "used")) == ("d2", 2, ["d0", "d1", "d2"])


@pytest.mark.parametrize("kind", ["lists", "arrays", "by id", "numbers"])
def test_vectors_are_no_loss(keeper, config, kind):
    chain = RunnableLambda(lambda question: {"question": question, "vectors": VALUES[kind]}) | (lambda _: "Hi")
    (chain | chat()).invoke("Where?", config)
    assert keeper.only.record.lossy == {}


@pytest.mark.parametrize("kind", ["texts", "names"])
def test_what_was_cut_is_said(keeper, config, kind):
    chain = RunnableLambda(lambda question: {"question": question, "all": VALUES[kind]}) | (lambda _: "Hi") | chat()
    chain.invoke("Where?", config)
    assert keeper.only.record.lossy == {"values": 1}


def test_structured_output_with_a_vector_is_an_answer_without_it(keeper, config):
    chain = RunnableLambda(lambda question: chat().invoke(question).content) | (
        lambda _: {"town": {"name": "Oslo"}}
    )
    chain |= lambda found: [{**found, "vector": VECTOR}]
    RunnableLambda(lambda question: {"answer": chain.invoke(question)[0]}).invoke("Where?", config)
    assert keeper.only.record.answer == '{"town": {"name": "Oslo"}, "vector": "[1536 numbers]"}'


def test_a_vector_that_is_handed_on_is_known_again(keeper, config):
    values = Embedded(facts=VECTOR).invoke("?")

    def choose(docs):
        docs[0].metadata["of"] = [0.5] * 2_000  # another vector is no other passage
        return docs[:2]

    chain = RunnableLambda(lambda _: Faq().invoke("?")) | (lambda docs: [*values, *docs[:0]]) | choose | shown
    (chain | chat()).invoke("Where?", config)
    assert ids(keeper.only, "used") == ["d0", "d1"]


def test_a_message_with_blocks_of_vectors(keeper, config):
    message = ToolMessage([{"type": "text", "text": "In Oslo."}], tool_call_id="c1", artifact=VALUES["lists"])

    def ask(question):
        call = {"name": "look", "args": {"near": VECTOR}, "id": "c1", "type": "tool_call"}
        return chat().invoke([HumanMessage(question), AIMessage("", tool_calls=[call]), message]).content

    assert is_cheap(lambda config=None: RunnableLambda(ask).invoke("Where?", config), config)
    assert keeper.only.record.answer == ANSWER


def test_what_stands_beside_a_vector_in_metadata_may_change():
    document = Document("Oslo.", metadata={"found": {"vector": VECTOR, "score": 0.1}, "vector": VECTOR})
    values = Values()
    (first,), (same,) = values.documents([document]), values.documents([document])
    document.metadata["found"]["score"] = 0.9
    (changed,) = values.documents([document])
    assert (same is first, first.metadata["found"]["score"], changed.metadata["found"]["score"]) == (True, 0.1, 0.9)


def test_the_last_messages_of_a_prompt_are_kept_where_there_is_not_room_for_all():
    blocks = [{"type": "text", "text": "Hi"}] * 100
    turns = Values().turns([*(HumanMessage(list(blocks)) for _ in range(200)), HumanMessage("Where?")])
    assert (turns[-1].content, 1 < len(turns) < 200) == ("Where?", True)
