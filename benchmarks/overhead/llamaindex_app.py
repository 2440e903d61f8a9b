"""The LlamaIndex application: RetrieverQueryEngine over 50 nodes, a postprocessor that keeps 8, a fake model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from llama_index.core import PromptTemplate
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from benchmarks.overhead.texts import CHOSEN, TEMPLATE, passages, pieces, question

MANY, CHUNKS = 64, 200
# One for all parts, as LlamaIndex's Settings give them: a retriever with one of its own keeps a list a run in it.
CALLBACKS = CallbackManager()


class Retriever(BaseRetriever):
    """Returns the same nodes in new wrappers, as an index does."""

    def __init__(self) -> None:
        super().__init__(callback_manager=CALLBACKS)
        self.similarity_top_k = 50
        self.found = [(TextNode(id_=one, text=text), score) for one, text, score in passages()]

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=score) for node, score in self.found]

    async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


class Broken(BaseRetriever):
    def __init__(self) -> None:
        super().__init__(callback_manager=CALLBACKS)

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        raise ConnectionError("the index is down")


class Reranker(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return [NodeWithScore(node=one.node, score=0.9 - i / 100) for i, one in enumerate(nodes[CHOSEN])]


class Model(CustomLLM):
    """Answers at once, in as many chunks as it is told; `fails` after the first."""

    chunks: int = 1
    fails: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="offline-1", context_window=32_768)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002
        if self.fails:
            raise RuntimeError("the model is down")
        usage = {"usage": {"prompt_tokens": 1_600, "completion_tokens": 9, "total_tokens": 1_609}}
        return CompletionResponse(text="".join(pieces(self.chunks)), raw=usage)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        def flowing() -> Iterator[CompletionResponse]:
            said = ""
            for piece in pieces(self.chunks):
                said += piece
                yield CompletionResponse(text=said, delta=piece)
                if self.fails:
                    raise RuntimeError("the model is down")

        return flowing()


def engine(
    model: Model, retriever: BaseRetriever | None = None, *, streaming: bool = False
) -> RetrieverQueryEngine:
    template = PromptTemplate(TEMPLATE.replace("{context}", "{context_str}").replace("{question}", "{query_str}"))
    synthesizer = get_response_synthesizer(
        llm=model,
        response_mode="compact",
        text_qa_template=template,
        streaming=streaming,
        callback_manager=CALLBACKS,
    )
    return RetrieverQueryEngine(
        retriever=retriever or Retriever(),
        response_synthesizer=synthesizer,
        node_postprocessors=[Reranker(callback_manager=CALLBACKS)],
        callback_manager=CALLBACKS,
    )


class App:
    """The scenarios of LlamaIndex; each call makes as many runs as its name says and returns that number."""

    def __init__(self) -> None:
        self._plain = engine(Model(callback_manager=CALLBACKS))
        self._streamed = {
            count: engine(Model(chunks=count, callback_manager=CALLBACKS), streaming=True) for count in (1, CHUNKS)
        }
        self._no_index = engine(Model(callback_manager=CALLBACKS), Broken())
        self._no_model = engine(Model(fails=True, callback_manager=CALLBACKS))
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self.scenarios: dict[str, Callable[[], int]] = {
            "query": self.query,
            "aquery x64": self.aquery,
            "stream of 200": partial(self.stream, CHUNKS),
            "stream of 1": partial(self.stream, 1),
        }

    def _next(self) -> str:
        self._number += 1
        return question(self._number)

    def query(self) -> int:
        self._plain.query(self._next())
        return 1

    def aquery(self) -> int:
        async def all_of_them() -> None:
            await asyncio.gather(*(self._plain.aquery(self._next()) for _ in range(MANY)))

        self._loop.run_until_complete(all_of_them())
        return MANY

    def stream(self, chunks: int) -> int:
        for _ in self._streamed[chunks].query(self._next()).response_gen:
            pass
        return 1

    def fail(self, kind: str) -> None:
        """A run that does not end well; what the application sees of it is caught here."""
        if kind == "abandoned":
            next(self._streamed[CHUNKS].query(self._next()).response_gen)
            return
        failing = self._no_index if kind == "retriever" else self._no_model
        try:
            failing.query(self._next())
        except (ConnectionError, RuntimeError):
            return
        raise AssertionError("it should have failed")
