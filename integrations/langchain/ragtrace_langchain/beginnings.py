"""What is taken where an event begins: the run's question, the turns before it, a retriever's query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded
from ragtrace_langchain.documents import as_given, documents_in
from ragtrace_langchain.extract import history_in, question_in, recalled_in
from ragtrace_langchain.request import PREFIX
from ragtrace_langchain.tool_output import note_contexts, take_contexts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace_langchain.tree import Node, ToolCall, Tree


@guarded
def take_inputs(node: Node, inputs: Any) -> None:
    """Take the input of a chain or a tool: the documents in it, and the question of the run."""
    node.inputs, node.given = as_given(inputs)
    if node.given and node.tree.given is None and not node.tree.pool:
        node.tree.given = node.given
    if node.parent is None and isinstance(inputs, dict):
        take_contexts(node, None, inputs)
    if node.within is None and not node.tree.has_query:
        ask(node.tree, inputs)
    elif node.within is None and node.parent is not None:
        _recall(node)


@guarded
def take_streamed(node: Node, inputs: Any) -> None:
    """Take the input of a streamed chain, which comes with its end: documents or a text in their place."""
    tree = node.tree
    if node.parent is None:
        node.inputs = inputs
    if tree.given is None and not tree.pool:
        tree.given = documents_in(inputs)
        if node.parent is None and isinstance(inputs, dict) and not tree.given:
            note_contexts(node, None, inputs)


@guarded
def ask(tree: Tree, inputs: Any) -> None:
    """Take a run's question and the turns before it, where a root's input has them."""
    question = question_in(inputs)
    if question:
        tree.has_query = True
        tree.run.set_query(question)
        history = history_in(inputs)
        if history:
            tree.run.set_history(history)


def _recall(node: Node) -> None:
    """Take the turns that a memory keeps, where the root's input has none; after the answer it holds that too."""
    tree = node.tree
    root = tree.root
    if root is None or root.has_model or "history" in tree.run.facts:
        return
    turns = recalled_in(node.inputs, root.inputs)
    if turns:
        tree.run.set_history(turns)


@guarded
def take_query(node: Node, query: Any, key: str, metadata: Mapping[str, Any]) -> None:
    """Take what a retriever is asked, and what its metadata say of it."""
    node.key = key
    node.query = query if isinstance(query, str) else str(query)
    node.source = str(metadata.get(f"{PREFIX}source") or node.name)
    top_k = metadata.get(f"{PREFIX}top_k")
    node.top_k = top_k if isinstance(top_k, int) else None
    tree = node.tree
    tree.has_retriever = True
    if node.within is None:
        tree.searched_ns = node.started_ns
    if not tree.has_query:
        tree.run.set_query(node.query)  # a stream's question comes with its end; until then this one stands
        tree.has_query = node.parent is None or tree.is_block(node.parent)


@guarded
def take_call(node: ToolCall, key: str, inputs: Any, serialized: Mapping[str, Any] | None, call_id: Any) -> None:
    """Take the arguments of a tool call, and the description of the tool."""
    node.call_key = key
    node.arguments = inputs
    node.call_id = call_id if isinstance(call_id, str) else None
    node.description = (serialized or {}).get("description") or None
