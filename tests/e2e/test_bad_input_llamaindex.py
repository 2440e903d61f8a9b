"""Nodes that no application should make and some do, with LlamaIndex: the result is that of a bare run.

Each input is run twice, without ragtrace and with it; the results, or the errors, are the same. The spans are whole
JSON, hold what could be kept, and say what could not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode

from integrations.llamaindex.tests.parts import Faq, engine
from ragtrace_llamaindex import instrumented
from tests.e2e.odd import Hostile, cyclic
from tests.kept import ANSWER
from tests.regressions.seen import asked_and_answered, assert_json_is_whole, assert_nothing_dropped, ids

if TYPE_CHECKING:
    from tests.regressions.seen import Seen


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
        return self.found  # type: ignore[attr-defined]


def answered(nodes: Any) -> Any:
    """Ask an engine whose search returns these nodes, and the search alone; an error is an answer too."""
    search = Raw()
    search.found = nodes  # type: ignore[attr-defined]
    assert search.retrieve("Where?") is nodes
    try:
        return str(engine(search, []).query("Where?"))
    except Exception as error:  # compared with that of the bare run
        return type(error), str(error)


@pytest.mark.parametrize("nodes", NODE_LISTS.values(), ids=NODE_LISTS)
def test_odd_nodes(seen: Seen, nodes: Any) -> None:
    expected = answered(nodes)
    assert seen.spans == []
    with instrumented():
        assert answered(nodes) == expected
    searched, asked = seen.roots
    assert len(ids(searched, "pool")) == len(ids(asked, "pool")) == len(nodes)
    outcome = ("Where?", ANSWER, "answered") if expected == ANSWER else ("Where?", "", "error")
    assert asked_and_answered(asked) == outcome
    assert_json_is_whole(seen.spans)
    assert_nothing_dropped(seen.spans)
    assert seen.lost == {}
