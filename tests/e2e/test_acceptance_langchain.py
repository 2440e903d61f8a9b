"""The ten lines of what capture has to hold, over real spans, for LangChain.

Line 6's figures and line 7's 20,000 runs are in benchmarks/overhead, since a timed test is no test. The other half of
line 10, each of our functions made to raise, is test_10_any_function_may_raise in test_faults.py.
"""

from __future__ import annotations

import asyncio
import gc

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry.trace import StatusCode

import ragtrace
from integrations.langchain.tests.parts import ANSWER, PROMPT, Broken, Compressor, Faq, chat, lcel, rerank, shown
from ragtrace_langchain import RagtraceHandler
from tests.regressions.seen import (
    DOCUMENTS,
    LATER,
    RERANKED,
    asked_and_answered,
    assert_json_is_whole,
    assert_nothing_dropped,
    attribute_bytes,
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
MOST_ATTRIBUTE_BYTES = 300_000  # of all spans of a trace


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


def test_01_a_batch_of_three_is_three_traces_and_the_next_request_is_clean(seen, config):
    lcel().batch(["1?", "2?", "3?"], config)
    assert sorted(fact(root, "input.value") for root in seen.roots) == ["1?", "2?", "3?"]
    assert len({root.context.trace_id for root in seen.roots}) == 3
    for root in seen.roots:
        assert [len(seen.of(kind, root)) for kind in ("retrieval", "rerank", "chat")] == [1, 1, 1]
    seen.clear()
    lcel().invoke("Next?", config)
    assert asked_and_answered(seen.root) == ("Next?", ANSWER, "answered")


def test_02_no_span_stays_open_after_a_leak_an_abandonment_a_cancel_or_an_error(seen, config):
    leaked = lcel().stream("leaked?", config)
    next(leaked)
    abandoned = lcel().stream("abandoned?", config)
    next(abandoned)
    del abandoned
    with pytest.raises(ConnectionError):
        lcel(Broken()).invoke("broken?", config)
    asyncio.run(cancelled(config))
    ragtrace.recorder().sweep(now=LATER)
    assert seen.open == []
    ends = {fact(root, "input.value"): fact(root, "ragtrace.run.outcome") for root in seen.roots}
    assert ends == {"leaked?": "partial", "abandoned?": "partial", "broken?": "error", "cancelled?": "cancelled"}
    list(leaked)
    assert (seen.open, len(seen.roots)) == ([], 4)


async def cancelled(config):
    begun = asyncio.Event()

    class Slow(Faq):
        async def _aget_relevant_documents(self, query, *, run_manager):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(lcel(Slow()).ainvoke("cancelled?", config))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


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
def test_03_pool_selection_and_prompt_with_both_scores_and_ranks_in_every_form(seen, config, form):
    build, pool, chosen = FORMS[form]
    answered_from(build() | shown).invoke("Where?", config)
    whole(seen, pool, chosen)


def test_03_and_in_the_nodes_of_a_graph(seen, config):
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


@pytest.mark.parametrize("size", [100, 1_000])
def test_04_a_large_pool_loses_nothing_in_few_attributes(seen, config, size):
    answered_from(Many(size=size, chars=40) | RunnableLambda(best_of) | shown).invoke("Where?", config)
    root = seen.root
    names = [f"doc-{i}" for i in range(size)]
    (retrieval,) = seen.of("retrieval")
    rows = read(retrieval, DOCUMENTS)
    assert ids(root, "pool") == [row["id"] for row in rows] == names
    assert (
        read(root, "ragtrace.pool.scores")
        == [row["score"] for row in rows]
        == [1 - i / size / 2 for i in range(size)]
    )
    assert [row["rank"] for row in rows] == list(range(1, size + 1))
    assert ids(root, "selected") == names[:-9:-1]
    assert fact(root, "input.value") == "Where?"
    assert max(len(span.attributes) for span in seen.spans) <= 30
    assert_nothing_dropped(seen.spans)


def test_05_a_megabyte_and_a_half_of_documents_makes_small_whole_spans(seen, config):
    answered_from(Many(size=50, chars=30_000) | RunnableLambda(best_of) | shown).invoke("Where?", config)
    assert sum(map(attribute_bytes, seen.spans)) <= MOST_ATTRIBUTE_BYTES
    assert_json_is_whole(seen.spans)
    (retrieval,) = seen.of("retrieval")
    assert len(read(retrieval, DOCUMENTS)) == 50
    assert fact(retrieval, "ragtrace.retrieval.document.truncated") > 0


@pytest.mark.parametrize(("settings", "most"), WIRE_BYTES)
def test_06_what_a_run_sends_is_bounded(config, settings, most):
    """The CPU of a run is measured in benchmarks/overhead; spans, attributes and bytes are what it depends on."""
    with watching(**settings) as seen:
        answered_from(Many(size=50, chars=800) | RunnableLambda(best_of) | shown).invoke("Where?", config)
        assert len(seen.spans) == 4
        assert sum(len(span.attributes) for span in seen.spans) <= 45
        assert seen.wire_bytes() <= most


def test_07_a_long_lived_handler_keeps_nothing():
    with watching() as seen:
        handler = RagtraceHandler()
        config = {"callbacks": [handler]}
        for _ in range(50):
            lcel().invoke("Where?", config)
        seen.clear()
        gc.collect()
        before = len(gc.get_objects())
        for number in range(500):
            if number % 10 == 9:
                stream = lcel().stream("Where?", config)
                next(stream)
                del stream
            else:
                lcel().invoke("Where?", config)
            seen.clear()
        gc.collect()
        assert len(handler._runs) == 0
        assert len(gc.get_objects()) - before < 50  # 0 a run; the interpreter's own come and go


def test_08_a_streamed_question_and_answer_are_right_on_the_root(seen, config):
    assert "".join(lcel().stream("Where?", config)) == ANSWER
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    seen.clear()

    async def streamed():
        return "".join([piece async for piece in lcel().astream("And async?", config)])

    assert asyncio.run(streamed()) == ANSWER
    assert asked_and_answered(seen.root) == ("And async?", ANSWER, "answered")


def test_09_an_interrupt_is_no_error_and_its_payload_is_kept(seen, config):
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


def test_09_nor_is_a_command_to_the_parent_graph(seen, config):
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


def test_09_nor_is_a_cancellation(seen, config):
    asyncio.run(cancelled(config))
    assert fact(seen.root, "ragtrace.run.outcome") == "cancelled"
    assert no_errors(seen)


def no_errors(seen):
    return [span.name for span in seen.spans if span.status.status_code is StatusCode.ERROR] == []


def test_10_with_no_network_and_no_judge_the_results_are_unchanged(config):
    """The tests' sockets reach loopback alone; a judge that answers nobody changes nothing."""
    pytest.importorskip("openai", reason="the judge over a server needs the extra openai")
    ragtrace.configure(
        judge="openai:nobody", judge_base_url="http://127.0.0.1:9/v1", judge_api_key="x", sample_rate=1.0
    )
    try:
        assert lcel().invoke("Where?", config) == ANSWER
    finally:
        ragtrace.shutdown(0.2)
