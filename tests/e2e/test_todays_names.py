"""Names of today's conventions on what real LangChain and LlamaIndex applications export."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core import get_response_synthesizer
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import ragtrace_llamaindex
from ragtrace_langchain import RagtraceHandler
from tests.e2e.test_chain import Memory

TEXTS = ["Refunds take five working days.", "Parcels leave the warehouse at noon.", "The lab is in Oslo."]
USAGE = {
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.usage.cache_read.input_tokens": 60,
    "gen_ai.usage.cache_write.input_tokens": 30,
    "gen_ai.usage.reasoning.output_tokens": 12,
}


class Shop(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(id=f"d{n}", page_content=text) for n, text in enumerate(TEXTS)]


class Best(BaseDocumentCompressor):
    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return list(documents)[:2]


class Thinker(BaseChatModel):
    """Says what its answer cost, as the packages of providers do."""

    usage: dict[str, Any] = {  # noqa: RUF012 - a pydantic field
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": {"cache_read": 60, "cache_creation": 30},
        "output_token_details": {"reasoning": 12},
    }

    @property
    def _llm_type(self) -> str:
        return "thinker"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        message = AIMessage("Five days.", usage_metadata=self.usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        yield ChatGenerationChunk(message=AIMessageChunk("Five "))
        yield ChatGenerationChunk(message=AIMessageChunk("days.", usage_metadata=self.usage))


def langchain_app() -> Any:
    shown = RunnableLambda(lambda documents: "\n".join(d.page_content for d in documents))
    reranked = RunnableLambda(lambda documents: Best().compress_documents(documents, ""), name="rerank")
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    return {"context": Shop() | reranked | shown, "question": RunnablePassthrough()} | prompt | Thinker()


class ShopNodes(NodeRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=f"d{n}", text=text), score=1 - n / 10) for n, text in enumerate(TEXTS)
        ]


class BestNodes(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return nodes[:2]


class ClaudeLike(CustomLLM):
    """Gives Anthropic's raw usage, where the input leaves cached tokens out."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="claude-x")

    @llm_completion_callback()
    def complete(self, prompt: str, **kwargs: Any) -> CompletionResponse:
        usage = {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 12},
        }
        return CompletionResponse(text="Five days.", raw={"usage": usage})

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **kwargs: Any) -> Any:
        yield self.complete(prompt)


class MyAnthropicModel(ClaudeLike):
    """The provider is told from the name of the class."""


def llamaindex_answer(llm: CustomLLM) -> str:
    ragtrace_llamaindex.instrument()
    try:
        synthesizer = get_response_synthesizer(llm=llm, response_mode="compact")
        engine = RetrieverQueryEngine(ShopNodes(), synthesizer, node_postprocessors=[BestNodes()])
        return str(engine.query("How long?"))
    finally:
        ragtrace_llamaindex.uninstrument()


@pytest.fixture
def memory(service: Any) -> Memory:
    memory = Memory()
    service.configure(sample_rate=0.0, **memory.given())
    return memory


def call_of(memory: Memory) -> dict[str, Any]:
    memory.tracers.force_flush()
    (span,) = [s for s in memory.spans.get_finished_spans() if s.name.startswith(("chat", "text_completion"))]
    return dict(span.attributes or {})


def assert_latencies_and_tokens(memory: Memory) -> None:
    points = memory.points()
    assert [p.attributes["gen_ai.operation.name"] for p in points["gen_ai.client.operation.duration"]].count(
        "retrieval"
    ) == 1
    assert [p.count for p in points["gen_ai.client.inference.duration"]] == [1]
    counted = {
        name.removeprefix("gen_ai.client.inference."): p.value
        for name, (p, *_) in points.items()
        if name.startswith("gen_ai.client.inference.usage.")
    }
    assert counted == {name.removeprefix("gen_ai."): tokens for name, tokens in USAGE.items()}


@pytest.mark.parametrize("is_streamed", [False, True])
def test_langchain(memory: Memory, *, is_streamed: bool) -> None:
    app, config = langchain_app(), {"callbacks": [RagtraceHandler()]}
    answer = (
        "".join(str(piece.content) for piece in app.stream("How long?", config))
        if is_streamed
        else app.invoke("How long?", config).content
    )
    assert answer == "Five days."
    call = call_of(memory)
    assert {name: call.get(name) for name in USAGE} == USAGE
    assert call.get("gen_ai.request.stream") is (True if is_streamed else None)
    assert call["gen_ai.provider.name"] == "thinker"
    assert_latencies_and_tokens(memory)
    assert [p.count for p in memory.points()["ragtrace.rerank.duration"]] == [1]


def test_the_setting_names_the_metadata_of_a_request_that_its_root_carries(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory()
    monkeypatch.setenv("RAGTRACE_SPAN_METADATA", "tenant, plan")
    service.configure(sample_rate=0.0, **memory.given())
    config = {
        "callbacks": [RagtraceHandler()],
        "tags": ["vip"],
        "metadata": {"tenant": "acme", "plan": "gold", "card": "4111"},
    }
    langchain_app().invoke("How long?", config)
    memory.tracers.force_flush()
    (root,) = [s for s in memory.spans.get_finished_spans() if s.parent is None]
    found = {name: value for name, value in (root.attributes or {}).items() if name.startswith("ragtrace.run.")}
    assert found == {
        "ragtrace.run.outcome": "answered",
        "ragtrace.run.tags": ("vip",),
        "ragtrace.run.metadata.tenant": "acme",
        "ragtrace.run.metadata.plan": "gold",
    }
    assert "4111" not in str(root.attributes)


@pytest.mark.parametrize(("llm", "provider"), [(ClaudeLike(), "unknown"), (MyAnthropicModel(), "anthropic")])
def test_llamaindex(memory: Memory, llm: CustomLLM, provider: str) -> None:
    assert llamaindex_answer(llm) == "Five days."
    call = call_of(memory)
    assert {name: call.get(name) for name in USAGE} == USAGE
    assert call["gen_ai.provider.name"] == provider
    assert "gen_ai.request.stream" not in call
    assert_latencies_and_tokens(memory)
    assert [p.count for p in memory.points()["ragtrace.rerank.duration"]] == [1]
