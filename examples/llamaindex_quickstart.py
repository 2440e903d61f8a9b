"""A LlamaIndex query engine under ragtrace, all offline: what is captured, and what it scores.

Run it: ``python examples/llamaindex_quickstart.py``. It needs ``pip install ".[llamaindex]"`` in a clone.
"""

from __future__ import annotations

import os
from typing import Any

from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace_llamaindex import instrument, request

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

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = words(query_bundle.query_str)
        scored = [(len(asked & words(text)) / len(asked), name) for name, text in PASSAGES.items()]
        ranked = sorted(scored, reverse=True)
        return [NodeWithScore(node=TextNode(id_=name, text=PASSAGES[name]), score=score) for score, name in ranked]


class BillingFirst(BaseNodePostprocessor):
    """Keeps the two passages that say most about billing."""

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002 - asked for
    ) -> list[NodeWithScore]:
        for one in nodes:
            one.score = len(words(one.text) & words("cancel subscription billing")) / 10
        return sorted(nodes, key=lambda one: -(one.score or 0.0))[:2]


class Scripted(CustomLLM):
    """Says the truth, word by word when it streams."""

    @property
    def metadata(self) -> LLMMetadata:
        """Return the model's name."""
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, **_kwargs: Any) -> CompletionResponse:  # noqa: ARG002 - asked for
        """Answer at once."""
        return CompletionResponse(text="You can cancel a subscription at any time under Settings, then Billing.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_kwargs: Any) -> CompletionResponseGen:  # noqa: ARG002 - asked for
        """Answer piece by piece, with something made up at the end."""
        pieces = ["You can ", "cancel under Settings. ", "A fee of 20 dollars ", "is charged."]
        return (CompletionResponse(text="".join(pieces[: i + 1]), delta=one) for i, one in enumerate(pieces))


def engine(*, streaming: bool) -> RetrieverQueryEngine:
    """Return the query engine: retriever, reranker, model."""
    return RetrieverQueryEngine(
        retriever=WordRetriever(),
        node_postprocessors=[BillingFirst()],
        response_synthesizer=get_response_synthesizer(llm=Scripted(), streaming=streaming),
    )


def main() -> None:
    """Ask twice, the second time as a stream, and print the spans and scores of both runs."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for signal in ("METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    ragtrace.configure(judge="overlap", sample_rate=1.0, content="full", tracer_provider=provider)
    instrument(workflow="quickstart")
    with request(session="s-1", corpus="faq"):
        for streaming in (False, True):
            print("answer:", engine(streaming=streaming).query("How can I cancel my subscription?"))
    ragtrace.flush(5)
    ragtrace.shutdown(5)
    for span in exporter.get_finished_spans():
        print(span.name)
        for key, value in sorted((span.attributes or {}).items()):
            if key.startswith(("ragtrace.pool", "ragtrace.selected", "ragtrace.prompt", "ragtrace.score.")):
                print(f"  {key} = {value}")


if __name__ == "__main__":
    main()
