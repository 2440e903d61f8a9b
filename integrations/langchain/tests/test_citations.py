"""An answer that cites the passages of its prompt is scored by what they say."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragtrace.judges import LLMJudge, ScriptedChat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler

TEXTS = (
    'The "Aurora" lab\nis in Oslo, at Karl Johans gate 12, since 2026.',
    "It has forty people,\nwho work on the ice.",
    "Its head is Ada Nilsen.\nVisitors come on Fridays.",
)


class Index(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(id=f"d{n}", page_content=text, metadata={"source": f"f{n}.md"}) for n, text in enumerate(TEXTS)
        ]


FORMS = {
    "numbers": (lambda n, doc: f"[{n}] {doc.page_content}", "[1]", "[2]", "[9]"),
    "other numbers": (lambda n, doc: f"Source {n + 4}:\n{doc.page_content}", "(Source 5)", "(Source 6)", "[1]"),
    "files": (
        lambda n, doc: f"{doc.page_content!r} from {doc.metadata['source']}",
        "[f2.md]",
        "[f0.md]",
        "[f7.md]",
    ),
    "as JSON": (lambda n, doc: doc.model_dump_json(), "[d2]", "[d0]", "[d7]"),
}


@pytest.mark.parametrize("form", FORMS)
def test_citations_of_a_chain(form):
    shown, *markers = FORMS[form]
    answer = "Ada Nilsen leads it {}. It is in Oslo {}. It has a pool {}. Welcome.".format(*markers)
    chain = (
        {
            # As `LongContextReorder` does it: the prompt has another order than the search, and shows two of three.
            "context": Index()
            | RunnableLambda(
                lambda found: "\n\n".join(shown(n, doc) for n, doc in enumerate([found[2], found[0]], start=1))
            ),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
        | FakeListChatModel(responses=[answer])
    )
    kept = Recording()
    chain.invoke("Who leads the lab?", {"callbacks": [RagtraceHandler(kept.recorder)]})
    record = kept.only.record
    assert kept.only.prompt_ids == ("d2", "d0")
    wrong = markers[2].strip("[]")
    assert [part.citations for part in record.answer_parts] == [("d2",), ("d0",), (wrong,), ()]
    rows = [{"part": 1, "cites": "1", "support": "full"}, {"part": 2, "cites": "2", "support": "full"}]
    reply = {"attempted": True, "noncommittal": False, "claims": [], "verdicts": [], "citations": rows}
    case = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
    scores = {result.name: result.value for result in asyncio.run(evaluate(select(["citations"]), case))}
    assert scores["citation_precision"] == pytest.approx(2 / 3)
    assert scores["citation_recall"] == pytest.approx(0.5)
