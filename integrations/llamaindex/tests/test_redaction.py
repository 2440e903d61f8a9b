"""Texts that `redact` makes alike, longer or shorter: passages, choices and answers are those that were there."""

from __future__ import annotations

import re
from zlib import crc32

import pytest
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool

from integrations.llamaindex.tests.parts import Best, Given, Llm, engine
from ragtrace.capture import Recorder
from ragtrace_llamaindex import instrumented, mark_retrieved, mark_selected
from tests.kept import Keeper, ids


def no_digits(text):
    return re.sub(r"\d", "#", text)


def hashed(text):
    return re.sub(r"\w+", lambda word: f"{crc32(word[0].encode()):x}", text)


def rooms():
    texts = [f"Room {i} is on floor {i}. It opens at 8." for i in range(6)]
    return [NodeWithScore(node=TextNode(text=text), score=1 - i / 100) for i, text in enumerate(texts)]


class Anew(Best):
    """Keeps the last two as nodes of its own, with the same texts."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        kept = super()._postprocess_nodes(nodes, query_bundle)
        return [NodeWithScore(node=TextNode(text=one.node.text), score=one.score) for one in kept]


@pytest.mark.parametrize("best", [Best, Anew])
def test_nodes_that_differ_in_what_is_redacted(best):
    keeper = Keeper()
    with instrumented(Recorder(keeper, redact=no_digits)):
        engine(Given(rooms()), [best()]).query("Where?")
    found = ids(keeper.only, "retrieved")
    assert len(set(found)) == 6
    assert ids(keeper.only, "reranked") == [found[5], found[4]]


def test_what_the_application_names_without_ids():
    rows = [f"Room {i} is free today." for i in range(4)]
    keeper = Keeper()
    with instrumented(Recorder(keeper, redact=no_digits)):

        class Engine(type(engine())):
            def _query(self, query_bundle):
                mark_retrieved(rows)
                mark_selected([rows[2], rows[1]])
                return super()._query(query_bundle)

        made = engine(Given([]), [])
        Engine(retriever=made.retriever, response_synthesizer=made._response_synthesizer).query("Where?")
    found = ids(keeper.only, "retrieved")
    assert len(set(found)) == 4
    assert ids(keeper.only, "reranked") == [found[2], found[1]]
    assert all(name.startswith("salted:") for name in found)


def test_what_a_tool_returned():
    keeper = Keeper()
    with instrumented(Recorder(keeper, redact=no_digits)):

        def search(query: str) -> list[dict[str, str]]:
            """Search the plan."""
            return [{"text": f"Room {i} is free today.", "source": "plan"} for i in range(4)]

        tool = FunctionTool.from_defaults(search)

        class Engine(type(engine())):
            def _query(self, query_bundle):
                tool.call(query="door")
                return super()._query(query_bundle)

        made = engine(Given([]), [])
        Engine(retriever=made.retriever, response_synthesizer=made._response_synthesizer).query("Where?")
    assert len(set(ids(keeper.only, "retrieved"))) == 4


@pytest.mark.parametrize("number", [1, 3])
def test_a_stream_that_is_left_has_all_that_was_read(number):
    keeper = Keeper()
    with instrumented(Recorder(keeper, redact=hashed)):
        response = engine(streaming=True).query("Where?")
        said = "".join(next(response.response_gen) for _ in range(number))
        response.response_gen.close()
        del response
    record = keeper.only.record
    assert record.outcome == "partial"
    assert record.answer == hashed(hashed(said))


def test_pieces_that_are_cited_by_number_stay_apart():
    def said(redact):
        keeper = Keeper()
        texts = ["Room one is on the first floor.", "Room two is on the second floor.", "The lab is in Oslo."]
        nodes = [NodeWithScore(node=TextNode(id_=f"n{i}", text=text), score=1) for i, text in enumerate(texts)]
        with instrumented(Recorder(keeper, redact=redact)):
            CitationQueryEngine.from_args(None, retriever=Given(nodes), llm=Llm()).query("Where?")
        return ids(keeper.only, "used")

    assert said(no_digits) == said(None) == ["n0", "n1", "n2"]
