"""Changes that an application makes to its objects once a run has ended: none of them reaches the run's record."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, Faq, chat, lcel, rescored, shown
from ragtrace.capture import Recorder, finished_run
from ragtrace_langchain import RagtraceHandler
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
