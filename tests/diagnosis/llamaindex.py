"""Runs of the bed through engines, workflows and agents of LlamaIndex, with an extractor between or without one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

import ragtrace_llamaindex
from tests.diagnosis.frameworks import first_sentence
from tests.diagnosis.world import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from ragtrace.capture import Recorder
    from tests.diagnosis.bed import Case
    from tests.diagnosis.frameworks import Framework

PROMPT = "Answer from this:\n{context}\n\nQuestion: {question}"


def _new(one: NodeWithScore, text: str, **kept: Any) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, **kept), score=one.score)


def _shortened(one: NodeWithScore, **kept: Any) -> NodeWithScore:
    return _new(one, first_sentence(one.text), **kept)


EXTRACTORS: dict[str, Callable[[list[NodeWithScore]], list[Any]]] = {
    "none": lambda found: found,
    "new documents": lambda found: [_shortened(one) for one in found],
    "with the metadata": lambda found: [_shortened(one, metadata=one.metadata) for one in found],
    "with the id": lambda found: [_shortened(one, metadata=one.metadata, id_=one.node_id) for one in found],
    "texts": lambda found: [first_sentence(one.text) for one in found],
    "sentences": lambda found: [
        _new(one, text, metadata=one.metadata) for one in found for text in sentences(one.text)
    ],
}


class _Index(BaseRetriever):
    def __init__(self, found: list[NodeWithScore]) -> None:
        super().__init__()
        self.found = found

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return list(self.found)


class _Keep(BaseNodePostprocessor):
    keep: Any

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return list(self.keep(nodes))


class _Says(CustomLLM):
    says: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self.says)

    def stream_complete(self, prompt: str, **_: Any) -> Any:
        raise NotImplementedError


class _Calls(FunctionCallingLLM):
    """Calls the search once, and then answers."""

    query: str
    says: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        if any(message.role == "tool" for message in messages):
            return ChatResponse(message=ChatMessage(self.says, role="assistant"))
        calls = {"tool_calls": [{"name": "search", "args": {"query": self.query}}]}
        return ChatResponse(message=ChatMessage("", role="assistant", additional_kwargs=calls))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self._reply(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self._reply(messages)

    def stream_chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def astream_chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def acomplete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def stream_complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def astream_complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": list(chat_history or [])}

    def get_tool_calls_from_response(self, response: ChatResponse, *_: Any, **__: Any) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(tool_id="1", tool_name=one["name"], tool_kwargs=one["args"]) for one in calls]


class _Stages:
    """What each stage of a case does with nodes."""

    def __init__(self, case: Case, extractor: str) -> None:
        self.case = case
        self.extractor = extractor
        self.nodes = {
            name: NodeWithScore(node=TextNode(id_=name, text=text, metadata={"file": f"{name}.md"}), score=0.5)
            for name, text in case.texts.items()
        }
        self.index = _Index([self.nodes[name] for name in case.pool])

    def ranked(self, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        return list(found) if self.case.selected is None else self._of(self.case.selected, found)

    def extracts(self, found: Sequence[NodeWithScore]) -> list[Any]:
        return EXTRACTORS[self.extractor](list(found))

    def prompt(self, given: Sequence[Any]) -> str:
        """Return the prompt: of what came in, the texts of the passages that are used."""
        context = "\n\n".join(map(_text, self._of(self.case.used, given)))
        return PROMPT.format(context=context, question=self.case.query)

    def postprocessed(self) -> list[NodeWithScore] | list[Any]:
        """Return what comes before the prompt, each stage a postprocessor of its own; texts by a few lines."""
        found = self.index.retrieve(self.case.query)
        if self.case.selected is not None:
            found = _Keep(keep=self.ranked).postprocess_nodes(found, query_str=self.case.query)
        if self.extractor == "texts":
            return self.extracts(found)
        if self.extractor != "none":
            found = _Keep(keep=self.extracts).postprocess_nodes(found, query_str=self.case.query)
        return found

    def _of(self, names: Sequence[str], found: Sequence[Any]) -> list[Any]:
        return [one for name in names for one in found if self._name(one) == name]

    def _name(self, one: Any) -> str:
        file = getattr(one, "metadata", {}).get("file")
        return file.removesuffix(".md") if file else next(n for n, t in self.case.texts.items() if _text(one) in t)


def _text(one: Any) -> str:
    return one if isinstance(one, str) else one.text


@contextmanager
def _captured(recorder: Recorder, labels: Mapping[str, int] | None) -> Iterator[None]:
    with ragtrace_llamaindex.instrumented(recorder), ragtrace_llamaindex.request(labels=labels):
        yield


def _ran(asked: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to its end in a loop of its own, also where a loop runs already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, lambda: asyncio.run(asked())).result()


class _Engine(CustomQueryEngine):
    stages: Any

    def custom_query(self, query_str: str) -> str:
        return _Says(says=self.stages.case.answer).complete(self.stages.prompt(self.stages.postprocessed())).text


def engine(case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
    """Run a case through an engine of the application's own: retriever, postprocessors, model."""
    with _captured(recorder, labels):
        _Engine(stages=_Stages(case, extractor)).query(case.query)


class _Found(Event):
    nodes: list[Any]


class _Flow(Workflow):
    stages: ClassVar[_Stages]

    @step
    async def find(self, ev: StartEvent) -> _Found:
        return _Found(nodes=self.stages.postprocessed())

    @step
    async def answer(self, ev: _Found) -> StopEvent:
        model = _Says(says=self.stages.case.answer)
        return StopEvent(result=(await model.acomplete(self.stages.prompt(ev.nodes))).text)


def workflow(case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
    """Run a case through a workflow of two steps."""

    class Flow(_Flow):
        stages = _Stages(case, extractor)

    async def asked() -> None:
        await Flow().run(query=case.query)

    with _captured(recorder, labels):
        _ran(asked)


def agent(case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
    """Run a case through an agent with a search tool, inside which the stages are."""
    stages = _Stages(case, extractor)

    def search(query: str) -> str:
        """Search the handbook."""
        return stages.prompt(stages.postprocessed())

    async def asked() -> None:
        model = _Calls(query=case.query, says=case.answer)
        made = FunctionAgent(tools=[FunctionTool.from_defaults(search)], llm=model, streaming=False)
        await made.run(user_msg=case.query)

    with _captured(recorder, labels):
        _ran(asked)


LLAMAINDEX: dict[str, Framework] = {"engine": engine, "workflow": workflow, "agent": agent}
