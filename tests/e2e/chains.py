"""A real chain that retrieves 50 and reranks to 8."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

POOL = [f"doc-{i}" for i in range(50)]
CHOSEN = [f"doc-{i}" for i in (7, 3, 1, 20, 5, 2, 9, 11)]
ANSWER = "A refund of parcel 7 takes 17 days."


class FiftyRetriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(
                id=f"doc-{i}",
                page_content=f"A refund of parcel {i} takes {i + 10} days.",
                metadata={"score": (100 - i) / 100},
            )
            for i in range(50)
        ]


def rerank(docs: list[Document]) -> list[Document]:
    by_id = {doc.id: doc for doc in docs}
    return [
        Document(id=name, page_content=by_id[name].page_content, metadata={"relevance_score": 9.0 - rank})
        for rank, name in enumerate(CHOSEN)
    ]


def make_chain() -> Any:
    chosen = FiftyRetriever(metadata={"ragtrace.source": "faq", "ragtrace.top_k": 50}) | RunnableLambda(rerank)
    joined = chosen | RunnableLambda(lambda docs: "\n".join(doc.page_content for doc in docs))
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
    steps = {"context": joined, "question": RunnablePassthrough()}
    return (steps | prompt | FakeListChatModel(responses=[ANSWER])).with_config(run_name="support")
