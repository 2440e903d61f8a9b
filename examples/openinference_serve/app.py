"""A shop's help desk on LangChain under OpenInference; nothing in it knows of ragtrace.

Run ``ragtrace serve`` beside it, and then ``python app.py``, or with a model:
``python app.py --model gpt-4o-mini [--base-url URL]``.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

ARTICLES = {
    "returns": "You can return shoes within 30 days of delivery. The label is in the box.",
    "delivery": "Delivery takes two to four working days. It is free above 50 euros.",
    "sizes": "A shoe that does not fit is exchanged for another size at no charge.",
    "care": "Brush suede shoes when they are dry. Never wash them.",
}
SCRIPT = {
    "How many days do I have to return shoes?": "You can return shoes within 30 days of delivery.",
    "When is delivery free?": "Delivery is free above 50 euros. Members of the club never pay for it.",
    "Can I wash suede shoes?": "Never wash suede shoes. Brush them when they are dry.",
}
PROMPT = ChatPromptTemplate.from_template("Answer from these passages alone:\n\n{context}\n\nQuestion: {question}")


def words(text: str) -> set[str]:
    """Return the words of a text that are worth a search."""
    return set(re.findall(r"[a-z]{4,}", text.lower()))


class Search(BaseRetriever):
    """Ranks the articles by the words that they share with the question; put your vector store here."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        shared = {name: len(words(query) & words(text)) for name, text in ARTICLES.items()}
        ranked = sorted(shared, key=lambda name: -shared[name])[:2]
        return [Document(id=name, page_content=ARTICLES[name], metadata={"score": shared[name]}) for name in ranked]


def chat_model(name: str | None, base_url: str | None) -> BaseChatModel:
    """Return a model of an OpenAI-compatible server, or one that answers in the order of `SCRIPT`."""
    if name is None:
        return FakeListChatModel(responses=list(SCRIPT.values()))
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - needed with --model alone

    return ChatOpenAI(model=name, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))


def build_chain(model: BaseChatModel) -> Runnable[str, str]:
    """Return the chain from a question to an answer."""
    return {"context": Search(), "question": RunnablePassthrough()} | PROMPT | model | StrOutputParser()


def trace(endpoint: str) -> TracerProvider:
    """Send the spans of LangChain to an OTLP/HTTP address, as to any backend."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shoe-shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    return provider


def main() -> None:
    """Ask three questions as three users."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    parser.add_argument(
        "--endpoint", default="http://127.0.0.1:4328/v1/traces", help="default: ragtrace serve here"
    )
    args = parser.parse_args()
    provider = trace(args.endpoint)
    chain = build_chain(chat_model(args.model, args.base_url))
    for number, question in enumerate(SCRIPT, start=1):
        with using_attributes(session_id=f"s-{number}", user_id=f"u-{number}"):
            print(f"{question}\n  {chain.invoke(question, config={'run_name': 'shoe-shop'})}")
    provider.shutdown()


if __name__ == "__main__":
    main()
