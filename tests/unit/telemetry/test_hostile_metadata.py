"""Values that orjson refuses or writes in silence, handed over by documents and nodes: what the spans say of them."""

from __future__ import annotations

import json
from enum import IntEnum

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragtrace import semconv
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler
from ragtrace_llamaindex import instrument, uninstrument


class Words(str):
    __slots__ = ()


class Half(float):
    pass


class Level(IntEnum):
    HIGH = 3


class Broken:
    def __str__(self):
        raise RuntimeError("no text")


LOOP: list = []
LOOP.append(LOOP)
ABSENT = "(absent)"
ROWS = {
    "a lone surrogate": ("a\ud800b", "a\ufffdb"),
    "a split pair": ("\ud83d\ude00", "\U0001f600"),
    "a control character": ("\x00\x1b\n", "\x00\x1b\n"),
    "a text of a subclass": (Words("words"), "words"),
    "the largest whole number": ((1 << 63) - 1, (1 << 63) - 1),
    "a whole number beyond 64 bits": (1 << 63, str(1 << 63)),
    "a whole number that has no text": (10**5000, "<int>"),
    "a whole number of a subclass": (Level.HIGH, 3),
    "a truth value": (True, True),
    "a float of a subclass": (Half(0.5), 0.5),
    "a float of numpy": (np.float64(0.1), 0.1),
    "a small float": (1e-7, 1e-7),
    "a large float": (1e22, 1e22),
    "minus zero": (-0.0, -0.0),
    "not a number": (float("nan"), ABSENT),
    "infinity": (float("inf"), ABSENT),
    "nothing": (None, ABSENT),
    "bytes": (b"bytes", ABSENT),
    "an object": (Broken(), ABSENT),
    "a mapping": ({"a": {1: 2}}, ABSENT),
    "a list": (["a\ud800", 1 << 70, float("nan"), 0.5], ["a\ufffd", str(1 << 70), 0.5]),
    "a list in itself": (LOOP, ABSENT),
    "a vector": ([0.1] * 99, ABSENT),
}


class Documents(BaseRetriever):
    metadata: dict

    def _get_relevant_documents(self, query, *, run_manager):
        document = Document(id="a", page_content="Oslo\ud800 is old.")
        document.metadata = self.metadata
        return [document]


class Nodes(NodeRetriever):
    def __init__(self, metadata):
        super().__init__()
        self.metadata = metadata

    def _retrieve(self, query_bundle):
        node = TextNode(id_="a", text="Oslo\ud800 is old.")
        node.metadata = self.metadata
        return [NodeWithScore(node=node, score=0.5)]


def langchain(kept, metadata):
    Documents(metadata={}).model_copy(update={"metadata": metadata}).invoke(
        "Where?", {"callbacks": [RagtraceHandler(kept.recorder)]}
    )


def llamaindex(kept, metadata):
    instrument(kept.recorder)
    try:
        Nodes(metadata).retrieve("Where?")
    finally:
        uninstrument()


@pytest.mark.parametrize("ask", [langchain, llamaindex], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("name", ROWS)
def test_the_span_has_the_clean_value_and_its_neighbours(ask, name):
    value, expected = ROWS[name]
    kept = Recording()
    ask(kept, {"first": 1, "it": value, "k\ud800": "v", "last": "z"})
    (span,) = (one for one in kept.spans if semconv.GEN_AI_RETRIEVAL_DOCUMENTS in one.attributes)
    (row,) = json.loads(span.attributes[semconv.GEN_AI_RETRIEVAL_DOCUMENTS])
    assert row["content"] == "Oslo\ufffd is old."
    facts = row["metadata"]
    found = facts.pop("it", ABSENT)
    assert (type(found), repr(found)) == (type(expected), repr(expected))
    assert facts == {"first": 1, "k\ufffd": "v", "last": "z"}
