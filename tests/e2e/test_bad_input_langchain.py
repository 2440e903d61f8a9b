"""Inputs that no application should make and some do, with LangChain: the result is that of a bare run.

Each input is run twice, without ragtrace and with it; the results, or the errors, are the same. The spans are whole
JSON, hold what could be kept, and say what could not.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import ragtrace
from integrations.langchain.tests.parts import ANSWER, chat, lcel
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.regressions.seen import (
    DOCUMENTS,
    asked_and_answered,
    assert_json_is_whole,
    assert_nothing_dropped,
    fact,
    ids,
    in_threads,
    read,
    watching,
)
from tests.regressions.test_langchain import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen


@pytest.fixture
def seen() -> Iterator[Seen]:
    with watching() as spans:
        yield spans


class Hostile:
    """Nothing can be asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")


def cyclic() -> dict[str, Any]:
    facts: dict[str, Any] = {"page": 1}
    facts["self"] = facts
    facts["list"] = [facts]
    return facts


def shown(documents: Any) -> str:
    return "\n".join(str(getattr(document, "page_content", ""))[:100] for document in documents)


def answered(documents: Any, config: Any) -> Any:
    """Run the documents through a chain of a search, a formatter and a model."""
    chain = RunnableLambda(lambda question: documents) | shown | chat()
    try:
        return chain.invoke("Where?", config).content
    except Exception as error:  # compared with that of the bare run
        return type(error), str(error)


def odd(**facts: Any) -> Document:
    """A document that its constructor would refuse."""
    return Document.model_construct(**{"page_content": "Oslo.", "metadata": {}, "id": None, **facts})


WHOLE = Document("The lab is in Oslo.", id="a", metadata={"score": 0.9})
DOCUMENT_LISTS = {
    "texts instead of documents": ["a text", "another"],
    "documents among other things": [WHOLE, "a text", None, 5, Hostile()],
    "no content": [WHOLE, odd(page_content=None, id="b")],
    "content that is no text": [WHOLE, odd(page_content=["Oslo"], id="b"), odd(page_content=Hostile(), id="c")],
    "no metadata": [WHOLE, odd(metadata=None, id="b")],
    "lone surrogates": [WHOLE, odd(page_content="Os\ud800lo.", id="\udfff", metadata={"k\ud800": "v\udc00"})],
    "5 MB": [Document("Oslo " * 1_000_000, id="big"), WHOLE],
    "metadata that is no JSON": [WHOLE, odd(metadata={"page": 1, "set": {1}, "raw": b"\xff", "type": int}, id="b")],
    "metadata with a raising repr": [
        WHOLE,
        odd(metadata={"page": 1, "rude": Hostile(), "score": Hostile()}, id="b"),
    ],
    "cyclic metadata": [WHOLE, odd(metadata=cyclic(), id="b")],
    "numbers that are none": [
        WHOLE,
        odd(metadata={"score": float("nan"), "n": 1 << 80, "x": float("inf")}, id="b"),
    ],
    "ids that are no texts": [odd(id=7), odd(id=b"raw"), odd(id=("a", 1)), odd(metadata={"id": {"x": 1}})],
    "an id that raises": [WHOLE, odd(id=Hostile())],
}


@pytest.mark.parametrize("documents", DOCUMENT_LISTS.values(), ids=DOCUMENT_LISTS)
def test_odd_documents(seen: Seen, documents: Any) -> None:
    expected = answered(documents, {})
    assert answered(documents, {"callbacks": [RagtraceHandler()]}) == expected
    outcome = ("Where?", ANSWER, "answered") if expected == ANSWER else ("Where?", "", "error")
    assert asked_and_answered(seen.root) == outcome
    assert_json_is_whole(seen.spans)
    assert_nothing_dropped(seen.spans)
    assert seen.lost == {}
    if isinstance(documents[0], Document):
        assert len(ids(seen.root, "pool")) == len(documents)
    else:  # no search: a list of texts is the application's own affair
        assert ids(seen.root, "pool") == []


def test_a_passage_of_5_mb_is_cut_and_the_span_says_so(seen: Seen) -> None:
    answered(DOCUMENT_LISTS["5 MB"], {"callbacks": [RagtraceHandler()]})
    (search,) = seen.of("retrieval")
    big, small = read(search, DOCUMENTS)
    assert (len(big["content"]), small["content"]) == (65_536, "The lab is in Oslo.")
    assert fact(search, "ragtrace.retrieval.document.truncated") == 1
    assert seen.wire_bytes() < 300_000


def test_a_pool_of_a_thousand_keeps_every_id_and_says_whose_text_is_missing(seen: Seen) -> None:
    pool = [Document(f"{i} ".ljust(800, "x"), id=f"doc-{i}", metadata={"score": 1 - i / 2000}) for i in range(1000)]
    assert answered(pool, {"callbacks": [RagtraceHandler()]}) == ANSWER
    assert ids(seen.root, "pool") == [f"doc-{i}" for i in range(1000)]
    assert read(seen.root, "ragtrace.pool.scores") == [1 - i / 2000 for i in range(1000)]
    (search,) = seen.of("retrieval")
    assert fact(search, "ragtrace.retrieval.document.count") == 1000
    rows = read(search, DOCUMENTS)
    assert fact(search, "ragtrace.retrieval.document.captured") == len(rows) == 1000
    without_text = len([row for row in rows if "content" not in row])
    assert 0 < without_text < 1000
    assert fact(search, "ragtrace.retrieval.document.truncated") == without_text


def test_duplicate_ids_are_two_passages(seen: Seen) -> None:
    pool = [Document("The lab is in Oslo.", id="a"), Document("The lab has 40 people.", id="a")]
    assert answered(pool, {"callbacks": [RagtraceHandler()]}) == ANSWER
    (search,) = seen.of("retrieval")
    assert [(row["id"], row["rank"], row["content"]) for row in read(search, DOCUMENTS)] == [
        ("a", 1, "The lab is in Oslo."),
        ("a", 2, "The lab has 40 people."),
    ]


def test_serialized_is_none_everywhere_in_a_graph(seen: Seen) -> None:
    """LangGraph gives every node's event None for `serialized`."""
    serialized = []

    class Watching(RagtraceHandler):
        def on_chain_start(self, given: Any, *args: Any, **kwargs: Any) -> Any:
            serialized.append(given)
            return super().on_chain_start(given, *args, **kwargs)

    graph = StateGraph(State)
    graph.add_node("search", lambda state: {"documents": [WHOLE]})
    graph.add_edge(START, "search")
    graph.compile().invoke({"question": "Where?"}, {"callbacks": [Watching()]})
    assert None in serialized
    assert (ids(seen.root, "pool"), seen.lost) == (["a"], {})


def test_one_handler_in_200_threads(seen: Seen) -> None:
    handler = RagtraceHandler()
    chain = lcel()

    def one(number: int) -> None:
        assert chain.invoke(f"{number}?", {"callbacks": [handler]}) == ANSWER

    in_threads(one, 200)
    assert sorted(fact(root, "input.value") for root in seen.roots) == sorted(f"{n}?" for n in range(200))
    for root in seen.roots:
        assert [len(seen.of(kind, root)) for kind in ("retrieval", "rerank", "chat")] == [1, 1, 1]
    assert (seen.open, seen.lost) == ([], {})


def test_two_registrations_are_one_trace(seen: Seen) -> None:
    handler = RagtraceHandler()
    instrument()
    try:
        assert lcel().invoke("Where?", {"callbacks": [handler, RagtraceHandler(), handler]}) == ANSWER
    finally:
        uninstrument()
    assert asked_and_answered(seen.root) == ("Where?", ANSWER, "answered")
    assert [len(seen.of(kind)) for kind in ("retrieval", "rerank", "chat")] == [1, 1, 1]


class Hanging(SpanExporter):
    """Takes a batch and does not come back until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.taken = 0

    def export(self, spans: Any) -> SpanExportResult:
        self.taken += len(spans)
        self.let_go.wait()
        return SpanExportResult.FAILURE


def test_an_exporter_that_hangs_holds_up_nobody() -> None:
    """The queue of the SDK's processor fills and drops; the application's runs neither wait nor fail."""
    exporter = Hanging()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=8, max_export_batch_size=4))
    ragtrace.configure(tracer_provider=provider, sample_rate=0.0, content="full")
    try:
        begun = time.monotonic()
        for _ in range(50):
            assert lcel().invoke("Where?", {"callbacks": [RagtraceHandler()]}) == ANSWER
        assert 0 < exporter.taken <= 4  # it hangs in its first batch
        assert not ragtrace.flush(0.2)
        assert time.monotonic() - begun < 30  # the exporter never came back; 50 runs and a flush did
    finally:
        exporter.let_go.set()
        ragtrace.shutdown(5)
