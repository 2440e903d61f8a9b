"""The LangChain application: retrieve 50, rerank to 8 in a function, render a prompt, ask a fake chat model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cached_property, partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from benchmarks.overhead.rounds import STATE, VECTORS
from benchmarks.overhead.texts import CHOSEN, TEMPLATE, passages, pieces, question

Configs = Callable[[], dict[str, Any]]
MANY, CHUNKS = 64, 200


class Retriever(BaseRetriever):
    docs: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.docs

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.docs


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ConnectionError("the index is down")


class Model(BaseChatModel):
    """Answers at once, in as many chunks as it is told; `fails` after the first."""

    model_name: str = "offline-1"  # a peer takes no notice of models without a name
    chunks: int = 1
    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if self.fails:
            raise RuntimeError("the model is down")
        usage = {"input_tokens": 1_600, "output_tokens": 9, "total_tokens": 1_609}
        message = AIMessage(content="".join(pieces(self.chunks)), usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for piece in pieces(self.chunks):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
            if self.fails:
                raise RuntimeError("the model is down")

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in pieces(self.chunks):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


def _rerank(docs: list[Document]) -> list[Document]:
    return docs[CHOSEN]


async def _arerank(docs: list[Document]) -> list[Document]:
    return docs[CHOSEN]


def _join(docs: list[Document]) -> str:
    return "\n".join(doc.page_content for doc in docs)


async def _ajoin(docs: list[Document]) -> str:
    return _join(docs)


def documents() -> list[Document]:
    return [Document(id=one, page_content=text, metadata={"score": score}) for one, text, score in passages()]


def chain(model: BaseChatModel, retriever: BaseRetriever | None = None) -> Runnable:
    """Every step has an async form of its own, so that no run waits for an executor's thread."""
    context = (
        (retriever or Retriever(docs=documents()))
        | RunnableLambda(_rerank, _arerank, name="rerank")
        | RunnableLambda(_join, _ajoin, name="join")
    )
    prompt = ChatPromptTemplate.from_template(TEMPLATE)
    return {"context": context, "question": RunnablePassthrough()} | prompt | model


def state_chain(vectors: list[list[float]]) -> Runnable:
    """A chain whose steps hand a state on, with vectors in it."""
    found = {
        "context": Retriever(docs=documents()),
        "question": RunnablePassthrough(),
        "vectors": lambda _: vectors,
    }
    choose = RunnableLambda(lambda state: {**state, "context": _rerank(state["context"])}, name="choose")
    join = RunnableLambda(lambda state: {**state, "context": _join(state["context"])}, name="join")
    return found | choose | join | ChatPromptTemplate.from_template(TEMPLATE) | Model()


class App:
    """The scenarios of LangChain; each call makes as many runs as its name says and returns that number."""

    def __init__(self, configs: Configs) -> None:
        self._config = configs
        self._plain = chain(Model())
        self._streamed = {count: chain(Model(chunks=count)) for count in (1, CHUNKS)}
        self._state = state_chain([])
        self._no_index = chain(Model(), Broken())
        self._no_model = chain(Model(fails=True, chunks=CHUNKS))
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self.scenarios: dict[str, Callable[[], int]] = {
            "invoke": self.invoke,
            "ainvoke x64": self.ainvoke,
            "batch of 64": self.batch,
            "stream of 200": partial(self.stream, CHUNKS),
            "stream of 1": partial(self.stream, 1),
            STATE: partial(self._invoke, self._state),
            VECTORS: lambda: self._invoke(self._with_vectors),
        }

    @cached_property
    def _with_vectors(self) -> Runnable:  # 50 MB, which the other scenarios need not have beside them
        return state_chain([[number / 7 for number in range(place, place + 1_536)] for place in range(1_000)])

    def _next(self) -> str:
        self._number += 1
        return question(self._number)

    def invoke(self) -> int:
        return self._invoke(self._plain)

    def _invoke(self, chain: Runnable) -> int:
        chain.invoke(self._next(), config=self._config())
        return 1

    def ainvoke(self) -> int:
        async def all_of_them() -> None:
            await asyncio.gather(*(self._plain.ainvoke(self._next(), config=self._config()) for _ in range(MANY)))

        self._loop.run_until_complete(all_of_them())
        return MANY

    def batch(self) -> int:
        self._plain.batch([self._next() for _ in range(MANY)], config=self._config())
        return MANY

    def stream(self, chunks: int) -> int:
        for _ in self._streamed[chunks].stream(self._next(), config=self._config()):
            pass
        return 1

    def fail(self, kind: str) -> None:
        """A run that does not end well; what the application sees of it is caught here."""
        if kind == "abandoned":
            stream = self._streamed[CHUNKS].stream(self._next(), config=self._config())
            next(stream)
            return
        failing = self._no_index if kind == "retriever" else self._no_model
        try:
            failing.invoke(self._next(), config=self._config())
        except (ConnectionError, RuntimeError):
            return
        raise AssertionError("it should have failed")
