"""Tells questions from other work: building an index, evaluating answers, grading, writing queries."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragtrace.capture.prompt import found_in
from ragtrace_llamaindex.kinds import MAX_KNOWN, is_llama_index_class

if TYPE_CHECKING:
    from ragtrace.capture import Run
    from ragtrace_llamaindex.tree import Tree

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
_CONTEXT_SHARE = 0.9  # of a text that consists of passages


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
            owner: Any = type(frame.f_locals.get("self"))
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
            owner: Any = type(search)
            if _is_tool_search_class(owner):
                mapping: Any = type(getattr(search, "_object_node_mapping", None))
                return is_llama_index_class(mapping, _TOOL_MAPPINGS)
        frame = frame.f_back
    return False


def is_question(tree: Tree, run: Run, answer: str) -> bool:
    """Tell whether a run that ends asked something: passages were searched, or a question was answered."""
    root = tree.root
    is_asked = bool(run.facts.get("query"))
    if is_asked and (answer or tree.is_model_asked or (root is not None and root.kind == "query")):
        return True
    return bool(tree.is_searched or tree.seen or tree.explicit is not None or run.selection is not None)


def is_context(run: Run, text: str) -> bool:
    """Tell whether a text consists of the run's passages: a context for a model elsewhere, not an answer."""
    delivered = run.selection if run.selection is not None else run.candidates()
    found = found_in(text, tuple({passage.id: passage for passage in delivered}.values()))
    return bool(found) and sum(len(passage.text) for passage in found) >= _CONTEXT_SHARE * len(text)
