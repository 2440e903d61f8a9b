"""Says what a LlamaIndex span is: a query, a retriever, a postprocessor, a model, or nothing of interest."""

from __future__ import annotations

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
    (BaseSynthesizer, "synthesize", frozenset({"synthesize", "asynthesize"})),
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
_TALKERS = frozenset({"BaseChatEngine", "BaseWorkflowAgent", "AgentWorkflow"})

_known: dict[tuple[type, str], Kind] = {}


def kind_of(id_: str, instance: object) -> Kind:
    """Return what a span is, by its instance's class and its method; ``other`` for what is of no interest.

    Example:
        >>> kind_of("f-" + "0" * 36, None)
        'other'
    """
    name = id_[:-ID_TAIL]
    key = (type(instance), name)
    kind = _known.get(key)
    if kind is None:
        kind = _kind(type(instance), name.rpartition(".")[2])
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[key] = kind
    return kind


def _kind(owner: type, method: str) -> Kind:
    if owner is BaseToolAsyncAdapter:  # the tool inside it has a span of its own
        return "other"
    for base, kind, methods in _METHODS:
        if method in methods and issubclass(owner, base):
            return kind
    return "other"


@lru_cache(maxsize=MAX_KNOWN)
def keeps_turns(owner: type) -> bool:
    """Tell whether objects of a class keep the turns of a conversation themselves: chat engines and agents.

    Example:
        >>> keeps_turns(BaseChatEngine), keeps_turns(BaseQueryEngine)
        (True, False)
    """
    return is_llama_index_class(owner, _TALKERS)


def is_fusion(owner: type) -> bool:
    """Tell whether a retriever's result is the order of the pool, whatever it left out.

    Example:
        >>> is_fusion(BaseRetriever)
        False
    """
    return is_llama_index_class(owner, _FUSIONS)


def is_llama_index_class(owner: type, names: frozenset[str]) -> bool:
    """Tell whether a class or a base of it is one of LlamaIndex's with such a name.

    By name, since to import the agents would take 0.1 s.

    Example:
        >>> is_llama_index_class(BaseRetriever, frozenset({"BaseRetriever"}))
        True
    """
    return any(base.__name__ in names and base.__module__.startswith("llama_index.") for base in owner.__mro__)
