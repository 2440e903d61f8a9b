"""Query and chat engines on llama-index-core, called in every form that an application uses."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

QUESTION = "Where is the lab?"
ANSWER = "The lab is in Oslo."


class Faq(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        texts = [f'Passage {i}\n"says" that the lab moved {i} times.' for i in range(6)]
        return [
            NodeWithScore(node=TextNode(id_=f"d{i}", text=text), score=1 - i / 10) for i, text in enumerate(texts)
        ]


class Broken(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        raise ConnectionError("index is down")


class Best(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        return [nodes[4], nodes[1]]


class Model(CustomLLM):
    is_broken: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="fake")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - the protocol's
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - the protocol's
        def pieces() -> Any:
            text = ""
            for word in ANSWER.split(" "):
                text += word + " "
                yield CompletionResponse(text=text, delta=word + " ")
                if self.is_broken:
                    raise TimeoutError("model is gone")

        return pieces()


def engine(retriever: BaseRetriever | None = None, *, is_streaming: bool = False, is_broken: bool = False) -> Any:
    made = get_response_synthesizer(llm=Model(is_broken=is_broken), streaming=is_streaming)
    return RetrieverQueryEngine(retriever or Faq(), response_synthesizer=made, node_postprocessors=[Best()])


def chat() -> Any:
    model = Model()
    memory = ChatMemoryBuffer.from_defaults(llm=model)
    return ContextChatEngine(Faq(), llm=model, memory=memory, prefix_messages=[], node_postprocessors=[Best()])


def _streamed(**options: Any) -> list[str]:
    return list(engine(is_streaming=True, **options).query(QUESTION).response_gen)


async def _astreamed(**options: Any) -> list[str]:
    response = await engine(is_streaming=True, **options).aquery(QUESTION)
    return [piece async for piece in response.async_response_gen()]


async def _asked() -> str:
    return str(await engine().aquery(QUESTION))


async def _chatted() -> str:
    return str(await chat().achat(QUESTION))


async def _chat_astreamed() -> list[str]:
    response = await chat().astream_chat(QUESTION)
    return [piece async for piece in response.async_response_gen()]


async def _aretrieval_fails() -> str:
    return str(await engine(Broken()).aquery(QUESTION))


def _left_after_one_piece() -> list[str]:
    stream = engine(is_streaming=True).query(QUESTION).response_gen
    taken = [next(stream)]
    stream.close()
    return taken


SCENARIOS = {
    "query": lambda: str(engine().query(QUESTION)),
    "aquery": _asked,
    "query, streaming": _streamed,
    "aquery, streaming": _astreamed,
    "query, printed": lambda: str(engine(is_streaming=True).query(QUESTION)),
    "chat": lambda: str(chat().chat(QUESTION)),
    "achat": _chatted,
    "stream_chat": lambda: list(chat().stream_chat(QUESTION).response_gen),
    "astream_chat": _chat_astreamed,
    "simple stream_chat": lambda: list(
        SimpleChatEngine.from_defaults(llm=Model()).stream_chat(QUESTION).response_gen
    ),
    "stream left after one piece": _left_after_one_piece,
    "retriever raises": lambda: str(engine(Broken()).query(QUESTION)),
    "retriever raises, async": _aretrieval_fails,
    "model raises in a stream": lambda: _streamed(is_broken=True),
    "model raises in an async stream": lambda: _astreamed(is_broken=True),
}
