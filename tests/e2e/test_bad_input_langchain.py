"""Documents that no application should make and some do, with LangChain: the result is that of a bare run.

Each input is run twice, without ragtrace and with it; the results, or the errors, are the same. The spans are whole
JSON, hold what could be kept, and say what could not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

from integrations.langchain.tests.parts import chat
from ragtrace_langchain import RagtraceHandler
from tests.e2e.odd import Hostile, cyclic
from tests.kept import ANSWER
from tests.regressions.seen import asked_and_answered, assert_json_is_whole, assert_nothing_dropped, ids
from tests.regressions.test_langchain import State

if TYPE_CHECKING:
    from tests.regressions.seen import Seen


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
