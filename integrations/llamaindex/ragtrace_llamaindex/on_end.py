"""Facts recorded where a span or a run ends: model calls, failures, the answer, the outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from llama_index.core.base.response.schema import PydanticResponse

from ragtrace.capture import (
    answer_text,
    guarded,
    is_judgement,
    is_refused,
    is_verdict,
    prompt_text,
    record_internal_error,
    shown,
)
from ragtrace.capture.attribution import found_in
from ragtrace.capture.types import Generation
from ragtrace.model import Message, added_usage
from ragtrace_llamaindex.messages import (
    ReplyFacts,
    answer_in,
    facts_in,
    facts_of,
    is_call,
    reply_in,
    texts_in,
    usage_in,
)
from ragtrace_llamaindex.run_state import ModelSpan, ToolSpan
from ragtrace_llamaindex.selection import settle
from ragtrace_llamaindex.tools import report_tool_call, settle_found, value_in_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import Failure, IntegrationRun
    from ragtrace.model import Outcome
    from ragtrace_llamaindex.run_state import OpenSpan, RunState

_EMPTY = "Empty Response"  # LlamaIndex's text for a model that said nothing
_CONTEXT_SHARE = 0.9  # of a text that consists of passages


def answer_of(result: object, *, is_inner: bool = False) -> str | None:
    """Return the answer in what a call returned; see `answer_in`.

    Args:
        result: what it returned.
        is_inner: another prompt may show the answer, and structured output is then shown whole.
    """
    try:
        return shown(result) if is_inner and isinstance(result, PydanticResponse) else answer_in(result)
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.on_end.answer", error)
        return None


def given_out(result: object) -> tuple[str, ...]:
    """Return the texts in a result of which no name tells the answer."""
    try:
        held = getattr(result, "result", None)  # of a workflow's last event
        return tuple(dict.fromkeys(texts_in(result if held is None else held)))
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.on_end.given_out", error)
        return ()


def _answers_among(state: RunState, run: IntegrationRun) -> list[str]:
    """Return those of the texts given out that a model of this run said, and that no search was asked.

    Several are the answers of branches; where one was made of another, none is taken.
    """
    replies = {answer_text(said, is_json=False).strip() for said in state.said}
    asked = {search.query.strip() for search in run.retrievals()}
    said = [text for text in state.given_out if text in replies and text not in asked and not is_verdict(text)]
    if len(said) < 2:
        return said
    made_of = (
        prompt_text(step.inputs)
        for step in run.steps
        if isinstance(step, Generation) and any(one.content.strip() in said for one in step.outputs)
    )
    return [] if any(text in prompt for prompt in made_of for text in said) else said


@guarded
def conclude(
    root: OpenSpan,
    run: IntegrationRun,
    answer: str | None,
    outcome: Outcome | None,
    failure: Failure | None,
    asked: object,
) -> None:
    """Write what is known only at a run's end: its selection, its answer, what made it fail.

    Args:
        root: the outermost call.
        run: its run; one that was no question is dropped.
        answer: what the call returned, None where it returned no answer.
        outcome: None for a call that returned.
        failure: what the call raised.
        asked: what an interrupted workflow asks a person.
    """
    state = root.state
    branches = _answers_among(state, run) if answer is None and outcome is None else []
    told = answer if answer is not None else "\n\n".join(sorted(branches)) or state.answer or None
    text = state.last_text if told is None else answer_text(told, is_json=state.is_json_asked)
    is_read = told is not None or state.is_broken  # of a run that failed, by the user
    if outcome == "interrupted" or is_told(state, run, text):
        text = ""
    settle_found(root, run)
    settle(root, run, text)
    if not is_question(root, run, text):
        run.discard()
        return
    is_given = state.is_agent and answer is not None  # also by a tool that answers itself
    if outcome is None and not state.is_model_asked and not is_given and (not text or is_context(run, text)):
        run.expects_no_answer()
    elif root.kind != "retriever" and (outcome is None or (text and (outcome != "error" or is_read))):
        if len(branches) > 1:
            run.answered_by_branches(branches, model=state.last_model, usage=state.usage)
        else:
            run.answered(text, model=state.last_model, usage=state.usage, is_refused=is_refusal(state, text))
    if outcome == "interrupted":
        run.interrupted(asked)
    if failure is not None and outcome in {"error", None}:
        run.failed(failure)


@guarded
def conclude_joined(root: OpenSpan, run: IntegrationRun) -> None:
    """Write last facts onto a run of the application's own, whose own words come first."""
    state = root.state
    text = answer_text(state.answer, is_json=state.is_json_asked) if state.answer else state.last_text
    given = run.attributes.get("answer")
    settle_found(root, run)
    settle(root, run, given or text)
    if given is not None:
        run.attributes.setdefault("usage", state.usage)
        run.attributes["is_refused"] |= is_refusal(state, given)
    elif run.failure is None and (state.is_model_asked or (text and not is_context(run, text))):
        run.answered(text, model=state.last_model, usage=state.usage, is_refused=is_refusal(state, text))
    elif not state.is_model_asked:
        run.expects_no_answer(is_of_application=True)


def is_told(state: RunState, run: IntegrationRun, text: str) -> bool:
    """Tell whether a text is what an earlier turn answered, and nothing in this run said it."""
    said = text.strip()
    turns = run.attributes.get("history", ())
    if said not in state.told and all(turn.role != "assistant" or turn.content.strip() != said for turn in turns):
        return False
    return not any(said in one for one in state.said)


def is_refusal(state: RunState, answer: str) -> bool:
    """Tell whether an answer is what the last model said when its provider declined, or is blank for that."""
    said = state.refused_text
    return said is not None and answer.strip() in {"", _EMPTY, said.strip()}


@guarded
def report_open(state: RunState, error: BaseException | None) -> None:
    """Report what is still open when a run ends: what it had done by then, and why it stopped."""
    now_ns = time.time_ns()
    for stream in list(state.streams):
        stream.is_done = True
        span = stream.span
        if stream.is_answer:
            state.answer = stream.text or state.answer
        elif isinstance(span, ModelSpan) and (stream.pieces or error is not None):
            report_model_call(span, None, error, now_ns)
    while error is not None and state.open:
        span = state.open.pop()  # it ends here, and not again in a thread of its own
        if span.parent is not None:
            report_failed(span, error, now_ns)


@guarded
def report_failed(span: OpenSpan, error: BaseException, ended_ns: int) -> None:
    """Report a step that failed, or was open when its run did."""
    run = span.state.run
    if run is None:
        return
    if isinstance(span, ModelSpan):
        report_model_call(span, None, error, ended_ns)
    elif isinstance(span, ToolSpan):
        report_tool_call(span, None, error, ended_ns)
    elif span.kind in {"retriever", "rerank"}:
        span.state.record(record_failed, span, run, run.failure_of(error), ended_ns)


@guarded
def record_failed(span: OpenSpan, run: IntegrationRun, failure: Failure, ended_ns: int) -> None:
    """Report a retriever or a postprocessor that failed."""
    if span.kind == "retriever":
        if span.within is not None:
            span.within.is_outer = True
        run.retrieved(
            (),
            source=span.source,
            query=span.query or None,
            top_k=span.top_k,
            started_ns=span.started_ns,
            ended_ns=ended_ns,
            key=span.id,
            parent_key=span.within_key,
            error=failure,
        )
    elif span.given is not None:
        run.reranked(
            (),
            candidates=span.given.passages(run.reader),
            model=span.model or span.name,
            top_n=span.top_k,
            started_ns=span.started_ns,
            ended_ns=ended_ns,
            parent_key=span.within_key,
            error=failure,
        )


@guarded
def report_model_call(span: ModelSpan, response: object, error: BaseException | None, ended_ns: int) -> None:
    """Report a model call that has ended, with what it said by then."""
    state = span.state
    run = state.run
    stream, span.stream = span.stream, None  # the two refer to each other
    if run is None:
        return
    reply = reply_in(response)
    streamed = stream.text if stream is not None else ""
    span.chunks = stream.chunks if stream is not None else None
    if reply is None or len(streamed) > len(reply.content):  # a last chunk may hold the whole or its own piece
        calls = () if reply is None else reply.calls
        reply = Message(role="assistant", content=streamed, calls=calls) if streamed or calls else None
    state.record(record_model_call, span, run, reply, facts_of(response), run.failure_of(error), ended_ns)


@guarded
def record_model_call(
    span: ModelSpan,
    run: IntegrationRun,
    reply: Message | None,
    facts: ReplyFacts,
    failure: Failure | None,
    ended_ns: int,
) -> None:
    """Write a model call that has ended, and keep what it said."""
    state = span.state
    usage = usage_in(facts)
    if span.kind == "model":
        note_said(span, reply.content if reply is not None else "", facts.calls)
    if not span.is_inner and span.kind == "model":
        said = reply.shown if reply is not None else ""
        answer = answer_text(said, is_json=span.is_json_asked)
        has_refused = is_refused(facts._asdict())
        if said or has_refused:
            state.last_reply, state.last_text, state.is_json_asked = said, answer, span.is_json_asked
        if facts.calls or (state.is_agent and is_call(said)):  # it goes on, and is no answer
            state.last_text = ""
        state.refused_text = answer if has_refused else None
        state.is_broken = failure is not None and bool(said)
        state.last_model = span.model
        state.usage = added_usage(state.usage, usage)
    response_model, response_id, reasons = facts_in(facts)
    run.generated(
        operation=span.operation,
        model=span.model,
        provider=span.provider,
        response_model=response_model,
        response_id=response_id,
        inputs=span.messages,
        outputs=(reply,) if reply is not None and reply.shown else (),
        usage=usage,
        finish_reasons=reasons,
        first_chunk_s=span.first_chunk_s,
        chunks=span.chunks,
        request=span.request,
        server_address=span.server.address,
        server_port=span.server.port,
        is_in_process=span.is_in_process,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        parent_key=span.within_key,
        error=failure,
    )


def note_said(span: ModelSpan, reply: str, calls: Sequence[object]) -> None:
    """Note what a model said and gave to its tools: neither is evidence when it comes back."""
    own = span.state.own
    if reply.strip():
        own.add(reply)
        span.state.said.append(reply)
    for arguments in calls:
        own.add(value_in_json(arguments) if isinstance(arguments, str) else arguments)
    tool = span.tool if reply.strip() else None
    while tool is not None:
        tool.replies.append(reply)
        tool = tool.tool


def is_question(root: OpenSpan, run: IntegrationRun, answer: str) -> bool:
    """Tell whether a run that ends asked something: passages were searched, or a question was answered."""
    state = root.state
    if is_check(root, answer):
        return False
    is_asked = bool(run.attributes.get("query")) or state.is_resumed
    if is_asked and (answer or state.is_model_asked or root.kind == "query"):
        return True
    return bool(state.is_searched or state.seen or state.explicit is not None or run.selection is not None)


def is_check(span: OpenSpan, reply: str) -> bool:
    """Tell whether a model that was called plainly is a grader, or checked an answer."""
    return isinstance(span, ModelSpan) and is_judgement(prompt_text(span.messages), reply)


def is_context(run: IntegrationRun, text: str) -> bool:
    """Tell whether a text consists of the run's passages: a context for a model elsewhere, not an answer."""
    delivered = run.selection if run.selection is not None else run.candidates()
    found = found_in(text, tuple({passage.id: passage for passage in delivered}.values()))
    return bool(found) and sum(len(passage.text) for passage in found) >= _CONTEXT_SHARE * len(text)
