"""LangChain's parts of the applications: the shop's store, a keyword index without ids, and a model that replies."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.apps.application import Application, nothing
from tests.apps.shop import TEXTS, vectors

PROMPT = ChatPromptTemplate.from_template("Answer from the context alone.\n\n{context}\n\nQuestion: {question}")


@contextmanager
def _handler(recorder):
    yield {"callbacks": [RagtraceHandler(recorder)]}


@contextmanager
def _instrumented(recorder):
    instrument(recorder)
    try:
        yield {}
    finally:
        uninstrument()


class LangChainApplication(Application):
    """An application that `build` returns as one runnable, called with `inputs` or else with the question."""

    captures: ClassVar = {"none": nothing, "handler": _handler, "instrument": _instrumented}
    inputs: ClassVar[Any] = None

    def build(self):
        raise NotImplementedError

    def _given(self):
        return self.expected[0].question if self.inputs is None else self.inputs

    def ask(self, config):
        return self.build().invoke(self._given(), config)

    async def aask(self, config):
        return await self.build().ainvoke(self._given(), config)

    def stream(self, config):
        return self.build().stream(self._given(), config)

    def astream(self, config):
        return self.build().astream(self._given(), config)


class Directions(Embeddings):
    """Embeds the shop's passages and the queries given."""

    def __init__(self, queries):
        self._vectors = vectors(queries)

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        if text in self._vectors:
            return self._vectors[text]
        return next(vector for whole, vector in self._vectors.items() if text in whole)  # a piece of a passage


def document(name, *, with_id=True):
    return Document(
        id=name if with_id else None, page_content=TEXTS[name], metadata={"page": list(TEXTS).index(name)}
    )


def store(queries, names=tuple(TEXTS)):
    """Return a vector store of the shop's passages; `queries` gives each query its direction."""
    made = InMemoryVectorStore(Directions(queries))
    made.add_documents([document(name) for name in names])
    return made


class Keywords(BaseRetriever):
    """A keyword index without ids: passages by the number of the query's words that they hold, as the keyword
    retrievers of LangChain's packages return them."""

    k: int = 2

    def _get_relevant_documents(self, query, *, run_manager):
        words = set(re.findall(r"\w{4,}", query.lower()))
        counts = {name: sum(word in text.lower() for word in words) for name, text in TEXTS.items()}
        best = sorted((name for name in TEXTS if counts[name]), key=lambda name: -counts[name])
        return [document(name, with_id=False) for name in best[: self.k]]


class Replies(BaseChatModel):
    """Replies by what stands in the prompt: the first rule whose words stand in it, or what its function returns."""

    rules: list[tuple[str, Any]]

    @property
    def _llm_type(self):
        return "replies"

    def bind_tools(self, tools, **kwargs):
        return self

    def _reply(self, messages):
        prompt = "\n".join(str(message.content) for message in messages)
        reply = next(reply for words, reply in self.rules if words in prompt)
        if callable(reply):
            reply = reply(messages)
        return AIMessage(reply) if isinstance(reply, str) else reply.model_copy()

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self._reply(messages)
        if reply.tool_calls:
            chunks = [
                {"name": one["name"], "args": json.dumps(one["args"]), "id": one["id"], "index": place}
                for place, one in enumerate(reply.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=chunks))
            return
        for piece in re.findall(r"\S+\s*", reply.content):
            chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


def calls(name, **arguments):
    """Return a model's reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def joined(documents):
    return "\n\n".join(one.page_content for one in documents)
