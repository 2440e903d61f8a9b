"""The chain of the help desk: search, rerank, a prompt with the conversation, a model."""

from __future__ import annotations

import os
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.language_models import BaseChatModel

ARTICLES = {
    "cancel": "You can cancel your plan at any time in the settings, under Billing. It ends with the month.",
    "refund": "Refunds are paid to the card that you paid with. A refund takes five working days.",
    "seats": "An administrator adds seats in the settings, under Members. A new seat is paid from that day on.",
    "export": "You can export all data as CSV in the settings, under Data. A large export takes an hour.",
    "login": "Single sign-on works with SAML. It is part of the Business plan.",
}
SCRIPT = {
    "How can I cancel my plan?": "You can cancel your plan at any time in the settings, under Billing.",
    "And how long does the refund take?": "A refund takes five working days. Refunds above 500 euros take 21 days.",
}
PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from these passages alone:\n\n{context}"),
        MessagesPlaceholder("history"),
        ("user", "{question}"),
    ]
)


def words(text: str) -> set[str]:
    """Return the words of a text that are worth a search."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


class Search(BaseRetriever):
    """Ranks the articles by the words that they share with the question; put your vector store here."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        shared = {name: len(words(query) & words(text)) for name, text in ARTICLES.items()}
        ranked = sorted(shared, key=lambda name: -shared[name])[:4]
        return [Document(id=name, page_content=ARTICLES[name], metadata={"score": shared[name]}) for name in ranked]


def keep_matches(documents: list[Document]) -> list[Document]:
    """Keep the two best documents, a reranker's place."""
    return [document for document in documents if document.metadata["score"]][:2]


class ScriptedModel(SimpleChatModel):
    """Answers from `SCRIPT`, word by word."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _call(self, messages: list[BaseMessage], *_: object, **__: object) -> str:
        return SCRIPT.get(str(messages[-1].content), "I do not know.")

    def _stream(self, messages: list[BaseMessage], *_: object, **__: Any) -> Iterator[ChatGenerationChunk]:
        for word in re.findall(r"\S+\s*", self._call(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


def chat_model(name: str | None, base_url: str | None) -> BaseChatModel:
    """Return a model of an OpenAI-compatible server, or the scripted one."""
    if name is None:
        return ScriptedModel()
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - needed with --model alone

    return ChatOpenAI(model=name, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))


def build_chain(model: BaseChatModel) -> Runnable[dict[str, Any], str]:
    """Return the chain from a question and its history to an answer."""
    passages = itemgetter("question") | Search() | keep_matches
    return (
        RunnablePassthrough.assign(documents=passages)
        | RunnablePassthrough.assign(context=lambda given: "\n\n".join(d.page_content for d in given["documents"]))
        | PROMPT
        | model
        | StrOutputParser()
    )
