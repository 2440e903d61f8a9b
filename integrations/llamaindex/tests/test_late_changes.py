"""Changes that an application makes to its objects once a run has ended: none of them reaches the run's record."""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool

from integrations.llamaindex.tests.parts import Best, Given, Llm, engine, nodes
from ragtrace.capture import Recorder
from ragtrace_llamaindex import instrumented, mark_retrieved, mark_selected
from ragtrace_llamaindex.messages import with_pictures
from ragtrace_llamaindex.values import Values
from tests.kept import ANSWER, Waiting, ids, kinds, scores


def changed(node):
    node.node.text, node.score = "changed", 99.0
    node.node.metadata["page"] = "changed"


def test_objects_of_a_finished_run():
    found = nodes()
    texts = [one.node.get_content(metadata_mode=MetadataMode.NONE) for one in found]
    keeper = Waiting()
    with instrumented(Recorder(keeper)):
        response = engine(Given(found)).query("Where?")
    for node in (*found, *response.source_nodes):
        changed(node)
    found.clear()
    response.response = "changed"
    keeper.process()
    run = keeper.only
    assert [passage.text for passage in run.record.pool("retrieved")] == texts
    assert scores(run, "retrieved") == [1 - i / 100 for i in range(6)]
    assert [passage.metadata["page"] for passage in run.record.pool("retrieved")] == list(range(6))
    assert (ids(run, "reranked"), scores(run, "reranked")) == (["d5", "d4"], [0.9, 0.8])
    assert (run.record.query, run.record.answer) == ("Where?", ANSWER)


def test_turns_of_a_conversation():
    history = [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")]
    keeper = Waiting()
    with instrumented(Recorder(keeper)):
        chat = ContextChatEngine.from_defaults(
            retriever=Given(nodes()),
            llm=Llm(),
            memory=ChatMemoryBuffer.from_defaults(),
            node_postprocessors=[Best()],
        )
        chat.chat("Where?", chat_history=history)
    for turn in history:
        turn.content = "changed"
    history.clear()
    keeper.process()
    record = keeper.only.record
    assert [turn.content for turn in record.history] == ["Hi", "Hello"]
    assert (record.query, record.answer) == ("Where?", ANSWER)


def test_what_is_marked_and_what_a_tool_returned():
    rows = [{"id": "a", "text": "The lab is in Oslo."}, {"id": "b", "text": "The lab has moved."}]
    hits = [{"id": "t", "text": "The door is green."}]
    keeper = Waiting()
    with instrumented(Recorder(keeper)):

        def search(query: str) -> list[dict[str, str]]:
            """Search the web."""
            return hits

        tool = FunctionTool.from_defaults(search)

        class Marking(Given):
            def _retrieve(self, query_bundle):
                return []

        class Engine(type(engine())):
            def _query(self, query_bundle):
                mark_retrieved(rows)
                mark_selected([rows[0]["text"]])
                tool.call(query="door")
                return super()._query(query_bundle)

        made = engine(Marking([]), [])
        Engine(retriever=made.retriever, response_synthesizer=made._response_synthesizer).query("Where?")
    for row in (*rows, *hits):
        row["text"] = "changed"
    assert all(not run.steps for _, run in keeper.ended)  # nothing was read
    keeper.process()
    run = keeper.only
    assert "tool" in kinds(run)
    assert "changed" not in repr(run)
    assert {"a", "b", "t"} <= set(ids(run, "retrieved"))


def test_no_original_text_waits_where_texts_are_redacted():
    class Held(Waiting):
        def on_end(self, root, run):
            self.seen = repr(run._waiting)
            super().on_end(root, run)

    keeper = Held()
    hidden = {"Passage": "[page]", "Where": "[asks]", ANSWER: "[says]"}

    def redact(text):
        for word, mark in hidden.items():
            text = text.replace(word, mark)
        return text

    with instrumented(Recorder(keeper, redact=redact)):
        engine(Given(nodes())).query("Where?")
    assert all(mark in keeper.seen for mark in hidden.values())
    assert not any(f"'{word}" in keeper.seen for word in hidden)
    keeper.process()
    assert (keeper.only.record.query, keeper.only.record.answer) == ("[asks]?", "[says]")


def nested(documents):
    return [document.metadata["facts"]["pages"][0]["number"] for document in documents]


def test_what_is_deep_in_metadata_is_as_it_was_met():
    values, lock = Values(), object()
    metadata = {"page": 1, "facts": {"pages": [{"number": 1}], "lock": lock}, "lock": lock}
    node = NodeWithScore(node=TextNode(text="In Oslo."), score=0.5)
    node.node.metadata = metadata
    (first,) = values.documents([node])
    (again,) = values.documents([node])
    node.node.metadata["facts"]["pages"][0]["number"] = 2
    (changed,) = values.documents([node])
    assert first is again
    assert nested([first, changed]) == [1, 2]
    assert "lock" not in first.metadata


def test_what_is_deep_in_search_results_and_states():
    rows = [{"id": "a", "text": "In Oslo.", "facts": {"pages": [{"number": 1}]}}]
    values = Values()
    (marked,), offered = values.marked(rows), values.offered({"rows": [{"cells": [rows[0]["facts"]]}]})
    rows[0]["facts"]["pages"][0]["number"] = 2
    assert nested([marked]) == [1]
    assert offered == {"rows": [{"cells": [{"pages": [{"number": 1}]}]}]}


def test_metadata_that_hold_themselves_or_are_long_are_bounded():
    cycle, vector, long = {}, list(range(100_000)), ["Oslo"] * 100_000
    cycle["itself"] = cycle
    node = TextNode(text="In Oslo.")
    node.metadata.update(cycle=cycle, vector=vector, long=long, page=1)
    (made,) = Values().documents([node])
    assert made.metadata["page"] == 1
    assert "vector" not in made.metadata
    assert len(made.metadata["long"]) <= 20_000


def test_messages_and_their_calls_are_texts_already():
    arguments = {"where": {"rooms": [{"text": "before"}]}}
    call = {"id": "c1", "function": {"name": "look", "arguments": arguments}}
    message = ChatMessage("", role="assistant", additional_kwargs={"tool_calls": [call]})
    values = Values()
    (first,) = values.prompt([message], with_pictures)
    arguments["where"]["rooms"][0]["text"] = "after"
    (changed,) = values.prompt([message], with_pictures)
    assert "before" in repr(first)
    assert "after" in repr(changed)
