"""Inputs that no application should make and some do, with LangChain and with LlamaIndex: the results stay the same.

The spans hold what could be kept, and say what could not. What is odd in one framework alone stands in
`test_bad_input_langchain` and `test_bad_input_llamaindex`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import ragtrace
import ragtrace_langchain
import ragtrace_llamaindex
from integrations.langchain.tests import parts as langchain
from integrations.llamaindex.tests import parts as llamaindex
from tests.regressions.seen import DOCUMENTS, asked_and_answered, fact, ids, in_threads, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen

ANSWER = langchain.ANSWER
Row = tuple[str, str, float]  # id, text, score


class LangChain:
    """Its calls are given a handler."""

    def __init__(self) -> None:
        self.config = {"callbacks": [ragtrace_langchain.RagtraceHandler()]}
        self.chain = langchain.lcel()

    def ask(self, question: str) -> str:
        return str(self.chain.invoke(question, self.config))

    def ask_doubly(self, question: str) -> str:
        ragtrace_langchain.instrument()
        handlers = [*self.config["callbacks"], ragtrace_langchain.RagtraceHandler(), *self.config["callbacks"]]
        return str(self.chain.invoke(question, {"callbacks": handlers}))

    def search(self, rows: list[Row]) -> None:
        found = [Document(text, id=name, metadata={"score": score}) for name, text, score in rows]
        shown = RunnableLambda(lambda documents: "\n".join(one.page_content[:100] for one in documents))
        chain = RunnableLambda(lambda question: found) | shown | langchain.chat()
        assert chain.invoke("Where?", self.config).content == ANSWER

    search_for_the_same_twice = search

    def leave(self) -> None:
        ragtrace_langchain.uninstrument()


class Raw(llamaindex.Given):
    """Returns what it is given as it is: LlamaIndex's own `retrieve` drops a second node of one id."""

    def retrieve(self, str_or_query_bundle: Any) -> Any:
        return self.found


class LlamaIndex:
    """The process is instrumented."""

    def __init__(self) -> None:
        ragtrace_llamaindex.instrument()
        self.engine = llamaindex.engine()

    def ask(self, question: str) -> str:
        return str(self.engine.query(question))

    def ask_doubly(self, question: str) -> str:
        ragtrace_llamaindex.instrument()
        return self.ask(question)

    def search(self, rows: list[Row]) -> None:
        # The search alone: LlamaIndex's own synthesizer takes 25 s to split 5 MB for its prompt.
        found = self.nodes(rows)
        assert [one.node for one in llamaindex.Given(found).retrieve("Where?")] == [one.node for one in found]

    def search_for_the_same_twice(self, rows: list[Row]) -> None:
        assert str(llamaindex.engine(Raw(self.nodes(rows)), []).query("Where?")) == ANSWER

    def nodes(self, rows: list[Row]) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(id_=name, text=text), score=score) for name, text, score in rows]

    def leave(self) -> None:
        ragtrace_llamaindex.uninstrument()


@pytest.fixture(params=[LangChain, LlamaIndex])
def framework(request: pytest.FixtureRequest) -> Iterator[LangChain | LlamaIndex]:
    made = request.param()
    yield made
    made.leave()


def test_a_passage_of_5_mb_is_cut_and_the_span_says_so(seen: Seen, framework: Any) -> None:
    framework.search([("big", "Oslo " * 1_000_000, 1.0), ("a", "The lab is in Oslo.", 0.9)])
    (search,) = seen.of("retrieval")
    big, small = read(search, DOCUMENTS)
    assert big["content"].endswith("…[cut, 1048576 characters]")
    assert (len(big["content"].encode()), small["content"]) == (65_536, "The lab is in Oslo.")
    assert fact(search, "ragtrace.retrieval.document.truncated") == 1
    assert seen.wire_bytes() < 300_000


def test_a_pool_of_a_thousand_keeps_every_id_and_says_whose_text_is_missing(seen: Seen, framework: Any) -> None:
    framework.search([(f"doc-{i}", f"{i} ".ljust(800, "x"), 1 - i / 2000) for i in range(1000)])
    assert ids(seen.root, "pool") == [f"doc-{i}" for i in range(1000)]
    assert read(seen.root, "ragtrace.pool.scores") == [1 - i / 2000 for i in range(1000)]
    (search,) = seen.of("retrieval")
    assert fact(search, "ragtrace.retrieval.document.count") == 1000
    rows = read(search, DOCUMENTS)
    assert fact(search, "ragtrace.retrieval.document.captured") == len(rows) == 1000
    without_text = len([row for row in rows if "content" not in row])
    assert 0 < without_text < 1000
    assert fact(search, "ragtrace.retrieval.document.truncated") == without_text


def test_duplicate_ids_are_two_passages(seen: Seen, framework: Any) -> None:
    framework.search_for_the_same_twice([("a", "The lab is in Oslo.", 0.9), ("a", "The lab has 40 people.", 0.8)])
    (search,) = seen.of("retrieval")
    assert [(row["id"], row["rank"], row["content"]) for row in read(search, DOCUMENTS)] == [
        ("a#ea4e954f", 1, "The lab is in Oslo."),
        ("a#b467b016", 2, "The lab has 40 people."),
    ]


@pytest.mark.slow
def test_200_threads(seen: Seen, framework: Any) -> None:
    def one(number: int) -> None:
        assert framework.ask(f"{number}?") == ANSWER

    in_threads(one, 200)
    assert sorted(fact(root, "input.value") for root in seen.roots) == sorted(f"{n}?" for n in range(200))
    for root in seen.roots:
        assert [len(seen.of(kind, root)) for kind in ("retrieval", "rerank", "chat")] == [1, 1, 1]
    assert (seen.open, seen.lost) == ([], {})


def test_two_registrations_are_one_trace(seen: Seen, framework: Any) -> None:
    assert framework.ask_doubly("Where?") == ANSWER
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


def test_an_exporter_that_hangs_holds_up_nobody(framework: Any) -> None:
    """The queue of the SDK's processor fills and drops; the application's runs neither wait nor fail."""
    exporter = Hanging()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=8, max_export_batch_size=4))
    ragtrace.configure(tracer_provider=provider, sample_rate=0.0, content="full")
    try:
        begun = time.monotonic()
        for _ in range(50):
            assert framework.ask("Where?") == ANSWER
        assert 0 < exporter.taken <= 4  # it hangs in its first batch
        assert not ragtrace.flush(0.2)
        assert time.monotonic() - begun < 30  # the exporter never came back; 50 runs and a flush did
    finally:
        exporter.let_go.set()
        ragtrace.shutdown(5)
