"""Changes that an application makes to its objects once a run has ended: none of them reaches the run's record."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, Faq, Scripted, chat, lcel, rescored, shown
from ragtrace.capture import Recorder, finished_run
from ragtrace_langchain import RagtraceHandler
from ragtrace_langchain.values import Values
from tests.kept import ANSWER, Waiting, ids, scores


def changed(document):
    document.page_content, document.id = "changed", "changed"
    document.metadata["score"] = document.metadata["relevance_score"] = 99.0
    document.metadata["page"] = "changed"


def test_objects_of_a_finished_run():
    found, best = Faq().invoke("?"), []
    given = {"question": "Where?", "docs": [Document(id="g", page_content="Given.", metadata={"page": 1})]}

    def search(state):
        return {**state, "docs": found}

    def rank(state):
        best.extend(rescored(state["docs"][1:4])[:2])
        return {**state, "docs": list(best)}

    chain = RunnableLambda(search) | rank | RunnablePassthrough.assign(context=lambda x: shown(x["docs"])) | PROMPT
    keeper = Waiting()
    said = (chain | chat()).invoke(given, {"callbacks": [RagtraceHandler(Recorder(keeper))]})
    for document in (*found, *best, *given["docs"]):
        changed(document)
    found.clear()
    said.content = "changed"
    given.clear()
    keeper.process()
    run = keeper.only
    assert ids(run, "retrieved") == [f"d{i}" for i in range(6)]
    assert scores(run, "retrieved") == [1 - i / 100 for i in range(6)]
    assert (ids(run, "reranked"), scores(run, "reranked")) == (["d3", "d2"], [0.9, 0.8])
    assert [passage.metadata["page"] for passage in run.record.pool("retrieved")] == list(range(6))
    assert (run.record.query, run.record.answer) == ("Where?", ANSWER)


def test_a_run_that_was_no_question_is_dropped_when_it_is_processed():
    keeper = Waiting()
    recorder = Recorder(keeper)
    RunnableLambda(lambda x: x + 1).invoke(1, {"callbacks": [RagtraceHandler(recorder)]})
    ((_, ended),) = keeper.ended
    assert (finished_run(ended), recorder.open_runs) == (None, 0)


def test_the_texts_of_a_waiting_run_count_towards_the_bound():
    keeper = Waiting()
    Faq().invoke("Where?", {"callbacks": [RagtraceHandler(Recorder(keeper))]})
    ((_, ended),) = keeper.ended
    assert ended.size_chars == sum(len(document.page_content) for document in Faq().invoke("?"))
    keeper.process()
    assert keeper.only.record.query == "Where?"


def test_no_original_text_waits_where_texts_are_redacted():
    class Held(Waiting):
        def on_end(self, root, ended):
            self.seen = repr(self.run._waiting)
            super().on_end(root, ended)

    keeper = Held()
    recorder = Recorder(keeper, redact=lambda text: text.replace("Passage", "[page]").replace("Where", "[asks]"))
    start, keeper.run = recorder.start, None

    def started(**options):
        keeper.run = start(**options)
        return keeper.run

    recorder.start = started
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(recorder)]})
    assert "[page]" in keeper.seen
    assert "Passage" not in keeper.seen
    assert "Where" not in keeper.seen
    keeper.process()
    assert all(passage.text.startswith("[page]") for passage in keeper.only.record.contexts)
    assert len(ids(keeper.only, "used")) == len(ids(keeper.only, "reranked"))


def nested(documents):
    return [document.metadata["facts"]["pages"][0]["number"] for document in documents]


class Lock:
    """An object that an application keeps beside a passage."""


def test_what_is_deep_in_metadata_is_as_it_was_met():
    values, lock = Values(), Lock()
    metadata = {"page": 1, "facts": {"pages": [{"number": 1}], "lock": lock}, "lock": lock}
    document = Document("In Oslo.", metadata=metadata)
    (first,) = values.documents([document])
    (again,) = values.documents([document])
    metadata["facts"]["pages"][0]["number"] = 2
    (changed,) = values.documents([document])
    assert first is again
    assert nested([first, changed]) == [1, 2]
    assert "lock" not in first.metadata


def test_metadata_that_hold_themselves_or_are_long_are_bounded():
    cycle, vector, long = {}, list(range(100_000)), ["Oslo"] * 100_000
    cycle["itself"] = cycle
    facts = {"cycle": cycle, "vector": vector, "long": long, "page": 1}
    (made,) = Values().documents([Document("In Oslo.", metadata=facts)])
    assert made.metadata["page"] == 1
    assert "vector" not in made.metadata
    assert len(made.metadata["long"]) <= 20_000


def with_blocks(text):
    part = {"type": "text", "text": text}
    return HumanMessage([{"type": "document", "source": {"type": "content", "content": [part]}}]), part


def with_arguments(text):
    part = {"text": text}
    return AIMessage("", tool_calls=[{"name": "look", "args": {"where": {"rooms": [part]}}, "id": "c1"}]), part


def with_artifact(text):
    part = {"text": text}
    return ToolMessage("Found.", tool_call_id="c1", artifact={"rows": [part]}), part


@pytest.mark.parametrize("make", [with_blocks, with_arguments, with_artifact])
def test_what_is_deep_in_a_message_is_as_each_event_met_it(make):
    values = Values()
    message, part = make("before")
    (first,) = values.turns([message])
    (again,) = values.turns([message])
    part["text"] = "after"
    (changed,) = values.turns([message])
    assert first is again
    assert "before" in repr(first)
    assert "after" in repr(changed)


def test_blocks_that_are_changed_deep_inside_between_two_calls():
    message, part = with_blocks("Say hello.")
    model, keeper = Scripted(replies=["Hello.", ANSWER]), Waiting()

    def ask(_question):
        found = shown(Faq().invoke("?")[:2])
        model.invoke([message])
        part["text"] = found
        return model.invoke([message]).content

    RunnableLambda(ask).invoke("Where?", {"callbacks": [RagtraceHandler(Recorder(keeper))]})
    part["text"] = "changed"
    keeper.process()
    assert ids(keeper.only, "used") == ["d0", "d1"]
    assert "changed" not in repr(keeper.only)
