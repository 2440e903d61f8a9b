"""What is taken where a span begins: the run's question, the turns before it, what a step is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import before_question, guarded
from ragtrace_llamaindex.attributes import argument, first_of
from ragtrace_llamaindex.calls import take_asked
from ragtrace_llamaindex.extract import history_in, query_text, question_in, turns_before, turns_in
from ragtrace_llamaindex.models import asked_of
from ragtrace_llamaindex.selection import take_given, take_synthesized
from ragtrace_llamaindex.tools import begin_tool
from ragtrace_llamaindex.tree import ModelCall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from inspect import BoundArguments

    from ragtrace.capture import Run
    from ragtrace.model import Message
    from ragtrace_llamaindex.tree import Node, Tree


@guarded
def ask(tree: Tree, run: Run, arguments: Mapping[str, Any]) -> None:
    """Take a run's question and the turns before it, where the outermost call's arguments have them."""
    question = question_in(arguments)
    if question and not tree.has_query:
        run.set_query(question)
        tree.question = question
        tree.has_query = True
    history = () if tree.is_told else history_in(arguments)
    if history and (history[-1].role, history[-1].content) == ("user", question):
        history = history[:-1]  # an agent puts it into the list that it was given
    if history:
        run.set_history(history)
        tree.is_told = True


def recall(tree: Tree, turns: tuple[Message, ...], *, is_final: bool) -> None:
    """Take the turns before the question from what a chat engine or an agent hands on, where its caller gave none.

    Its memory itself is left alone: to read it may take a database, or a model that summarises.
    """
    examples = tree.examples
    if turns[: len(examples)] == examples:
        turns = turns[len(examples) :]
    run = tree.run
    if turns and run is not None:
        run.set_history(turns)
        tree.is_told = is_final


def may_recall(node: Node | None) -> bool:
    """Tell whether what happens right inside a node may tell the turns before the run's question."""
    return node is not None and node.tree.keeps_turns and node.is_top and not node.tree.is_told


def _ask_first(node: Node, question: str) -> None:
    tree = node.tree
    run = tree.run
    if question and run is not None and not tree.has_query:
        run.set_query(question)
        tree.question = question
        tree.has_query = True


@guarded
def _begin_query(node: Node, bound: BoundArguments, _instance: Any) -> None:
    run = node.tree.run
    if run is not None and node.within is None and (not node.tree.has_query or node.is_top):
        ask(node.tree, run, bound.arguments)


@guarded
def _begin_retrieval(node: Node, bound: BoundArguments, instance: Any) -> None:
    node.query = query_text(argument(bound, "str_or_query_bundle")) or question_in(bound.arguments)
    node.source = _source_of(instance) or node.name
    top_k = first_of(instance, ("similarity_top_k", "_similarity_top_k", "top_k"))
    node.top_k = top_k if isinstance(top_k, int) else None
    _ask_first(node, node.query)


def _source_of(retriever: Any) -> str | None:
    """Return the name of the index a retriever searches, where it or its vector store says one."""
    for part in (retriever, first_of(retriever, ("_vector_store",))):
        name = None if part is None else first_of(part, ("index_name", "collection_name", "table_name"))
        if isinstance(name, str) and name:
            return name
    return None


@guarded
def _begin_rerank(node: Node, bound: BoundArguments, instance: Any) -> None:
    take_given(node, argument(bound, "nodes"))
    model = first_of(instance, ("model_name", "model"))
    node.model = model if isinstance(model, str) else None
    top_n = first_of(instance, ("top_n",))
    node.top_k = top_n if isinstance(top_n, int) else None


@guarded
def _begin_synthesis(node: Node, bound: BoundArguments, instance: Any) -> None:
    tree = node.tree
    if may_recall(node.parent):
        template = first_of(instance, ("_text_qa_template",))
        recall(tree, before_question(turns_in(first_of(template, ("message_templates",)))), is_final=True)
    arguments = bound.arguments
    _ask_first(node, query_text(arguments.get("query")))
    run = tree.run
    if run is not None:
        take_synthesized(node, run, arguments.get("nodes"))


@guarded
def _begin_call(node: Node, bound: BoundArguments, instance: Any) -> None:
    if not isinstance(node, ModelCall):
        return
    take_asked(node, bound, instance)
    if node.kind == "model":
        if node.tool is not None:
            node.tool.has_model = True
        node.tree.is_model_asked = node.tree.is_model_asked or not node.is_inner
        node.lazy_key = (id(instance), id(asked_of(bound)))
        if may_recall(node.parent):
            recall(node.tree, turns_before(node.messages, node.tree.question), is_final=True)
    run = node.tree.run
    if node.parent is None and run is not None and node.messages:
        _ask_first(node, next((m.content for m in reversed(node.messages) if m.role == "user"), ""))
        run.set_history(before_question(node.messages))


BEGIN = {
    "query": _begin_query,
    "retriever": _begin_retrieval,
    "rerank": _begin_rerank,
    "synthesize": _begin_synthesis,
    "model": _begin_call,
    "embedding": _begin_call,
    "tool": begin_tool,
}
