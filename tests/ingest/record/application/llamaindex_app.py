"""The help centre on LlamaIndex: a query engine over a retriever."""

from __future__ import annotations

from typing import Any

import shop
from llama_index.core.prompts import ChatMessage, ChatPromptTemplate, MessageRole
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai import OpenAI


class HelpCentre(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=name,
                    text=shop.ARTICLES[name].text,
                    metadata={"section": shop.ARTICLES[name].section},
                    excluded_llm_metadata_keys=["section"],
                ),
                score=score,
            )
            for name, score in shop.question(query_bundle.query_str).results[: shop.TOP_K]
        ]


def ask(text: str) -> str:
    user = shop.USER.replace("{context}", "{context_str}").replace("{question}", "{query_str}")
    template = ChatPromptTemplate(
        [
            ChatMessage(shop.SYSTEM, role=MessageRole.SYSTEM),
            ChatMessage(user, role=MessageRole.USER),
        ]
    )
    model = OpenAI(model=shop.MODEL, temperature=0, max_retries=0)
    made = get_response_synthesizer(llm=model, text_qa_template=template)
    return str(RetrieverQueryEngine(HelpCentre(), response_synthesizer=made).query(text))
