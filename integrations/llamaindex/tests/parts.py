"""Real LlamaIndex parts that run offline: retrievers, postprocessors, engines, models; a listener that keeps."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from llama_index.core.agent.workflow import base_agent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import function_tool

from tests.kept import ANSWER, ids, kinds

TOOLS_WAIT = pytest.mark.skipif(
    "WaitingForEvent" not in inspect.getsource(base_agent),
    reason="agents of this llama-index-core take a tool that waits for one that failed",
)
TOOLS_KNOW_THEIR_RUN = pytest.mark.skipif(
    "copy_context" not in inspect.getsource(function_tool),
    reason="this llama-index-core calls a function in a thread without its context",
)


def nodes(size=6, prefix="d"):
    return [
        NodeWithScore(
            node=TextNode(
                id_=f"{prefix}{i}",
                text=f"Passage {prefix}{i} says that the lab moved {i} times.",
                metadata={"page": i},
                excluded_llm_metadata_keys=["page"],
            ),
            score=1 - i / 100,
        )
        for i in range(size)
    ]


class Faq(BaseRetriever):
    """Passages d0, d1, ... with falling scores."""

    def __init__(self, size=6, prefix="d", **kwargs):
        super().__init__(**kwargs)
        self.similarity_top_k = size
        self.prefix = prefix

    def _retrieve(self, query_bundle):
        return nodes(self.similarity_top_k, self.prefix)


class Given(BaseRetriever):
    """Returns what it is given."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def _retrieve(self, query_bundle):
        return self.found


class Broken(BaseRetriever):
    def _retrieve(self, query_bundle):
        raise ConnectionError("index is down")


class Best(BaseNodePostprocessor):
    """Keeps the last two, best first, with scores of its own on new objects."""

    top_n: int = 2

    def _postprocess_nodes(self, nodes, query_bundle=None):
        chosen = list(reversed(nodes))[: self.top_n]
        return [NodeWithScore(node=one.node, score=0.9 - i / 10) for i, one in enumerate(chosen)]


class InPlace(BaseNodePostprocessor):
    """As the cross-encoders do it: writes its scores into the same objects, sorts and cuts the same list."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for i, one in enumerate(nodes):
            one.score = i / 10
        nodes.sort(key=lambda one: -one.score)
        del nodes[2:]
        return nodes


class First(BaseNodePostprocessor):
    """Keeps the first ones with their scores."""

    n: int = 3

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[: self.n]


class Llm(CustomLLM):
    """Says `says`, word by word when it streams; fails with `error`, after two words when it streams."""

    says: str = ANSWER
    error: object = None

    @property
    def metadata(self):
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt, **kwargs):
        if self.error is not None:
            raise self.error
        return CompletionResponse(text=self.says, raw={"usage": {"prompt_tokens": 7, "completion_tokens": 5}})

    @llm_completion_callback()
    def stream_complete(self, prompt, **kwargs):
        def pieces():
            text = ""
            for i, piece in enumerate(words(self.says)):
                if self.error is not None and i == 2:
                    raise self.error
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return pieces()


def words(text):
    return [word if i == 0 else f" {word}" for i, word in enumerate(text.split(" "))]


class ToolCaller(FunctionCallingLLM):
    """Gives out its replies in turn: a text, calls of tools as dicts with name and arguments, or an error to raise."""

    replies: list = []  # noqa: RUF012 - a pydantic field
    said: list = []  # noqa: RUF012

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="caller-1")

    def _reply(self):
        reply = self.replies[len(self.said)]
        self.said.append(reply)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dict | list):
            called = reply if isinstance(reply, list) else [reply]
            message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": called})
            return ChatResponse(message=message, delta="")
        usage = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}, "model": "caller-1-b", "id": "r-7"}
        return ChatResponse(message=ChatMessage(role="assistant", content=reply), delta=reply, raw=usage)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return self._reply()

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        return self._reply()

    @llm_chat_callback()
    def stream_chat(self, messages, **kwargs):
        return (reply for reply in [self._reply()])

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        reply = self._reply()

        async def pieces():
            yield reply

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
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(tool_id="1", tool_name=one["name"], tool_kwargs=one["args"]) for one in calls]


def engine(retriever=None, postprocessors=None, llm=None, mode="compact", *, streaming=False):
    """The engine of LlamaIndex's own tutorials, with a reranker in it."""
    synthesizer = get_response_synthesizer(llm=llm or Llm(), response_mode=mode, streaming=streaming)
    return RetrieverQueryEngine(
        retriever=retriever or Faq(),
        response_synthesizer=synthesizer,
        node_postprocessors=[Best()] if postprocessors is None else postprocessors,
    )


def checked(run, question="Where?"):
    assert (run.record.query, run.record.answer, run.record.outcome) == (question, ANSWER, "answered")
    assert kinds(run) == ["retrieval", "rerank", "chat"]
    assert (len(ids(run, "retrieved")), ids(run, "reranked")) == (6, ["d5", "d4"])
    assert run.prompt_ids == ("d5", "d4")


async def until(condition):
    """Let other tasks run until something holds."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to pass")
