"""The classes of defects that instrumentations of LlamaIndex have had, each as a test that sees it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import pytest
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import (
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import ragtrace
from integrations.llamaindex.tests.parts import Best, Broken, Faq, Given, InPlace, Llm, engine, until, words
from ragtrace_llamaindex import instrument, instrumented, uninstrument
from ragtrace_llamaindex.instrumentation import tracer
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


@pytest.fixture(autouse=True)
def installed(seen):
    instrument()
    yield
    uninstrument()


def whole(seen, root, question="Where?"):
    """Every fact of one run of the usual engine, and each step once and under its root."""
    assert asked_and_answered(root) == (question, ANSWER, "answered")
    assert (len(ids(root, "pool")), ids(root, "selected"), ids(root, "prompt")) == (6, ["d5", "d4"], ["d5", "d4"])
    for kind in ("retrieval", "rerank", "chat"):
        (one,) = seen.of(kind, root)
        assert one.parent.span_id == root.context.span_id


class Found(Event):
    nodes: list


class Rag(Workflow):
    @step
    async def find(self, ev: StartEvent) -> Found:
        return Found(nodes=await Faq().aretrieve(ev.query))

    @step
    async def answer(self, ev: Found) -> StopEvent:
        chosen = Best().postprocess_nodes(ev.nodes)
        reply = await Llm().acomplete("\n".join(one.text for one in chosen))
        return StopEvent(result=reply.text)


class Asks(Workflow):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Which lab?")  # type: ignore[call-arg]

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=ev.response)


async def test_class_02_async_steps_are_no_roots(seen):
    """Fails when a step that runs in a task begins a trace of its own."""
    fused = QueryFusionRetriever(
        [Faq(size=3), Faq(size=3, prefix="w")],
        llm=Llm(says="other"),
        num_queries=2,
        similarity_top_k=4,
        use_async=True,
    )
    await engine(fused, []).aquery("Where?")
    root = seen.root
    assert {span.context.trace_id for span in seen.spans} == {root.context.trace_id}
    (outer,) = [span for span in seen.of("retrieval") if span.parent.span_id == root.context.span_id]
    leaves = [span for span in seen.of("retrieval") if span is not outer]
    assert [leaf.parent.span_id for leaf in leaves] == [outer.context.span_id] * 4


async def test_class_03_the_next_request_is_a_root(seen):
    """Fails when requests at once, a failure or an open stream become the parent of the next request."""
    await asyncio.gather(*(engine().aquery(f"{number}?") for number in range(3)))
    with pytest.raises(ConnectionError):
        engine(Broken()).query("failed?")
    pieces = engine(streaming=True).query("left?").response_gen
    next(pieces)
    engine().query("next?")  # while the stream is still open
    del pieces
    gc.collect()
    asked = [fact(root, "input.value") for root in seen.roots]
    assert sorted(asked[:3]) == ["0?", "1?", "2?"]
    assert asked[3:] == ["failed?", "next?", "left?"]
    assert len({root.context.trace_id for root in seen.roots}) == 6
    whole(seen, seen.roots[4], "next?")
    assert not trace.get_current_span().get_span_context().is_valid


def test_class_04_no_run_and_no_payload_is_kept(seen):
    """Fails when a map of spans is not emptied at the end of a run, on errors and abandoned streams too."""
    watched = []

    class Heavy(Faq):
        def _retrieve(self, query_bundle):
            found = super()._retrieve(query_bundle)
            watched.extend(weakref.ref(one.node) for one in found)
            return found

    for number in range(60):
        if number % 3 == 0:
            with pytest.raises(LookupError):
                engine(Heavy(size=4), llm=Llm(error=LookupError())).query("?")
        elif number % 3 == 1:
            next(engine(Heavy(size=4), streaming=True).query("?").response_gen)
        else:
            engine(Heavy(size=4)).query("?")
        seen.clear()
    gc.collect()
    assert len(watched) == 240
    assert sum(one() is not None for one in watched) <= 8  # the exception last raised, and its frames
    assert (len(tracer), ragtrace.recorder().open_runs, seen.open) == (0, 0, [])


def test_class_05_a_dropped_stream_ends_its_spans(seen):
    """Fails when a stream that is not read to its end leaves a span open for ever."""
    pieces = engine(streaming=True).query("Where?").response_gen
    next(pieces)
    next(pieces)
    del pieces
    gc.collect()
    assert seen.open == []
    assert asked_and_answered(seen.root) == ("Where?", "The lab", "partial")


def test_class_05_a_stream_never_read_ends_its_spans(seen):
    """Fails when the end of a run waits for a first piece that nobody reads."""
    response = engine(streaming=True).query("Where?")
    del response
    gc.collect()
    assert (seen.open, fact(seen.root, "ragtrace.run.outcome")) == ([], "partial")


def test_class_05_a_leaked_stream_is_ended_by_the_time_limit(seen):
    """Fails when only the end of a stream ends its span: here a reference keeps it for ever."""
    pieces = engine(streaming=True).query("Where?").response_gen
    next(pieces)
    ragtrace.recorder().sweep(now=LATER)
    assert (seen.open, asked_and_answered(seen.root)) == ([], ("Where?", "The", "partial"))
    assert "".join(pieces) == " lab is in Oslo."
    assert len(seen.roots) == 1


def test_class_05_a_stream_that_breaks_ends_as_an_error(seen):
    """Fails when a model's failure in the middle of a stream ends no span."""
    with pytest.raises(ConnectionResetError):
        list(engine(llm=Llm(error=ConnectionResetError("gone")), streaming=True).query("Where?").response_gen)
    assert (seen.open, fact(seen.root, "ragtrace.run.outcome")) == ([], "error")
    assert seen.root.status.status_code is StatusCode.ERROR


async def test_class_06_a_stream_is_recorded_whole_and_reaches_the_reader_untouched(seen):
    """Fails when the output is a generator's repr or the last chunk, or the recording consumes the stream."""
    response = engine(streaming=True).query("sync?")
    assert type(response) is StreamingResponse
    assert list(response.response_gen) == words(ANSWER)
    response = await engine(streaming=True).aquery("async?")
    assert [piece async for piece in response.async_response_gen()] == words(ANSWER)
    assert [asked_and_answered(root)[:2] for root in seen.roots] == [("sync?", ANSWER), ("async?", ANSWER)]
    assert len(seen.of("chat")) == 2
    for call in seen.of("chat"):
        assert read(call, "gen_ai.output.messages")[0]["parts"][0]["content"] == ANSWER


def test_class_06_a_chat_engine_s_stream_is_whole(seen):
    """Fails when the answer of `stream_chat`, whose end event carries no text, is empty."""
    chat = ContextChatEngine.from_defaults(retriever=Faq(), llm=Llm(), node_postprocessors=[Best()])
    assert "".join(chat.stream_chat("Where?").response_gen) == ANSWER
    done = threading.Event()
    for _ in range(1000):  # its model is read in a thread of its own
        if seen.roots or done.wait(0.005):
            break
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")


def test_class_09_two_registrations_make_no_second_span(seen):
    """Fails when `instrument` twice, or public and private methods of one call, double the spans."""
    instrument()
    instrument()
    engine().query("Where?")
    assert len(seen.spans) == 4
    whole(seen, seen.root)
    seen.clear()
    with instrumented():
        engine().query("Where?")
    assert len(seen.spans) == 4


async def test_class_09_an_async_call_over_a_sync_one_is_one_span(seen):
    """Fails when `aretrieve`, which calls `retrieve`, counts as two retrievals."""
    await engine().aquery("Where?")
    assert len(seen.spans) == 4
    whole(seen, seen.root)


def test_class_10_many_threads_mix_nothing(seen):
    """Fails when two runs at once share a parent, or a map changes its size while it is read."""

    def ask(number):
        for turn in range(3):
            name = f"{number}-{turn}-"
            engine(Faq(size=2, prefix=name), []).query(f"{name}?")

    in_threads(ask, 24)
    assert (len(seen.roots), seen.open, seen.lost) == (72, [], {})
    for root in seen.roots:
        name = fact(root, "input.value")[:-1]
        assert ids(root, "pool") == ids(root, "prompt") == [f"{name}0", f"{name}1"]
        assert (len(seen.of("retrieval", root)), len(seen.of("chat", root))) == (1, 1)


def test_class_11_a_large_pool_makes_no_oversized_span(seen):
    """Fails when a span outgrows what exporters and collectors take (4 MB), or a cut leaves broken JSON."""
    found = [
        NodeWithScore(node=TextNode(id_=f"d{i}", text=f'"{i}" \\ é ' * 7500), score=1 - i / 100) for i in range(20)
    ]
    engine(Given(found), [Best()], mode="simple_summarize").query("Where?")
    assert max(attribute_bytes(span) for span in seen.spans) <= 300_000
    assert_json_is_whole(seen.spans)
    (retrieval,) = seen.of("retrieval")
    assert fact(retrieval, "ragtrace.retrieval.document.truncated") > 0
    assert ids(seen.root, "pool") == [f"d{i}" for i in range(20)]


def test_class_12_a_pool_of_a_hundred_loses_no_attribute(seen):
    """Fails when one attribute a document runs into the SDK's limit of 128, which drops the query and the top."""
    engine(Faq(size=100), [Best(top_n=100)], mode="simple_summarize").query("Where?")
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


def test_class_13_metadata_that_is_no_json_is_harmless(seen):
    """Fails when a node's metadata that cannot be serialised raises or loses the run."""
    node = TextNode(id_="d0", text="Passage d0.")
    # LlamaIndex 0.14.0 takes each value's repr itself: there such an object fails the query without us as well.
    rude = {} if version("llama-index-core") == "0.14.0" else {"rude": Rude()}
    node.metadata.update(lock=threading.Lock(), page=1, **rude)
    node.excluded_llm_metadata_keys = ["lock", "rude", "page"]
    assert str(engine(Given([NodeWithScore(node=node, score=1.0)]), []).query("Where?")) == ANSWER
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    assert read(seen.of("retrieval")[0], DOCUMENTS)[0]["metadata"] == {"page": 1}


class Loses(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=TextNode(text=one.text)) for one in nodes[4:2:-1]]


def test_class_14_a_reranker_that_drops_ids_still_joins_the_pool(seen):
    """Fails when new nodes, whose ids are random, are strangers to the pool."""
    engine(postprocessors=[Loses()]).query("Where?")
    assert (ids(seen.root, "selected"), read(seen.root, "ragtrace.selected.ranks")) == (["d4", "d3"], [5, 4])


@pytest.mark.parametrize("kind", [Best, InPlace])
def test_class_14_the_two_scores_are_kept_apart(seen, kind):
    """Fails when a reranker that writes into the same nodes changes the retriever's scores."""
    engine(postprocessors=[kind()]).query("Where?")
    (found,), (chosen,) = seen.of("retrieval"), seen.of("rerank")
    assert [one["score"] for one in read(found, DOCUMENTS)] == pytest.approx([1, 0.99, 0.98, 0.97, 0.96, 0.95])
    rows = [(one["id"], one["retrieval_score"], one["previous_rank"]) for one in read(chosen, RERANKED)]
    assert rows == [("d5", 0.95, 6), ("d4", 0.96, 5)]
    expected = [0.9, 0.8] if kind is Best else [0.5, 0.4]
    assert [one["score"] for one in read(chosen, RERANKED)] == pytest.approx(expected)


async def test_class_15_a_workflow_s_steps_are_inside_its_run(seen):
    """Fails when the root ends before its steps do, or the steps have no parent."""
    assert await Rag().run(query="Where?") == ANSWER
    await until(lambda: seen.roots)
    root = seen.root
    whole(seen, root)
    assert all(span.end_time <= root.end_time for span in seen.spans)
    assert seen.open == []


async def test_class_15_workflows_at_once_keep_their_steps(seen):
    """Fails when the steps of concurrent workflows change hands."""
    assert await asyncio.gather(*(Rag().run(query=f"{number}?") for number in range(5))) == [ANSWER] * 5
    await until(lambda: len(seen.roots) == 5)
    for root in seen.roots:
        whole(seen, root, fact(root, "input.value"))


async def read_async(app):
    response = await app.aquery("async?")
    if hasattr(response, "async_response_gen"):
        async for _ in response.async_response_gen():
            pass


@pytest.mark.parametrize("where", ["retriever", "reranker", "model", "stream"])
async def test_class_17_a_failure_ends_every_span(seen, where):
    """Fails when the error path, where LlamaIndex drops a span, ends none."""

    class Fails(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            raise ConnectionError("reranker is down")

    down = Llm(error=ConnectionError("model is down"))
    app = {
        "retriever": lambda: engine(Broken()),
        "reranker": lambda: engine(postprocessors=[Fails()]),
        "model": lambda: engine(llm=down),
        "stream": lambda: engine(llm=down, streaming=True),
    }[where]()
    with pytest.raises(ConnectionError):
        str(app.query("sync?"))
    with pytest.raises(ConnectionError):
        await read_async(app)
    gc.collect()
    assert seen.open == []
    assert [fact(root, "input.value") for root in seen.roots] == ["sync?", "async?"]
    assert {root.status.status_code for root in seen.roots} == {StatusCode.ERROR}


ALONE = """
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {missing} or name in {missing}:
                raise ModuleNotFoundError(name, name=name)

    sys.meta_path.insert(0, Missing())
"""


def alone(missing, work):
    text = textwrap.dedent(ALONE).replace("{missing}", repr(missing)) + textwrap.dedent(work)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)


def test_class_18_llama_index_core_alone_is_enough():
    """Fails when the integration imports a package that it does not need."""
    others = {"llama_index.llms", "llama_index.embeddings", "llama_index.readers", "openai", "langchain_core"}
    work = """
        import ragtrace_llamaindex
        from llama_index.core.retrievers import BaseRetriever
        from llama_index.core.schema import NodeWithScore, TextNode
        from ragtrace.capture import Recorder, internal_errors

        class One(BaseRetriever):
            def _retrieve(self, query_bundle):
                return [NodeWithScore(node=TextNode(text="a"), score=1.0)]

        ragtrace_llamaindex.instrument(Recorder())
        print(One().retrieve("?")[0].text, internal_errors())
    """
    done = alone(others, work)
    assert (done.stdout, done.returncode) == ("a {}\n", 0), done.stderr


def test_class_18_without_llama_index_core_the_extra_is_named():
    """Fails when a missing framework shows as a bare ImportError, or breaks `import ragtrace`."""
    done = alone({"llama_index"}, "import ragtrace, ragtrace.capture\nprint('whole')\nimport ragtrace_llamaindex\n")
    assert (done.stdout, done.returncode) == ("whole\n", 1)
    assert "MissingExtra" in done.stderr
    assert "[llamaindex]" in done.stderr


def test_a_stream_read_in_another_thread_is_whole(seen):
    """Fails when what happens in the reader's thread is lost or is a run of its own (class 1 elsewhere)."""
    pieces = engine(streaming=True).query("Where?").response_gen
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit("".join, pieces).result() == ANSWER
    whole(seen, seen.root)
