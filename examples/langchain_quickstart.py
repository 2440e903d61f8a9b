"""A LangChain RAG chain with ragtrace's callback, all offline: what is captured, and what it scores.

Run it: ``python examples/langchain_quickstart.py``. It needs ``pip install ".[langchain]"`` in a clone.
"""

from __future__ import annotations

import os

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace_langchain import RagtraceHandler

PASSAGES = {
    "cancel-1": "You can cancel a subscription at any time under Settings, then Billing.",
    "cancel-2": "After you cancel, the subscription runs until the end of the paid month.",
    "refund-1": "Refunds are paid to the original card within five working days.",
    "invoice-1": "Invoices are sent by mail on the first day of each month.",
    "seats-1": "A team can add or remove seats under Settings, then Members.",
}


def words(text: str) -> set[str]:
    """Return the longer words of a text."""
    return {word.strip(".,?").lower() for word in text.split() if len(word) > 3}


class WordRetriever(BaseRetriever):
    """Ranks passages by the words they share with the question."""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:  # noqa: ARG002 - asked for
        asked = words(query)
        scored = [(len(asked & words(text)) / len(asked), name) for name, text in PASSAGES.items()]
        ranked = sorted(scored, reverse=True)
        return [Document(id=name, page_content=PASSAGES[name], metadata={"score": score}) for score, name in ranked]


def rerank(documents: list[Document]) -> list[Document]:
    """Keep the two best: here, those that say most about billing."""
    for document in documents:
        document.metadata["relevance_score"] = len(
            words(document.page_content) & words("cancel subscription billing")
        )
    return sorted(documents, key=lambda document: -document.metadata["relevance_score"])[:2]


def shown(documents: list[Document]) -> str:
    """Return the context of the prompt."""
    return "\n".join(document.page_content for document in documents)


prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(
    responses=[
        "You can cancel a subscription at any time under Settings, then Billing.",
        "You can cancel under Settings. A fee of 20 dollars is charged.",
    ]
)
chain = (
    {"context": WordRetriever() | RunnableLambda(rerank) | shown, "question": RunnablePassthrough()}
    | prompt
    | model
    | StrOutputParser()
)


def main() -> None:
    """Ask twice, and print the spans and scores of both runs."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for signal in ("METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    ragtrace.configure(judge="overlap", sample_rate=1.0, content="full", tracer_provider=provider)
    config = {"callbacks": [RagtraceHandler(workflow="quickstart")], "metadata": {"ragtrace.session": "s-1"}}
    for answer in (chain.invoke("How can I cancel my subscription?", config) for _ in range(2)):
        print("answer:", answer)
    ragtrace.flush(5)
    ragtrace.shutdown(5)
    for span in exporter.get_finished_spans():
        print(span.name)
        for key, value in sorted((span.attributes or {}).items()):
            if key.startswith(("ragtrace.pool", "ragtrace.selected", "ragtrace.prompt", "ragtrace.score.")):
                print(f"  {key} = {value}")


if __name__ == "__main__":
    main()
