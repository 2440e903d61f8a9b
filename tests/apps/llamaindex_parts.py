"""LlamaIndex's parts of the applications: the shop's index, a keyword index, and models that reply."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, ClassVar

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragtrace_llamaindex import instrument, uninstrument
from tests.apps.application import Application, nothing
from tests.apps.shop import TEXTS, vectors


@contextmanager
def _instrumented(recorder):
    instrument(recorder)
    try:
        yield
    finally:
        uninstrument()


class LlamaIndexApplication(Application):
    """An application that is captured by `instrument`."""

    captures: ClassVar = {"none": nothing, "instrument": _instrumented}


class EngineApplication(LlamaIndexApplication):
    """An application that `build` returns as a query engine, which is asked the expected question."""

    def build(self, *, streaming=False):
        raise NotImplementedError

    def ask(self, _given):
        return str(self.build().query(self.expected[0].question))

    async def aask(self, _given):
        return str(await self.build().aquery(self.expected[0].question))


class StreamingEngineApplication(EngineApplication):
    """One whose engine can stream."""

    def stream(self, _given):
        return self.build(streaming=True).query(self.expected[0].question).response_gen

    async def astream(self, _given):
        answer = await self.build(streaming=True).aquery(self.expected[0].question)
        async for piece in answer.async_response_gen():
            yield piece


class Directions(BaseEmbedding):
    """Embeds the shop's passages and the queries given; a node's metadata may stand before its text."""

    known: dict[str, list[float]]

    def _vector(self, text):
        return self.known[text] if text in self.known else next(v for k, v in self.known.items() if k in text)

    def _get_query_embedding(self, query):
        return self._vector(query)

    async def _aget_query_embedding(self, query):
        return self._vector(query)

    def _get_text_embedding(self, text):
        return self._vector(text)


def node(name):
    return TextNode(id_=name, text=TEXTS[name], metadata={"page": list(TEXTS).index(name)})


def index(queries, names=tuple(TEXTS)):
    """Return an index of the shop's passages; `queries` gives each query its direction."""
    return VectorStoreIndex([node(name) for name in names], embed_model=Directions(known=vectors(queries)))


class Keywords(BaseRetriever):
    """A keyword index over the same nodes: passages by the number of the query's words that they hold."""

    def __init__(self, k=2):
        super().__init__()
        self.k = k

    def _retrieve(self, query_bundle):
        words = set(re.findall(r"\w{4,}", query_bundle.query_str.lower()))
        counts = {name: sum(word in text.lower() for word in words) for name, text in TEXTS.items()}
        best = sorted((name for name in TEXTS if counts[name]), key=lambda name: -counts[name])
        return [NodeWithScore(node=node(name), score=float(counts[name])) for name in best[: self.k]]


def words(text):
    return re.findall(r"\s*\S+", text)


class Replies(CustomLLM):
    """Replies by what stands in the prompt: the first rule whose words stand in it."""

    rules: list[tuple[str, str]]

    @property
    def metadata(self):
        return LLMMetadata(model_name="replies")

    def _reply(self, prompt):
        return next(reply for needed, reply in self.rules if needed in prompt)

    @llm_completion_callback()
    def complete(self, prompt, **kwargs):
        return CompletionResponse(text=self._reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt, **kwargs):
        def pieces():
            said = ""
            for piece in words(self._reply(prompt)):
                said += piece
                yield CompletionResponse(text=said, delta=piece)

        return pieces()


class Caller(FunctionCallingLLM):
    """Replies in turn: with a text, or with a call of a tool as a dict of its name and arguments."""

    replies: list[Any]
    turns: list[Any] = []

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="caller")

    def _reply(self):
        reply = self.replies[len(self.turns)]
        self.turns.append(reply)
        if isinstance(reply, str):
            return reply, {}
        return "", {"tool_calls": [reply]}

    def _response(self):
        text, extra = self._reply()
        return ChatResponse(
            message=ChatMessage(role="assistant", content=text, additional_kwargs=extra), delta=text
        )

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return self._response()

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        return self._response()

    @llm_chat_callback()
    def stream_chat(self, messages, **kwargs):
        return (reply for reply in [self._response()])

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        text, extra = self._reply()

        async def pieces():
            said = ""
            for piece in words(text) or [""]:
                said += piece
                message = ChatMessage(role="assistant", content=said, additional_kwargs=extra)
                yield ChatResponse(message=message, delta=piece)

        return pieces()

    def complete(self, prompt, **kwargs):
        raise NotImplementedError

    async def acomplete(self, prompt, **kwargs):
        raise NotImplementedError

    def stream_complete(self, prompt, **kwargs):
        raise NotImplementedError

    async def astream_complete(self, prompt, **kwargs):
        raise NotImplementedError

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return {"messages": list(chat_history or [])}

    def get_tool_calls_from_response(self, response, **kwargs):
        made = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(tool_id="1", tool_name=one["name"], tool_kwargs=one["arguments"]) for one in made]


def call(name, **arguments):
    """Return a model's reply that calls a tool."""
    return {"name": name, "arguments": arguments}
