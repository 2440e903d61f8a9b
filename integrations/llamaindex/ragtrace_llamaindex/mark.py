"""The helper for what cannot be seen: the application names its selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from llama_index.core.instrumentation.span import active_span_id

from ragtrace.capture import guarded
from ragtrace_llamaindex.handlers import tracer
from ragtrace_llamaindex.selection import take_marked
from ragtrace_llamaindex.streams import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore

Nodes = TypeVar("Nodes", bound="Sequence[NodeWithScore]")


def mark_selected(nodes: Nodes) -> Nodes:
    """Report these nodes as the selection of the run they are called in, and return them unchanged.

    For a choice that leaves no trace LlamaIndex reports: a few lines of an engine's or a workflow's own. It comes
    before whatever is inferred. Outside a captured run it does nothing.

    Args:
        nodes: what was chosen, best first; a score that differs from the retriever's is the choice's own.

    Example:
        >>> mark_selected([])
        []
    """
    _mark(nodes)
    return nodes


@guarded
def _mark(nodes: Sequence[NodeWithScore]) -> None:
    id_ = active_span_id.get()
    node = tracer.nodes.get(id_) if id_ is not None else None
    read = reading.get()
    if node is None and read is not None:
        node = read.node
    run = node.tree.run if node is not None else None
    if node is not None and run is not None:
        take_marked(node, run, nodes)
