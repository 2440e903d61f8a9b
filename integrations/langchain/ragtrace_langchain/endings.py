"""What is told where a run ends: what broke off, what it waits for, its answer, why it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded
from ragtrace_langchain.calls import report_call
from ragtrace_langchain.control import is_control_flow, payload_of
from ragtrace_langchain.extract import answer_in, called_in, structured_text
from ragtrace_langchain.selection import settle
from ragtrace_langchain.tree import ModelCall

if TYPE_CHECKING:
    from ragtrace.model import Outcome
    from ragtrace_langchain.tree import Node, Tree


@guarded
def take_interrupt(tree: Tree, error: BaseException) -> None:
    """Note that the run waits for a person, and what it asks."""
    tree.is_interrupted = True
    asked = payload_of(error)
    if asked and asked not in tree.interrupts:  # it passes through the node and each graph around it
        tree.interrupts.append(asked)


@guarded
def report_failed_retrieval(node: Node, error: BaseException) -> None:
    """Report a retriever that failed."""
    node.tree.run.retrieved(
        (),
        source=node.source,
        query=node.query or None,
        top_k=node.top_k,
        started_ns=node.started_ns,
        key=node.key or None,
        parent_key=node.within_key,
        error=None if is_control_flow(error) else error,
    )


@guarded
def break_off(node: Node, error: BaseException | None) -> None:
    """Report a step that was still open when its root ended: what it had done by then, and why it stopped."""
    if isinstance(node, ModelCall):
        if error is not None or node.first_chunk_ns:
            report_call(node, None, error)
    elif node.kind == "retriever" and error is not None:
        report_failed_retrieval(node, error)


@guarded
def answer_of(tree: Tree, outputs: Any, *, is_streamed: bool) -> str | None:
    """Return the root's answer, None for what the last model said.

    A stream whose pieces cannot be added up leaves the root with the last piece alone; the model has the whole.
    """
    answer = answer_in(outputs)
    if answer is None:
        is_wordless = tree.last_model is not None and not tree.last_text  # it called a tool with its answer
        return (structured_text(outputs) or called_in(outputs, tree.last_called)) if is_wordless else None
    whole = tree.last_text
    is_last_piece = is_streamed and len(answer) < len(whole) and whole.endswith(answer)
    return whole if is_last_piece else answer


@guarded
def conclude(root: Node, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
    """Write what is known only at a run's end: its selection, its answer, what made it fail."""
    tree = root.tree
    settle(root)
    if tree.interrupts:
        tree.run.interrupted("\n".join(tree.interrupts))
    text = answer if answer is not None else tree.last_text
    if outcome == "partial" and tree.last_text.startswith(text):
        text = tree.last_text  # LangChain hands an abandoned root all pieces but the last one that was read
    if text and (outcome != "error" or answer is not None):
        tree.run.answered(text, model=tree.last_model, usage=tree.usage)
    if error is not None and outcome in {"error", None}:
        tree.run.failed(error)
