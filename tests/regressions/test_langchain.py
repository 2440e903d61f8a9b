"""The classes of defects that instrumentations of LangChain and LangGraph have had, each as a test that sees it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import operator
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import ragtrace
from integrations.langchain.tests.parts import Broken, Faq, chat, lcel, rerank, shown
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.kept import ANSWER
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
    in_threads,
    read,
)

LETTERS = list(ANSWER)  # the model streams letter by letter


@pytest.fixture
def handler():
    return RagtraceHandler()


@pytest.fixture
def config(handler):
    return {"callbacks": [handler]}


def whole(seen, root, question):
    """Every fact of one run of the usual chain, and each step once and under its root."""
    assert asked_and_answered(root) == (question, ANSWER, "answered")
    assert (len(ids(root, "pool")), ids(root, "selected"), ids(root, "prompt")) == (6, ["d3", "d2"], ["d3", "d2"])
    for kind in ("retrieval", "rerank", "chat"):
        (step,) = seen.of(kind, root)
        assert step.parent.span_id == root.context.span_id


class State(TypedDict, total=False):
    question: str
    documents: list
    generation: str
    notes: Annotated[list, operator.add]


def graph(node, *, saver=False):
    built = StateGraph(State)
    built.add_node("retrieve", lambda s: {"documents": Faq().invoke(s["question"])})
    built.add_node("node", node)
    built.add_node("generate", lambda s: {"generation": chat().invoke(shown(rerank(s["documents"]))).content})
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "node")
    built.add_edge("node", "generate")
    built.add_edge("generate", END)
    return built.compile(checkpointer=InMemorySaver() if saver else None)


def test_class_01_a_stream_read_on_in_another_context_detaches_nothing(seen, config, caplog):
    """Fails when a callback attaches a context that another thread or context has to detach."""
    stream = lcel().stream("Where?", config)
    first = contextvars.copy_context().run(next, stream)
    assert not trace.get_current_span().get_span_context().is_valid
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, stream).result()
    assert [first, *rest] == LETTERS
    assert [r.message for r in caplog.records if "detach" in r.message.lower()] == []
    whole(seen, seen.root, "Where?")


async def test_class_01_an_async_stream_closed_by_another_task_detaches_nothing(seen, config, caplog):
    """Fails when the end of an abandoned stream detaches a token that was made in another task's context."""
    stream = lcel().astream("Where?", config)
    await asyncio.create_task(anext(stream))
    await asyncio.create_task(stream.aclose())
    await asyncio.get_running_loop().shutdown_asyncgens()
    assert [r.message for r in caplog.records if "detach" in r.message.lower()] == []
    assert (seen.open, fact(seen.root, "ragtrace.run.outcome")) == ([], "partial")


async def test_class_02_async_steps_are_no_roots(seen, config):
    """Fails when a step that runs in a task or in an executor's thread begins a trace of its own."""

    async def both(question):
        found = await asyncio.gather(Faq(prefix="a").ainvoke(question), Faq(prefix="b").ainvoke(question))
        return shown([document for documents in found for document in documents])

    await (RunnableLambda(both) | chat()).ainvoke("Where?", config)  # Faq is synchronous: it runs in an executor
    root = seen.root
    assert len(seen.spans) == 4
    assert {span.context.trace_id for span in seen.spans} == {root.context.trace_id}
    assert {span.parent.span_id for span in seen.spans if span is not root} == {root.context.span_id}


async def test_class_02_a_graph_s_async_nodes_are_no_roots(seen, config):
    """Fails when the nodes of an asynchronous graph lose their parent."""

    async def node(state):
        return {"documents": await asyncio.to_thread(rerank, state["documents"])}

    await graph(node).ainvoke({"question": "Where?"}, config)
    assert {span.context.trace_id for span in seen.spans} == {seen.root.context.trace_id}
    assert len(seen.of("retrieval")) == 1


def test_class_03_the_request_after_a_batch_is_a_root(seen, config):
    """Fails when a batch leaves its span as the current one, so that the next request hangs off it."""
    lcel().batch(["a?", "b?", "c?"], config)
    lcel().invoke("next?", config)
    assert sorted(fact(root, "input.value") for root in seen.roots) == ["a?", "b?", "c?", "next?"]
    assert len({root.context.trace_id for root in seen.roots}) == 4
    for root in seen.roots:
        whole(seen, root, fact(root, "input.value"))
    assert not trace.get_current_span().get_span_context().is_valid


def test_class_03_the_request_after_a_failure_or_an_abandoned_stream_is_a_root(seen, config):
    """Fails when a run that did not end well stays the parent of what comes after it."""
    with pytest.raises(ConnectionError):
        lcel(Broken()).invoke("failed?", config)
    stream = lcel().stream("left?", config)
    next(stream)
    lcel().invoke("next?", config)  # while the stream is still open
    del stream
    assert [fact(root, "input.value") for root in seen.roots] == ["failed?", "next?", "left?"]
    whole(seen, seen.roots[1], "next?")


class Heavy(Document):
    """A document that can be watched."""


def test_class_04_a_long_lived_handler_keeps_no_run_and_no_payload(seen, config, handler):
    """Fails when a map of runs is not emptied at the end of a run, on errors and abandoned streams too."""
    watched = []

    def find(question):
        found = [Heavy(id=f"d{i}", page_content=f"{question} {i} " + "x" * 1000) for i in range(4)]
        watched.extend(weakref.ref(one) for one in found)
        return found

    def model(text):
        if "fails" in text:
            raise LookupError
        return chat().invoke("Use this:\n" + text).content

    good = RunnableLambda(find) | RunnableLambda(lambda docs: docs[:2]) | shown | RunnableLambda(model)
    streaming = RunnableLambda(find) | shown | chat()
    for number in range(60):
        if number % 3 == 0:
            with pytest.raises(LookupError):
                good.invoke("fails", config)
        elif number % 3 == 1:
            next(streaming.stream("left", config))
        else:
            good.invoke("works", config)
        seen.clear()
    gc.collect()
    assert len(watched) == 240
    assert sum(one() is not None for one in watched) <= 8  # the exception last raised, and its frames
    assert (len(handler._runs), ragtrace.recorder().open_runs, seen.open) == (0, 0, [])


def test_class_05_a_dropped_stream_ends_its_spans(seen, config):
    """Fails when a stream that is not read to its end leaves a span open for ever."""
    stream = lcel().stream("Where?", config)
    assert next(stream) == ANSWER[0]
    del stream
    gc.collect()
    assert seen.open == []
    assert asked_and_answered(seen.root) == ("Where?", ANSWER[0], "partial")


def test_class_05_a_leaked_stream_is_ended_by_the_time_limit(seen, config):
    """Fails when only the end of a stream ends its span: here a reference keeps it for ever."""
    stream = lcel().stream("Where?", config)
    next(stream)
    ragtrace.recorder().sweep(now=LATER)
    assert (seen.open, fact(seen.root, "ragtrace.run.outcome")) == ([], "partial")
    assert "".join(stream) == ANSWER[1:]
    assert len(seen.roots) == 1


def test_class_05_a_stream_never_read_opens_nothing(seen, config):
    """Fails when a stream that nobody reads has a span already, which nothing ends."""
    stream = lcel().stream("Where?", config)
    del stream
    gc.collect()
    assert (seen.open, seen.spans) == ([], [])


def test_class_05_a_stream_that_breaks_ends_as_an_error(seen, config):
    """Fails when a failure in the middle of a stream ends no span."""

    def breaks(chunks):
        for number, chunk in enumerate(chunks):
            if number == 3:
                raise ConnectionResetError("gone")
            yield chunk

    with pytest.raises(ConnectionResetError):
        list((lcel() | RunnableGenerator(breaks)).stream("Where?", config))
    assert (seen.open, fact(seen.root, "ragtrace.run.outcome")) == ([], "error")
    assert seen.root.status.status_code is StatusCode.ERROR


async def test_class_06_a_stream_is_recorded_whole_and_reaches_the_reader_untouched(seen, config):
    """Fails when the output is a generator's repr or the last chunk, the input is empty, or a chunk is eaten."""
    assert list(lcel().stream("sync?", config)) == LETTERS
    assert [chunk async for chunk in lcel().astream("async?", config)] == LETTERS
    assert [asked_and_answered(root)[:2] for root in seen.roots] == [("sync?", ANSWER), ("async?", ANSWER)]
    assert len(seen.of("chat")) == 2
    for call in seen.of("chat"):
        assert read(call, "gen_ai.output.messages")[0]["parts"][0]["content"] == ANSWER


def test_class_07_an_interrupt_is_no_error_and_keeps_its_payload(seen, config):
    """Fails when LangGraph's control flow is shown as an error, or what it asks is lost."""
    config["configurable"] = {"thread_id": "t1"}
    app = graph(lambda s: {"notes": [interrupt({"really": True})]}, saver=True)
    app.invoke({"question": "Where?"}, config)
    root = seen.root
    assert (fact(root, "ragtrace.run.outcome"), read(root, "ragtrace.run.interrupt")) == (
        "interrupted",
        {"really": True},
    )
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert [event.name for span in seen.spans for event in span.events if "exception" in event.name] == []


def test_class_07_a_command_to_the_parent_is_no_error(seen, config):
    """Fails when ParentCommand, which is raised, counts as a failure."""
    inner = StateGraph(State)
    inner.add_node("go", lambda s: Command(goto="other", graph=Command.PARENT, update={"notes": ["a"]}))
    inner.add_edge(START, "go")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile(), destinations=("other",))
    outer.add_node("other", lambda s: {"generation": ANSWER})
    outer.add_edge(START, "inner")
    outer.compile().invoke({"question": "Where?"}, config)
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}


def test_class_07_an_application_s_error_of_the_same_name_is_an_error(seen, config):
    """Fails when control flow is told by the name of the exception's class."""

    class GraphInterrupt(Exception):
        pass

    def node(state):
        raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        graph(node).invoke({"question": "Where?"}, config)
    assert (fact(seen.root, "ragtrace.run.outcome"), seen.root.status.status_code) == ("error", StatusCode.ERROR)


async def test_class_07_a_cancelled_task_is_no_error(seen, config):
    """Fails when asyncio's cancellation is shown as an error of the application."""
    begun = asyncio.Event()

    async def waits(question):
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task((Faq() | RunnableLambda(waits)).ainvoke("Where?", config))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (fact(seen.root, "ragtrace.run.outcome"), seen.root.status.status_code) == (
        "cancelled",
        StatusCode.UNSET,
    )


def test_class_08_no_lifecycle_method_is_missing(seen, config, caplog):
    """Fails when LangChain or LangGraph calls a method by name that is not there, and warns each time."""
    caplog.set_level(logging.WARNING)
    config["configurable"] = {"thread_id": "t1"}
    app = graph(lambda s: {"notes": [interrupt("May I?")]}, saver=True)
    app.invoke({"question": "Where?"}, config)
    app.invoke(Command(resume="yes"), config)
    create_retriever_tool(Faq(), "search", "Searches.").invoke({"query": "Where?"}, config)
    FakeListLLM(responses=[ANSWER]).invoke("Where?", config)
    list(lcel().stream("Where?", config))
    flaky = iter([ConnectionError("once"), None])

    def once(question):
        error = next(flaky)
        if error is not None:
            raise error
        return question

    RunnableLambda(once).with_retry(wait_exponential_jitter=False).invoke("Where?", config)
    assert [record.getMessage() for record in caplog.records] == []
    named = [name for name in vars(BaseCallbackHandler) if name.startswith("on_")]
    assert [name for name in [*named, "on_interrupt", "on_resume"] if not hasattr(RagtraceHandler, name)] == []


def test_class_09_two_registrations_make_no_second_span(seen, handler):
    """Fails when a handler given twice, two handlers, or a handler beside the global install double the spans."""
    ways = (
        lambda: lcel().invoke("Where?", {"callbacks": [handler, handler]}),
        lambda: lcel().invoke("Where?", {"callbacks": [handler, RagtraceHandler()]}),
        lambda: lcel().with_config(callbacks=[handler]).invoke("Where?", {"callbacks": [handler]}),
    )
    for call in ways:
        seen.clear()
        call()
        assert len(seen.spans) == 4
        whole(seen, seen.root, "Where?")
    instrument()
    instrument()
    try:
        for given in ({}, {"callbacks": [handler]}):
            seen.clear()
            lcel().invoke("Where?", given)
            assert len(seen.spans) == 4
    finally:
        uninstrument()


def test_class_10_one_handler_in_many_threads_mixes_nothing(seen, config):
    """Fails when two runs at once share a parent, or a map changes its size while it is read."""

    def ask(number):
        for turn in range(3):
            name = f"{number}-{turn}-"
            both = RunnableParallel(a=Faq(size=2, prefix=f"{name}a"), b=Faq(size=2, prefix=f"{name}b"))
            text = RunnableLambda(lambda found: shown([*found["a"], *found["b"]]))
            (both | text | chat()).invoke(f"{name}?", config)

    in_threads(ask, 24)
    assert (len(seen.roots), seen.open, seen.lost) == (72, [], {})
    for root in seen.roots:
        name = fact(root, "input.value")[:-1]
        assert sorted(ids(root, "pool")) == [f"{name}a0", f"{name}a1", f"{name}b0", f"{name}b1"]
        assert len(seen.of("retrieval", root)) == 2
        assert len(seen.of("chat", root)) == 1


def test_class_11_a_large_pool_makes_no_oversized_span(seen, config):
    """Fails when a span outgrows what exporters and collectors take (4 MB), or a cut leaves broken JSON."""

    def find(question):
        return [Document(id=f"d{i}", page_content=f'"{i}" \\ é ' * 7500) for i in range(20)]  # 1.5 MB

    (RunnableLambda(find) | RunnableLambda(lambda docs: docs[:8]) | shown | chat()).invoke("Where?", config)
    assert max(attribute_bytes(span) for span in seen.spans) <= 300_000
    assert_json_is_whole(seen.spans)
    (found,) = seen.of("retrieval")
    assert fact(found, "ragtrace.retrieval.document.truncated") > 0
    assert ids(seen.root, "pool") == [f"d{i}" for i in range(20)]


def test_class_12_a_pool_of_a_hundred_loses_no_attribute(seen, config):
    """Fails when one attribute a document runs into the SDK's limit of 128, which drops the query and the top."""
    lcel(Faq(size=100), reranker=lambda docs: docs[::-1]).invoke("Where?", config)
    assert_nothing_dropped(seen.spans)
    assert max(len(span.attributes) for span in seen.spans) < 30
    (found,) = seen.of("retrieval")
    documents = read(found, DOCUMENTS)
    assert [one["id"] for one in documents] == [f"d{i}" for i in range(100)]
    assert [one["score"] for one in documents] == pytest.approx([1 - i / 100 for i in range(100)])
    assert fact(found, "gen_ai.retrieval.query.text") == "Where?"
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")


class Rude:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__


def test_class_13_inputs_that_are_no_json_are_harmless(seen, config):
    """Fails when an input, an output or metadata that cannot be serialised raises or loses the run."""
    lock = threading.Lock()

    def find(given):
        return [Document(id="d0", page_content="Passage d0.", metadata={"lock": lock, "rude": Rude(), "page": 1})]

    chain = RunnableLambda(find) | shown | chat()
    assert chain.invoke({"question": "Where?", "lock": lock, "rude": Rude()}, config).content == ANSWER
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    assert read(seen.of("retrieval")[0], DOCUMENTS)[0]["metadata"] == {"page": 1}
    assert_json_is_whole(seen.spans)


def test_class_13_serialized_may_be_none(seen, handler):
    """Fails when a name is read out of `serialized`, which LangChain gives as None."""
    from uuid import uuid4

    chain, retriever, model = uuid4(), uuid4(), uuid4()
    handler.on_chain_start(None, {"question": "Where?"}, run_id=chain)
    handler.on_retriever_start(None, "Where?", run_id=retriever, parent_run_id=chain)
    handler.on_retriever_end([Document("Passage.", id="d0")], run_id=retriever, parent_run_id=chain)
    handler.on_llm_start(None, ["Passage."], run_id=model, parent_run_id=chain)
    handler.on_llm_end(FakeListLLM(responses=[ANSWER]).generate(["?"]), run_id=model, parent_run_id=chain)
    handler.on_chain_end({"answer": ANSWER}, run_id=chain)
    assert (asked_and_answered(seen.root), seen.lost) == (("Where?", ANSWER, "answered"), {})
    assert ids(seen.root, "pool") == ["d0"]


def test_class_14_a_reranker_that_drops_ids_still_joins_the_pool(seen, config):
    """Fails when new documents without ids are strangers to the pool."""
    lose = RunnableLambda(lambda docs: [Document(page_content=d.page_content) for d in docs[4:2:-1]], name="lose")
    (Faq() | lose | shown | chat()).invoke("Where?", config)
    assert (ids(seen.root, "selected"), read(seen.root, "ragtrace.selected.ranks")) == (["d4", "d3"], [5, 4])


def test_class_14_the_two_scores_are_kept_apart(seen, config):
    """Fails when the reranker's score takes the place of the retriever's, or the other way round."""
    lcel().invoke("Where?", config)
    (found,), (chosen,) = seen.of("retrieval"), seen.of("rerank")
    assert [one["score"] for one in read(found, DOCUMENTS)][2:4] == [0.98, 0.97]
    rows = [
        (one["id"], one["score"], one["retrieval_score"], one["previous_rank"]) for one in read(chosen, RERANKED)
    ]
    assert rows == [("d3", 0.9, 0.97, 4), ("d2", 0.8, 0.98, 3)]


async def test_class_16_callbacks_of_async_runs_are_called_in_their_own_context(seen):
    """Fails when `run_inline` is missing: LangChain then calls in an executor's thread, where context is lost."""
    written = contextvars.ContextVar("written", default="")
    threads = set()

    class Writes(RagtraceHandler):
        def on_chain_start(self, *args, **kwargs):
            threads.add(threading.get_ident())
            written.set("kept")
            return super().on_chain_start(*args, **kwargs)

    async def reads(question):
        await chat("x").ainvoke(question)
        return written.get()

    assert await RunnableLambda(reads).ainvoke("Where?", {"callbacks": [Writes()]}) == "kept"
    assert threads == {threading.get_ident()}
    assert fact(seen.root, "output.value") == "kept"


ALONE = """
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {missing}:
                raise ModuleNotFoundError(name, name=name)

    sys.meta_path.insert(0, Missing())
"""


def alone(missing, work):
    text = textwrap.dedent(ALONE).replace("{missing}", repr(missing)) + textwrap.dedent(work)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)


def test_class_18_langchain_core_alone_is_enough():
    """Fails when the integration imports a package that it does not need."""
    others = {"langchain", "langchain_classic", "langchain_community", "langgraph", "llama_index", "openai"}
    work = """
        from langchain_core.documents import Document
        from langchain_core.runnables import RunnableLambda
        from ragtrace.capture import Recorder, internal_errors
        from ragtrace_langchain import RagtraceHandler, TracedCompressor, instrument, mark_selected

        chain = RunnableLambda(lambda q: [Document(page_content="a", id="a")]) | (lambda docs: docs[0].page_content)
        print(chain.invoke("?", {"callbacks": [RagtraceHandler(Recorder())]}), internal_errors())
    """
    done = alone(others, work)
    assert (done.stdout, done.returncode) == ("a {}\n", 0), done.stderr


def test_class_18_without_langchain_core_the_extra_is_named():
    """Fails when a missing framework shows as a bare ImportError, or breaks `import ragtrace`."""
    done = alone(
        {"langchain_core"}, "import ragtrace, ragtrace.capture\nprint('whole')\nimport ragtrace_langchain\n"
    )
    assert (done.stdout, done.returncode) == ("whole\n", 1)
    assert "MissingExtra" in done.stderr
    assert "[langchain]" in done.stderr
