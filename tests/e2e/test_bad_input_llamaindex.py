"""Inputs that no application should make and some do, with LlamaIndex: the result is that of a bare run.

Each input is run twice, without ragtrace and with it; the results, or the errors, are the same. The spans are whole
JSON, hold what could be kept, and say what could not.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import ragtrace
from integrations.llamaindex.tests.parts import ANSWER, Faq, Given, engine
from ragtrace_llamaindex import instrument, uninstrument
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen


@pytest.fixture
def seen() -> Iterator[Seen]:
    with watching() as spans:
        yield spans
        uninstrument()


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


def node(text: Any = "Oslo.", score: Any = 0.5, **facts: Any) -> NodeWithScore:
    """A node that its constructor would refuse; what it says of metadata stays out of the prompt."""
    metadata = facts.get("metadata")
    hidden = list(metadata) if isinstance(metadata, dict) else []
    inner = TextNode.model_construct(
        **{"id_": "b", "metadata": {}, "excluded_llm_metadata_keys": hidden, **facts, "text": text}
    )
    return NodeWithScore.model_construct(node=inner, score=score)


WHOLE = NodeWithScore(node=TextNode(id_="a", text="The lab is in Oslo."), score=0.9)
NODE_LISTS = {
    "texts instead of nodes": ["a text", "another"],
    "nodes among other things": [WHOLE, "a text", None, 5, Hostile()],
    "no content": [WHOLE, node(None)],
    "content that is no text": [WHOLE, node(["Oslo"]), node(Hostile())],
    "no metadata": [WHOLE, node(metadata=None)],
    "lone surrogates": [WHOLE, node("Os\ud800lo.", id_="\udfff", metadata={"k\ud800": "v\udc00"})],
    "metadata that is no JSON": [WHOLE, node(metadata={"page": 1, "set": {1}, "raw": b"\xff", "type": int})],
    "metadata with a raising repr": [WHOLE, node(metadata={"page": 1, "rude": Hostile()})],
    "cyclic metadata": [WHOLE, node(metadata=cyclic())],
    "scores that are none": [WHOLE, node(score=float("nan")), node(score="high"), node(score=Hostile())],
    "ids that are no texts": [node(id_=7), node(id_=b"raw"), node(id_=("a", 1))],
    "an id that raises": [WHOLE, node(id_=Hostile())],
    "an image": [WHOLE, NodeWithScore(node=ImageNode(id_="x", image_url="x.png"), score=0.5)],
}


class Raw(Faq):
    """Returns what it is given as it is: LlamaIndex's own `retrieve` hashes the nodes, and fails on some."""

    def retrieve(self, str_or_query_bundle: Any) -> Any:
        return self.found


def answered(nodes: Any) -> Any:
    """Ask an engine whose search returns these nodes, and the search alone; an error is an answer too."""
    search = Raw()
    search.found = nodes
    assert search.retrieve("Where?") is nodes
    try:
        return str(engine(search, []).query("Where?"))
    except Exception as error:  # compared with that of the bare run
        return type(error), str(error)


@pytest.mark.parametrize("nodes", NODE_LISTS.values(), ids=NODE_LISTS)
def test_odd_nodes(seen: Seen, nodes: Any) -> None:
    expected = answered(nodes)
    assert seen.spans == []
    instrument()
    assert answered(nodes) == expected
    searched, asked = seen.roots
    assert len(ids(searched, "pool")) == len(ids(asked, "pool")) == len(nodes)
    outcome = ("Where?", ANSWER, "answered") if expected == ANSWER else ("Where?", "", "error")
    assert asked_and_answered(asked) == outcome
    assert_json_is_whole(seen.spans)
    assert_nothing_dropped(seen.spans)
    assert seen.lost == {}


def test_a_passage_of_5_mb_is_cut_and_the_span_says_so(seen: Seen) -> None:
    instrument()
    found = [NodeWithScore(node=TextNode(id_="big", text="Oslo " * 1_000_000), score=1.0), WHOLE]
    # The search alone: LlamaIndex's own synthesizer takes 25 s to split such a text for its prompt.
    assert [one.node for one in Given(found).retrieve("Where?")] == [one.node for one in found]
    (search,) = seen.of("retrieval")
    big, small = read(search, DOCUMENTS)
    assert (len(big["content"]), small["content"]) == (65_536, "The lab is in Oslo.")
    assert fact(search, "ragtrace.retrieval.document.truncated") == 1
    assert seen.wire_bytes() < 300_000


def test_a_pool_of_a_thousand_keeps_every_id_and_says_whose_text_is_missing(seen: Seen) -> None:
    instrument()
    pool = [
        NodeWithScore(node=TextNode(id_=f"doc-{i}", text=f"{i} ".ljust(800, "x")), score=1 - i / 2000)
        for i in range(1000)
    ]
    assert len(Given(pool).retrieve("Where?")) == 1000
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
    instrument()
    pool = [node("The lab is in Oslo.", id_="a"), node("The lab has 40 people.", id_="a")]
    assert answered(pool) == ANSWER
    for search in seen.of("retrieval"):
        assert [(row["id"], row["rank"], row["content"]) for row in read(search, DOCUMENTS)] == [
            ("a", 1, "The lab is in Oslo."),
            ("a", 2, "The lab has 40 people."),
        ]


def test_200_threads(seen: Seen) -> None:
    instrument()
    asked = engine()

    def one(number: int) -> None:
        assert str(asked.query(f"{number}?")) == ANSWER

    in_threads(one, 200)
    assert sorted(fact(root, "input.value") for root in seen.roots) == sorted(f"{n}?" for n in range(200))
    for root in seen.roots:
        assert [len(seen.of(kind, root)) for kind in ("retrieval", "rerank", "chat")] == [1, 1, 1]
    assert (seen.open, seen.lost) == ([], {})


def test_two_registrations_are_one_trace(seen: Seen) -> None:
    instrument()
    instrument()
    assert str(engine().query("Where?")) == ANSWER
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
    instrument()
    try:
        begun = time.monotonic()
        for _ in range(50):
            assert str(engine().query("Where?")) == ANSWER
        assert 0 < exporter.taken <= 4  # it hangs in its first batch
        assert not ragtrace.flush(0.2)
        assert time.monotonic() - begun < 30  # the exporter never came back; 50 runs and a flush did
    finally:
        exporter.let_go.set()
        ragtrace.shutdown(5)
        uninstrument()
