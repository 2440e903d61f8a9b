"""Real LangChain parts that run offline: retrievers, a compressor, rerankers, chains; and a listener that keeps."""

from __future__ import annotations

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from tests.kept import ANSWER


class Faq(BaseRetriever):
    """Passages d0, d1, ... with falling scores."""

    size: int = 6
    prefix: str = "d"

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(
                id=f"{self.prefix}{i}",
                page_content=f"Passage {self.prefix}{i} says that the lab moved {i} times.",
                metadata={"score": 1 - i / 100, "page": i},
            )
            for i in range(self.size)
        ]


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("index is down")


class Compressor(BaseDocumentCompressor):
    """Keeps the last two, best first, as new documents with a score of its own."""

    top_n: int = 2

    def compress_documents(self, documents, query, callbacks=None):
        return rescored(documents[-self.top_n :])


def rescored(documents):
    """As many rerankers do it: new documents, in a new order, with the old metadata and one more score."""
    return [
        Document(id=d.id, page_content=d.page_content, metadata={**d.metadata, "relevance_score": 0.9 - i / 10})
        for i, d in enumerate(reversed(documents))
    ]


def rerank(documents):
    return rescored(documents[1:4])[:2]


def shown(documents):
    return "\n".join(document.page_content for document in documents)


PROMPT = ChatPromptTemplate.from_messages([("system", "Use this:\n{context}"), ("human", "{question}")])


def chat(*answers):
    return FakeListChatModel(responses=list(answers or (ANSWER,)))


def lcel(retriever=None, reranker=rerank, model=None):
    """The chain of LangChain's own tutorials, with a reranker in it."""
    chosen = (retriever or Faq()) | RunnableLambda(reranker)
    given = {"context": chosen | shown, "question": RunnablePassthrough()}
    return given | PROMPT | (model or chat()) | StrOutputParser()
