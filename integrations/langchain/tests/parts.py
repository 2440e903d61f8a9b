"""Real LangChain parts that run offline: retrievers, a compressor, rerankers, chains; and a listener that keeps."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_openai_tool

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


class Scripted(BaseChatModel):
    """Says one reply after the other, the last again and again: a text, a message, or an exception to raise."""

    replies: list[Any]
    said: int = 0

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self.replies[min(self.said, len(self.replies) - 1)]
        self.said += 1
        if isinstance(reply, BaseException):
            raise reply
        message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy(update={"id": None})
        return ChatResult(generations=[ChatGeneration(message=message)])


def calls(tool, number="c1", **arguments):
    """A model's reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": number}])


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
