"""Facts recorded where a span or a run ends: model calls, failures, the answer, the outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, record_internal_error
from ragtrace.capture.attribution import found_in
from ragtrace.model import Message, added_usage
from ragtrace_llamaindex.messages import (
    answer_in,
    facts_in,
    fields_of,
    reply_in,
    usage_in,
)
from ragtrace_llamaindex.run_state import ModelSpan, ToolSpan
from ragtrace_llamaindex.selection import settle
from ragtrace_llamaindex.tools import record_tool_call

if TYPE_CHECKING:
    from ragtrace.capture import Run
    from ragtrace.model import Outcome
    from ragtrace_llamaindex.run_state import OpenSpan, RunState

_CONTEXT_SHARE = 0.9  # of a text that consists of passages


def answer_of(result: object) -> str | None:
    """Return the answer in what an outermost call returned; see `answer_in`."""
    try:
        return answer_in(result)
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.on_end.answer", error)
        return None


@guarded
def conclude(state: RunState, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
    """Write what is known only at a run's end: its selection, its answer, what made it fail."""
    run, root = state.run, state.root
    if run is None or root is None:
        return
    if state.is_joined and state.streams:
        run.ends_as("partial")
    _record_open(state, error)
    text = answer if answer is not None else state.answer or state.last_text
    if state.is_joined:
        _conclude_joined(state, run, text)
        return
    settle(root, run, text)
    state.is_question = is_question(state, run, text)
    if outcome is None and not state.is_model_asked and (not text or is_context(run, text)):
        run.expects_no_answer()
    elif text and root.kind != "retriever" and (outcome != "error" or answer is not None):
        run.answered(text, model=state.last_model, usage=state.usage)
    if outcome == "interrupted":
        run.interrupted(fields_of(state.interrupt))
    if error is not None and outcome in {"error", None}:
        run.failed(error)


def _conclude_joined(state: RunState, run: Run, text: str) -> None:
    """Write last facts onto a run of the application's own, whose own words come first."""
    given = run.attributes.get("answer")
    if state.root is not None:
        settle(state.root, run, given or text)
    if given is not None:
        run.attributes.setdefault("usage", state.usage)
    elif text and run.failure is None and not (is_context(run, text) and not state.is_model_asked):
        run.answered(text, model=state.last_model, usage=state.usage)
    elif not state.is_model_asked:
        run.expects_no_answer()


def _record_open(state: RunState, error: BaseException | None) -> None:
    """Report what is still open when a run ends: what it had done by then, and why it stopped."""
    now_ns = time.time_ns()
    for stream in list(state.streams):
        stream.is_done = True
        span = stream.span
        if stream.is_answer:
            state.answer = stream.text or state.answer
        elif isinstance(span, ModelSpan) and (stream.pieces or error is not None):
            record_model_call(span, None, error, now_ns)
    while error is not None and state.open:
        span = state.open.pop()  # it ends here, and not again in a thread of its own
        if span.parent is not None:
            record_failed(span, error)


@guarded
def record_failed(span: OpenSpan, error: BaseException) -> None:
    """Report a step that failed, or was open when its run did."""
    run = span.state.run
    if run is None:
        return
    now_ns = time.time_ns()
    if span.kind == "retriever":
        if span.within is not None:
            span.within.is_outer = True
        run.retrieved(
            (),
            source=span.source,
            query=span.query or None,
            top_k=span.top_k,
            started_ns=span.started_ns,
            ended_ns=now_ns,
            key=span.id,
            parent_key=span.within_key,
            error=error,
        )
    elif span.kind == "rerank" and span.given is not None:
        run.reranked(
            (),
            candidates=span.given.passages(run.reader),
            model=span.model or span.name,
            top_n=span.top_k,
            started_ns=span.started_ns,
            ended_ns=now_ns,
            parent_key=span.within_key,
            error=error,
        )
    elif isinstance(span, ModelSpan):
        record_model_call(span, None, error, now_ns)
    elif isinstance(span, ToolSpan):
        record_tool_call(span, run, None, error, now_ns)


@guarded
def record_model_call(span: ModelSpan, response: object, error: BaseException | None, ended_ns: int) -> None:
    """Report a model call that has ended, with what it said by then."""
    state = span.state
    run = state.run
    stream, span.stream = span.stream, None  # the two refer to each other
    if run is None:
        return
    reply = reply_in(response)
    streamed = stream.text if stream is not None else ""
    said = reply.content if reply is not None else ""
    text = streamed if len(streamed) > len(said) else said  # a last chunk may hold the whole or its own piece
    usage = usage_in(response)
    if not span.is_inner and span.kind == "model":
        with state.lock:  # calls in parallel add up
            state.last_text = text or state.last_text
            state.last_model = span.model
            state.usage = added_usage(state.usage, usage)
    if reply is None or text is streamed:
        outputs = (Message(role="assistant", content=text),) if text else ()
    else:
        outputs = (reply,)
    response_model, response_id, reasons = facts_in(response)
    run.generated(
        operation=span.operation,
        model=span.model,
        provider=span.provider,
        response_model=response_model,
        response_id=response_id,
        inputs=span.messages,
        outputs=outputs,
        usage=usage,
        finish_reasons=reasons,
        first_chunk_s=span.first_chunk_s,
        is_in_process=span.is_in_process,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        parent_key=span.within_key,
        error=error,
    )


def is_question(state: RunState, run: Run, answer: str) -> bool:
    """Tell whether a run that ends asked something: passages were searched, or a question was answered."""
    root = state.root
    is_asked = bool(run.attributes.get("query"))
    if is_asked and (answer or state.is_model_asked or (root is not None and root.kind == "query")):
        return True
    return bool(state.is_searched or state.seen or state.explicit is not None or run.selection is not None)


def is_context(run: Run, text: str) -> bool:
    """Tell whether a text consists of the run's passages: a context for a model elsewhere, not an answer."""
    delivered = run.selection if run.selection is not None else run.candidates()
    found = found_in(text, tuple({passage.id: passage for passage in delivered}.values()))
    return bool(found) and sum(len(passage.text) for passage in found) >= _CONTEXT_SHARE * len(text)
