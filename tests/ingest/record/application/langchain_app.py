"""The help centre on LangChain: retriever, prompt, chat model, parser."""

from __future__ import annotations

from typing import Any

import shop
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI


class HelpCentre(BaseRetriever):
    k: int = shop.TOP_K

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(
                id=name,
                page_content=shop.ARTICLES[name].text,
                metadata={"section": shop.ARTICLES[name].section, "score": score},
            )
            for name, score in shop.question(query).results[: self.k]
        ]


def passages(found: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in found)


def ask(text: str) -> str:
    prompt = ChatPromptTemplate.from_messages([("system", shop.SYSTEM), ("human", shop.USER)])
    inputs: Any = {"context": HelpCentre() | passages, "question": RunnablePassthrough()}
    model = ChatOpenAI(model=shop.MODEL, temperature=0)
    chain = inputs | prompt | model | StrOutputParser()
    return str(chain.invoke(text, config={"run_name": "help-centre"}))
