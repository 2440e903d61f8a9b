"""What is told where a run ends: what broke off, its answer, what it waits for, why it failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded, record_internal_error
from ragtrace_llamaindex.calls import report_call
from ragtrace_llamaindex.extract import answer_in, fields_of
from ragtrace_llamaindex.questions import is_context, is_question
from ragtrace_llamaindex.selection import settle
from ragtrace_llamaindex.tools import report_tool
from ragtrace_llamaindex.tree import ModelCall, ToolNode

if TYPE_CHECKING:
    from ragtrace.capture import Run
    from ragtrace.model import Outcome
    from ragtrace_llamaindex.tree import Node, Tree


def answer_of(result: Any) -> str | None:
    """Return the answer in what an outermost call returned; see `answer_in`."""
    try:
        return answer_in(result)
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.endings.answer", error)
        return None


@guarded
def conclude(tree: Tree, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
    """Write what is known only at a run's end: its selection, its answer, what made it fail."""
    run, root = tree.run, tree.root
    if run is None or root is None:
        return
    if tree.is_joined and tree.streams:
        run.ends_as("partial")
    _break_off(tree, error)
    text = answer if answer is not None else tree.answer or tree.last_text
    if tree.is_joined:
        _conclude_joined(tree, run, text)
        return
    settle(root, run, text)
    tree.is_question = is_question(tree, run, text)
    if outcome is None and not tree.is_model_asked and (not text or is_context(run, text)):
        run.expects_no_answer()
    elif text and root.kind != "retriever" and (outcome != "error" or answer is not None):
        run.answered(text, model=tree.last_model, usage=tree.usage)
    if outcome == "interrupted":
        run.interrupted(fields_of(tree.interrupt))
    if error is not None and outcome in {"error", None}:
        run.failed(error)


def _conclude_joined(tree: Tree, run: Run, text: str) -> None:
    """Write last facts onto a run of the application's own, whose own words come first."""
    given = run.facts.get("answer")
    if tree.root is not None:
        settle(tree.root, run, given or text)
    if given is not None:
        run.facts.setdefault("usage", tree.usage)
    elif text and run.failure is None and not (is_context(run, text) and not tree.is_model_asked):
        run.answered(text, model=tree.last_model, usage=tree.usage)
    elif not tree.is_model_asked:
        run.expects_no_answer()


def _break_off(tree: Tree, error: BaseException | None) -> None:
    """Report what is still open when a run ends: what it had done by then, and why it stopped."""
    now_ns = time.time_ns()
    for stream in list(tree.streams):
        stream.is_done = True
        node = stream.node
        if stream.is_answer:
            tree.answer = stream.text or tree.answer
        elif isinstance(node, ModelCall) and (stream.pieces or error is not None):
            report_call(node, None, error, now_ns)
    while error is not None and tree.open:
        node = tree.open.pop()  # it ends here, and not again in a thread of its own
        if node.parent is not None:
            report_failed(node, error)


@guarded
def report_failed(node: Node, error: BaseException) -> None:
    """Report a step that failed, or was open when its run did."""
    run = node.tree.run
    if run is None:
        return
    now_ns = time.time_ns()
    if node.kind == "retriever":
        if node.within is not None:
            node.within.is_outer = True
        run.retrieved(
            (),
            source=node.source,
            query=node.query or None,
            top_k=node.top_k,
            started_ns=node.started_ns,
            ended_ns=now_ns,
            key=node.id,
            parent_key=node.within_key,
            error=error,
        )
    elif node.kind == "rerank" and node.given is not None:
        run.reranked(
            (),
            candidates=node.given.passages(run.reader),
            model=node.model or node.name,
            top_n=node.top_k,
            started_ns=node.started_ns,
            ended_ns=now_ns,
            parent_key=node.within_key,
            error=error,
        )
    elif isinstance(node, ModelCall):
        report_call(node, None, error, now_ns)
    elif isinstance(node, ToolNode):
        report_tool(node, run, None, error, now_ns)
