"""LlamaIndex's citation engine: numbered pieces of passages, and answers that cite their numbers."""

from __future__ import annotations

import pytest
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

from integrations.llamaindex.tests.parts import First, Given, Llm
from ragtrace.model import AnswerPart
from tests.kept import ids

MODES = ["compact", "refine", "tree_summarize", "simple_summarize"]


def fact(number, i):
    return (
        f'Fact {number}.{i} says that room {100 * number + i} of the lab\nis called "Øst \\ Vest" since {1900 + i}.'
    )


def passages():
    """Return four passages, of eight, one, eight and two sentences."""
    return [
        NodeWithScore(
            node=TextNode(id_=f"c{number}", text=" ".join(fact(number, i) for i in range(size))),
            score=1 - number / 10,
        )
        for number, size in enumerate([8, 1, 8, 2])
    ]


def asked(chunk_size, mode, answer, postprocessors=()):
    made = CitationQueryEngine.from_args(
        None,
        retriever=Given(passages()),
        llm=Llm(says=answer),
        citation_chunk_size=chunk_size,
        citation_chunk_overlap=0,
        response_mode=mode,
        node_postprocessors=list(postprocessors),
    )
    return made.query("Where?").source_nodes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk_size", [512, 64, 40])
def test_pieces_are_their_passages(keeper, mode, chunk_size):
    pieces = asked(chunk_size, mode, "It is in Oslo.")
    assert len(pieces) > 4 or chunk_size == 512
    run = keeper.only
    everything = ["c0", "c1", "c2", "c3"]
    assert (ids(run, "retrieved"), list(run.prompt_ids), ids(run, "used")) == (everything, everything, everything)
    assert [passage.truncated for passage in run.record.pool("used")] == [0] * 4
    assert run.record.selection_source == "retriever"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk_size", [512, 64, 40])
def test_a_number_means_the_passage_of_its_piece(keeper, mode, chunk_size):
    owners = [f"c{piece.text.partition('Fact ')[2][0]}" for piece in asked(chunk_size, mode, "")]
    keeper.runs.clear()
    last = len(owners)
    asked(chunk_size, mode, f"The lab is in Oslo [1]. It has named rooms [{last}][2].")
    cited = tuple(dict.fromkeys((owners[-1], owners[1])))
    assert keeper.only.record.answer_parts == (
        AnswerPart(text="The lab is in Oslo.", citations=("c0",)),
        AnswerPart(text="It has named rooms.", citations=cited),
    )


def test_a_choice_before_the_pieces(keeper):
    asked(64, "compact", "It is in Oslo [1].", [First(n=2)])
    run = keeper.only
    assert (ids(run, "reranked"), list(run.prompt_ids)) == (["c0", "c1"], ["c0", "c1"])
    assert run.record.answer_parts[0].citations == ("c0",)
