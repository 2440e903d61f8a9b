"""Promises of capture over real spans that one framework alone can show, for LangChain."""

from __future__ import annotations

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry.trace import StatusCode

import ragtrace
from integrations.langchain.tests.parts import ANSWER, PROMPT, Compressor, Faq, chat, lcel, rerank, shown
from ragtrace_langchain import RagtraceHandler
from tests.regressions.seen import (
    DOCUMENTS,
    RERANKED,
    asked_and_answered,
    fact,
    ids,
    read,
    watching,
)
from tests.regressions.test_langchain import State, graph

WIRE_BYTES = [  # by what is written
    pytest.param({"content": "full"}, 62_000, id="full"),
    pytest.param({"content": "full", "prompt_content": "reference"}, 53_000, id="references"),
    pytest.param({"content": "none"}, 10_000, id="none"),
]


@pytest.fixture
def config():
    return {"callbacks": [RagtraceHandler()]}


def answered_from(context):
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | chat()


class Many(BaseRetriever):
    """So many passages of so many characters, with scores."""

    size: int
    chars: int

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(
                id=f"doc-{i}",
                page_content=f"{i} ".ljust(self.chars, "x"),
                metadata={"score": 1 - i / self.size / 2},
            )
            for i in range(self.size)
        ]


def best_of(documents):
    """Eight of the pool, rescored, in another order."""
    chosen = reversed(documents[-8:])
    return [
        Document(id=d.id, page_content=d.page_content, metadata={**d.metadata, "relevance_score": 9.0 - i})
        for i, d in enumerate(chosen)
    ]


def compressed(retriever):
    return ContextualCompressionRetriever(base_compressor=Compressor(), base_retriever=retriever)


def queries(retriever):
    return MultiQueryRetriever.from_llm(retriever, chat("Where is it?\nWhich town?"), include_original=True)


FORMS = {
    "a function in the chain": (lambda: Faq() | RunnableLambda(rerank), 6, ["d3", "d2"]),
    "a compression retriever": (lambda: compressed(Faq()), 6, ["d5", "d4"]),
    "a compressor over an ensemble": (
        lambda: compressed(
            EnsembleRetriever(retrievers=[Faq(size=3), Faq(size=3, prefix="e")], weights=[0.5, 0.5])
        ),
        6,
        None,
    ),
    "a compressor over several queries": (lambda: compressed(queries(Faq())), 6, ["d5", "d4"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_pool_selection_and_prompt_with_both_scores_and_ranks_in_every_form(seen, config, form):
    build, pool, chosen = FORMS[form]
    answered_from(build() | shown).invoke("Where?", config)
    whole(seen, pool, chosen)


def test_in_the_nodes_of_a_graph(seen, config):
    built = StateGraph(State)
    built.add_node("retrieve", lambda s: {"documents": Faq().invoke(s["question"])})
    built.add_node("rank", lambda s: {"documents": rerank(s["documents"])})
    built.add_node("write", lambda s: {"generation": chat().invoke(shown(s["documents"])).content})
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "rank")
    built.add_edge("rank", "write")
    built.compile().invoke({"question": "Where?"}, config)
    whole(seen, 6, ["d3", "d2"])


def whole(seen, pool, chosen):
    root = seen.root
    assert asked_and_answered(root) == ("Where?", ANSWER, "answered")
    assert len(ids(root, "pool")) == pool
    assert ids(root, "selected") == ids(root, "prompt")
    assert chosen is None or ids(root, "selected") == chosen
    found = {row["id"]: row for span in seen.of("retrieval") for row in read(span, DOCUMENTS) if "score" in row}
    rows = {row["id"]: row for span in seen.of("rerank") for row in read(span, RERANKED)}
    order = ids(root, "pool")
    for place, name in enumerate(ids(root, "selected")):
        assert rows[name]["score"] == read(root, "ragtrace.selected.scores")[place] == 0.9 - place / 10
        assert rows[name]["retrieval_score"] == found[name]["score"]
        assert rows[name]["previous_rank"] == read(root, "ragtrace.selected.ranks")[place] == order.index(name) + 1


@pytest.mark.parametrize(("settings", "most"), WIRE_BYTES)
def test_what_a_run_sends_is_bounded(config, settings, most):
    """The CPU of a run is measured in benchmarks/overhead; spans, attributes and bytes are what it depends on."""
    with watching(**settings) as seen:
        answered_from(Many(size=50, chars=800) | RunnableLambda(best_of) | shown).invoke("Where?", config)
        assert len(seen.spans) == 4
        assert sum(len(span.attributes) for span in seen.spans) <= 45
        assert seen.wire_bytes() <= most


def test_an_interrupt_is_no_error_and_its_payload_is_kept(seen, config):
    config["configurable"] = {"thread_id": "t1"}
    app = graph(lambda s: {"notes": [interrupt({"really": True})]}, saver=True)
    app.invoke({"question": "Where?"}, config)
    root = seen.root
    assert (fact(root, "ragtrace.run.outcome"), fact(root, "ragtrace.run.interrupt")) == (
        "interrupted",
        '{"really": true}',
    )
    seen.clear()
    app.invoke(Command(resume="yes"), config)
    assert fact(seen.root, "ragtrace.run.outcome") == "answered"
    assert no_errors(seen)


def test_a_command_to_the_parent_graph_is_no_error(seen, config):
    inner = StateGraph(State)
    inner.add_node("go", lambda s: Command(goto="write", graph=Command.PARENT))
    inner.add_edge(START, "go")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile(), destinations=("write",))
    outer.add_node("write", lambda s: {"generation": ANSWER})
    outer.add_edge(START, "inner")
    outer.compile().invoke({"question": "Where?"}, config)
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    assert no_errors(seen)


def no_errors(seen):
    return [span.name for span in seen.spans if span.status.status_code is StatusCode.ERROR] == []


def test_with_no_network_and_no_judge_the_results_are_unchanged(config):
    """The tests' sockets reach loopback alone; a judge that answers nobody changes nothing."""
    pytest.importorskip("openai", reason="the judge over a server needs the extra openai")
    ragtrace.configure(
        judge="openai:nobody", judge_base_url="http://127.0.0.1:9/v1", judge_api_key="x", sample_rate=1.0
    )
    try:
        assert lcel().invoke("Where?", config) == ANSWER
    finally:
        ragtrace.shutdown(0.2)
