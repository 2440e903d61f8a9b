"""Different nodes under one id have an id each; what a postprocessor makes of a node keeps its id."""

from __future__ import annotations

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode

from integrations.llamaindex.tests.parts import Given, Llm, engine
from ragtrace.model import chunk_id
from ragtrace_llamaindex import mark_retrieved
from tests.kept import ids

TEXTS = (
    "The return window is thirty days from delivery.",
    "Shipping to Norway takes five working days.",
    "Gift cards cannot be exchanged for cash.",
)
OWN = [chunk_id("manual", text) for text in TEXTS]
FORMS = {
    "as it was": str,
    "a header": lambda text: f"Manual, page 4\n{text}",
    "an extract": lambda text: text[: 3 * len(text) // 4],
}


def found(*places):
    return [NodeWithScore(node=TextNode(id_="manual", text=TEXTS[n]), score=1 - n / 10) for n in places]


class Made(BaseNodePostprocessor):
    """Keeps the last two, best first, and changes their text."""

    form: str

    def _postprocess_nodes(self, nodes, query_bundle=None):
        if self.form == "a translation":
            texts = [f"Nummer {place}: vad det nu \u00e4r." for place in range(len(nodes))]
            made = (TextNode(id_=n.node_id, text=text) for n, text in zip(nodes, texts, strict=True))
            return [NodeWithScore(node=node, score=0.5) for node in made]
        form = FORMS[self.form]
        return [
            NodeWithScore(node=TextNode(id_=n.node_id, text=form(n.node.text)), score=0.5) for n in nodes[:0:-1]
        ]


def answered(recorder, nodes, *postprocessors):
    """Search without a retriever, which would keep one node of an id, and answer."""
    with recorder.start(query="How long?"):
        mark_retrieved(nodes)
        for one in postprocessors:
            nodes = one.postprocess_nodes(nodes, query_str="How long?")
        get_response_synthesizer(llm=Llm()).synthesize("How long?", nodes)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_chunks_of_one_document(keeper, recorder, order):
    answered(recorder, found(*order))
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == [OWN[n] for n in order]


@pytest.mark.parametrize("form", FORMS)
def test_a_postprocessor_among_chunks(keeper, recorder, form):
    answered(recorder, found(0, 1, 2), Made(form=form))
    assert ids(keeper.only, "retrieved") == OWN
    assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == [OWN[2], OWN[1]]


def test_a_postprocessor_that_translates_all(keeper, recorder):
    answered(recorder, found(0, 1, 2), Made(form="a translation"))
    assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == OWN


@pytest.mark.parametrize("others", [(1,), (1, 0)])
def test_two_retrievers_find_other_chunks(keeper, recorder, others):
    with recorder.start(query="How long?"):
        nodes = Given(found(0)).retrieve("How long?")
        with_others = Given([*found(*others), *found(2)][: len(others)])
        nodes += with_others.retrieve("How long?")[:1]
        get_response_synthesizer(llm=Llm()).synthesize("How long?", nodes)
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == OWN[:2]


def test_a_retriever_itself_keeps_one_node_of_an_id(keeper):
    if len(Given(found(1, 0, 2)).retrieve("How long?")) > 1:
        pytest.skip("retrievers of this llama-index-core keep all nodes of an id")
    keeper.runs.clear()
    engine(Given(found(1, 0, 2)), []).query("How long?")
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == ["manual"]


def test_one_chunk_keeps_its_id(keeper):
    engine(Given(found(1)), [Made(form="as it was")]).query("How long?")
    assert ids(keeper.only, "retrieved") == ["manual"]
