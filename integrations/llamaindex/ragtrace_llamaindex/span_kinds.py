"""Kinds of spans: queries, retrievers, rerankers, models, tools, and work that answers no question."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.tools.types import BaseTool, BaseToolAsyncAdapter

Kind = Literal["other", "query", "retriever", "rerank", "synthesize", "model", "embedding", "tool"]

ID_TAIL = 37  # "-" and a uuid stand behind the name in a span's id
MAX_KNOWN = 4_096  # of spans of functions defined at run time

_CHAT = ("chat", "achat", "stream_chat", "astream_chat")
_METHODS: tuple[tuple[type, Kind, frozenset[str]], ...] = (
    (BaseRetriever, "retriever", frozenset({"retrieve", "aretrieve"})),
    (BaseNodePostprocessor, "rerank", frozenset({"_postprocess_nodes", "_apostprocess_nodes"})),
    (BaseLLM, "model", frozenset({*_CHAT, "complete", "acomplete", "stream_complete", "astream_complete"})),
    (BaseSynthesizer, "synthesize", frozenset({"synthesize", "asynthesize", "get_response", "aget_response"})),
    (BaseQueryEngine, "query", frozenset({"query", "aquery"})),
    (BaseChatEngine, "query", frozenset(_CHAT)),
    (BaseTool, "tool", frozenset({"__call__", "call", "acall"})),
    (
        BaseEmbedding,
        "embedding",
        frozenset({"get_query_embedding", "aget_query_embedding", "get_text_embedding", "aget_text_embedding"}),
    ),
)
# Retrievers whose result is one order over several: never a choice out of what they found.
_FUSIONS = frozenset({"QueryFusionRetriever", "RouterRetriever", "RecursiveRetriever", "AutoMergingRetriever"})
_WHOLE = frozenset({"SummaryIndexRetriever", "ListIndexRetriever"})  # they give out all that their index holds
_AGENTS = frozenset({"BaseWorkflowAgent", "AgentWorkflow"})
_RETRIES = frozenset({"RetryQueryEngine", "RetrySourceQueryEngine", "RetryGuidelineQueryEngine"})
_TALKERS = frozenset({"BaseChatEngine", *_AGENTS})

KINDS: dict[tuple[type, str], Kind] = {}  # of the methods met so far


def kind_of(id_: str, instance: object) -> Kind:
    """Return what a span is, by its instance's class and its method; ``other`` for what is of no interest.

    Example:
        >>> kind_of("f-" + "0" * 36, None)
        'other'
    """
    owner, name = type(instance), id_[:-ID_TAIL]
    method = name.rpartition(".")[2]
    found: Kind = "other"
    if owner is not BaseToolAsyncAdapter:  # the tool inside it has a span of its own
        kinds = (kind for base, kind, methods in _METHODS if method in methods and issubclass(owner, base))
        found = next(kinds, "other")
    if len(KINDS) >= MAX_KNOWN:
        KINDS.clear()
    KINDS[owner, name] = found
    return found


def is_output_form(tool: object) -> bool:
    """Tell whether a tool is the form of a structured output, which a program has the model fill in.

    Example:
        >>> from llama_index.core.bridge.pydantic import create_model
        >>> from llama_index.core.program.function_program import get_function_tool
        >>> is_output_form(get_function_tool(create_model("Said", answer=(str, ...)))), is_output_form(print)
        (True, False)
    """
    made = getattr(tool, "real_fn", None) or getattr(tool, "fn", None)
    return getattr(made, "__module__", None) == "llama_index.core.program.function_program"


@lru_cache(maxsize=MAX_KNOWN)
def keeps_turns(owner: type) -> bool:
    """Tell whether objects of a class keep the turns of a conversation themselves: chat engines and agents.

    Example:
        >>> keeps_turns(BaseChatEngine), keeps_turns(BaseQueryEngine)
        (True, False)
    """
    return is_llama_index_class(owner, _TALKERS)


@lru_cache(maxsize=MAX_KNOWN)
def is_agent(owner: type) -> bool:
    """Tell whether objects of a class are agents: workflows in which a model calls tools.

    Example:
        >>> is_agent(BaseChatEngine)
        False
    """
    return is_llama_index_class(owner, _AGENTS)


@lru_cache(maxsize=MAX_KNOWN)
def is_agent_event(kind: type) -> bool:
    """Tell whether events of a class go from step to step of an agent.

    Example:
        >>> from llama_index.core.agent.workflow import AgentInput
        >>> is_agent_event(AgentInput), is_agent_event(str)
        (True, False)
    """
    return any(base.__module__.startswith("llama_index.core.agent.workflow.") for base in kind.__mro__)


@lru_cache(maxsize=MAX_KNOWN)
def is_retry(owner: type) -> bool:
    """Tell whether an engine asks another one again with the answer that it gave up, as a bad example.

    Example:
        >>> is_retry(BaseQueryEngine)
        False
    """
    return is_llama_index_class(owner, _RETRIES)


@lru_cache(maxsize=MAX_KNOWN)
def is_fusion(owner: type) -> bool:
    """Tell whether a retriever's result is the order of the pool, whatever it left out.

    Example:
        >>> is_fusion(BaseRetriever)
        False
    """
    return is_llama_index_class(owner, _FUSIONS)


@lru_cache(maxsize=MAX_KNOWN)
def is_all(owner: type) -> bool:
    """Tell whether a retriever gives out all that its index holds.

    Example:
        >>> is_all(BaseRetriever)
        False
    """
    return is_llama_index_class(owner, _WHOLE)


def is_llama_index_class(owner: type, names: frozenset[str]) -> bool:
    """Tell whether a class or a base of it is one of LlamaIndex's with such a name.

    By name, since to import the agents would take 0.1 s.

    Example:
        >>> is_llama_index_class(BaseRetriever, frozenset({"BaseRetriever"}))
        True
    """
    return any(base.__name__ in names and base.__module__.startswith("llama_index.") for base in owner.__mro__)


MAX_FRAMES = 24  # 5 us; an evaluator stands six to ten frames above the engine it asks
_UPKEEP_METHODS = frozenset({"evaluate", "aevaluate", "build_index_from_nodes", "insert_nodes", "ainsert_nodes"})
_BUILDING_CLASSES = frozenset({"IngestionPipeline", "TransformComponent"})
_UPKEEP_CLASSES = frozenset({"BaseEvaluator", "BaseRetrievalEvaluator", "BaseIndex"})
_TOOL_SEARCH_FRAMES = 10  # seven of ours, of the dispatcher and of the retriever stand below the search
_TOOL_SEARCH_METHODS = frozenset({"retrieve", "aretrieve"})
_TOOL_SEARCH_CLASSES = frozenset({"ObjectRetriever"})
_TOOL_MAPPINGS = frozenset({"BaseToolNodeMapping", "SQLTableNodeMapping"})
_STEP_CLASSES = frozenset(
    {
        "BaseNodePostprocessor",
        "BaseOutputParser",
        "BasePydanticProgram",
        "BaseQueryTransform",
        "BaseQuestionGenerator",
        "BaseSQLParser",
        "BaseSelector",
        "IngestionPipeline",
        "TransformComponent",
    }
)


@lru_cache(maxsize=MAX_KNOWN)
def is_step_class(owner: type) -> bool:
    """Tell whether objects of a class answer no question on their own: parsers, selectors, pipelines.

    Example:
        >>> from llama_index.core.node_parser import SentenceSplitter
        >>> is_step_class(SentenceSplitter), is_step_class(str)
        (True, False)
    """
    return is_llama_index_class(owner, _STEP_CLASSES)


@lru_cache(maxsize=MAX_KNOWN)
def is_building_class(owner: type) -> bool:
    """Tell whether objects of a class build an index: pipelines, parsers, extractors.

    Example:
        >>> from llama_index.core.node_parser import SentenceSplitter
        >>> is_building_class(SentenceSplitter)
        True
    """
    return is_llama_index_class(owner, _BUILDING_CLASSES)


@lru_cache(maxsize=MAX_KNOWN)
def _is_upkeep_class(owner: type) -> bool:
    return is_llama_index_class(owner, _UPKEEP_CLASSES)


def is_upkeep() -> bool:
    """Tell whether an evaluator or an index under construction makes the current call.

    Neither has a span of its own, and both use query engines, so the call stack has to tell.

    Example:
        >>> is_upkeep()
        False
    """
    frame = inspect.currentframe()
    for _ in range(MAX_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in _UPKEEP_METHODS:
            owner: type = type(frame.f_locals.get("self"))
            if _is_upkeep_class(owner):
                return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=MAX_KNOWN)
def _is_tool_search_class(owner: type) -> bool:
    return is_llama_index_class(owner, _TOOL_SEARCH_CLASSES)


def is_tool_search() -> bool:
    """Tell whether the current call searches an index of tools or tables, not of passages.

    Agents with many tools, routers and SQL engines choose theirs this way. The search has no span of its own, only
    the retriever and the postprocessors inside it have.

    Example:
        >>> is_tool_search()
        False
    """
    frame = inspect.currentframe()
    for _ in range(_TOOL_SEARCH_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in _TOOL_SEARCH_METHODS:
            search = frame.f_locals.get("self")
            owner: type = type(search)
            if _is_tool_search_class(owner):
                mapping: type = type(getattr(search, "_object_node_mapping", None))
                return is_llama_index_class(mapping, _TOOL_MAPPINGS)
        frame = frame.f_back
    return False
