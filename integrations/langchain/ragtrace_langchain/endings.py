"""Reports the end of a run: open steps, interrupts, the answer, the failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture import guarded
from ragtrace_langchain.calls import report_call
from ragtrace_langchain.control import is_control_flow, payload_of
from ragtrace_langchain.questions import is_question, is_verdict
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
def conclude(root: Node, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
    """Write the facts that are known at a run's end: its selection, its answer, its failure."""
    tree = root.tree
    settle(root)
    if tree.interrupts:
        tree.run.interrupted("\n".join(tree.interrupts))
    if tree.is_joined:
        _conclude_block(tree)
        return
    text = _text_of(tree, answer, outcome)
    if not is_question(root, text, outcome):
        tree.run.discard()
        return
    if text and (outcome != "error" or answer is not None):
        tree.run.answered(text, model=tree.last_model, usage=tree.usage)
    elif outcome is None and (tree.is_retrieval_only or not tree.has_model):
        tree.run.expects_no_answer()
    if error is not None and outcome in {"error", None}:
        tree.run.failed(error)


def _text_of(tree: Tree, answer: str | None, outcome: Outcome | None) -> str:
    spoken = tree.last_text if tree.spoken_ns > tree.searched_ns else ""
    text = answer if answer is not None else spoken
    # LangChain hands an abandoned root all pieces but the last one that was read.
    return spoken if outcome == "partial" and spoken.startswith(text) else text


@guarded
def take_chain_end(node: Node, answer: str | None, outcome: Outcome | None) -> None:
    """Take the end of a chain in the block of an application's own run: an answer, unless a later chain has one.

    A grader behind the chain that answered leaves the answer as it is.
    """
    tree = node.tree
    text = _text_of(tree, answer, outcome)
    tree.run.ends_as(outcome)
    tree.is_retrieval_only = tree.is_interrupted = False
    if outcome != "interrupted":
        tree.interrupts.clear()
    if text and not (tree.chain_answer and is_verdict(text)):
        tree.chain_answer = text


def _conclude_block(tree: Tree) -> None:
    """Fill in the answer of an application's own run where the application has given none."""
    run = tree.run
    if "answer" in run.facts:
        return
    text = tree.chain_answer if tree.chain_answer is not None else _text_of(tree, None, None)
    if text:
        run.answered(text, model=tree.last_model, usage=tree.usage)
    elif tree.has_retriever and not run.has_generations():
        run.expects_no_answer()
