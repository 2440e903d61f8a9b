"""Facts recorded where an event ends: model and tool calls, the answer, the outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from ragtrace.capture import ANSWER_FIELDS, Generation, answer_text, guarded, is_verdict, shown
from ragtrace.capture.verdicts import is_steering
from ragtrace.model import added_usage
from ragtrace_langchain.documents import documents_in, fields_of, is_documents_only, text_of
from ragtrace_langchain.langgraph import payload_of
from ragtrace_langchain.messages import (
    QUESTION_KEYS,
    answer_in,
    called_in,
    content_text,
    question_in,
    reply_of,
    structured_text,
    turns_in,
)
from ragtrace_langchain.on_start import record_asked, record_question, record_streamed_inputs
from ragtrace_langchain.run_state import ModelCall
from ragtrace_langchain.selection import record_chain_output, settle
from ragtrace_langchain.tools import note_said
from ragtrace_langchain.turns import branch_answers, last_spoken, of_this_turn
from ragtrace_langchain.verdicts import is_check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.documents import Document

    from ragtrace.capture import Failure
    from ragtrace.model import Outcome
    from ragtrace_langchain.messages import Reply, ResultCopy
    from ragtrace_langchain.run_state import OpenSpan, OpenToolCall, RunState


@guarded
def record_model_call(span: ModelCall, response: ResultCopy | None, failure: Failure | None, ended_ns: int) -> None:
    """Report a model call that has ended, with what it said by then."""
    reply = reply_of(response)
    text = reply.text or "".join(span.streamed)
    state = span.state
    note_said(state, response, text)
    if span.within is None:
        state.spoken_ns = ended_ns
        said = answer_text(text, is_json=span.is_json_asked)
        is_thinking = bool(text) and reply.called is None  # and was cut before it said anything
        # A call that failed and that nothing tried again leaves no words of an earlier one in its place.
        if said or reply.is_refused or is_thinking or failure is not None:
            state.last_reply, state.last_text, state.is_json_asked = text, said, span.is_json_asked
        if failure is None:
            state.said.update(one.strip() for one in (text, said, *(one.content for one in reply.outputs)))
            state.said.discard("")
        state.has_failed = failure is not None
        state.refused_text = said if reply.is_refused else None
        state.broken_text = said or None if failure is not None else None
        state.last_called = reply.called
        state.last_model = span.facts.model if span.facts else span.name
        state.usage = added_usage(state.usage, reply.usage)
    if span.parent is None and failure is None:
        state.answer = state.last_text
    _generated(span, reply, text, failure, ended_ns)


@guarded
def record_tool_call(
    span: OpenToolCall, documents: list[Document] | None, result: object, failure: Failure | None, ended_ns: int
) -> None:
    """Report a tool call that has ended; one that found documents is a search."""
    if documents:
        span.state.has_retriever = True
        span.state.searched_ns = span.started_ns
    if span.is_direct and failure is None:
        span.state.direct[span.call_id or ""] = shown(result)
    span.state.run.tool_called(
        span.name,
        arguments=span.arguments,
        result=result,
        call_id=span.call_id,
        description=span.description,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        key=span.call_key,
        parent_key=span.parent.within_key if span.parent is not None else None,
        error=failure,
    )


def arguments_text(given: object) -> object:
    """Return a tool's arguments as JSON; a text as it is."""
    return json.dumps(given, default=str, ensure_ascii=False) if isinstance(given, dict) else given


def tool_result(output: object) -> object:
    """Return what a tool gave out, as the model is shown it."""
    if isinstance(output, ToolMessage):
        return content_text(output.content, is_prompt=True)
    documents = documents_in(output)
    return output if documents is None else "\n\n".join(map(text_of, documents))


def _generated(span: ModelCall, reply: Reply, text: str, failure: Failure | None, ended_ns: int) -> None:
    facts = span.facts
    outputs = reply.outputs or (turns_in([("assistant", text)]) if text else ())
    span.state.run.generated(
        operation=span.operation,
        model=facts.model if facts else span.name,
        provider=facts.provider if facts else None,
        response_model=reply.response_model,
        response_id=reply.response_id,
        inputs=span.messages,
        outputs=outputs,
        usage=reply.usage,
        finish_reasons=reply.finish_reasons,
        first_chunk_s=(span.first_chunk_ns - span.started_ns) / 1e9 if span.first_chunk_ns else None,
        chunks=span.chunks or None,
        request=facts.request if facts else None,
        server_address=facts.server.address if facts else None,
        server_port=facts.server.port if facts else None,
        is_in_process=facts.is_in_process if facts else False,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        key=span.key or None,
        parent_key=span.within_key,
        error=failure,
    )


@guarded
def record_chain_end(
    span: OpenSpan,
    inputs: object,
    outputs: object,
    documents: list[Document] | None,
    outcome: Outcome | None,
    ended_ns: int,
    is_streamed: bool,  # noqa: FBT001 - all by place
) -> None:
    """Take what a chain or a tool gave out, and the answer in a root's output."""
    state = span.state
    if is_streamed:
        record_streamed_inputs(span, inputs)
    if outputs is not None:
        record_chain_output(span, inputs, outputs, documents, ended_ns)
    if span.parent is not None and not span.is_in_block:
        if span.step:
            _record_step(span, outputs)
        return
    if is_streamed and not state.is_joined:
        record_question(state, inputs)
    if not state.has_query:
        record_asked(span, outputs)
    answer = answer_of(span, outputs, is_streamed=is_streamed)
    if span.parent is None:
        state.answer, state.branches = answer.text, answer.branches
        state.is_check = span.beginning is None and is_check(span.inputs, outputs, answer.text or state.last_text)
    else:
        record_chain_answer(span, answer.text, outcome, outputs=outputs, branches=answer.branches)


def _record_step(span: OpenSpan, outputs: object) -> None:
    """Note that a graph's step has ended, and what it said in messages: steps side by side may answer each."""
    beginning = span.top.beginning
    if beginning is not None:
        beginning.is_past = True
    for text in (fields_of(outputs) or {}).values():
        if isinstance(text, str) and text.strip() in span.state.said:
            span.state.spoken_at.setdefault(text, span.outer_step)
    replies = [
        text
        for part in (outputs if isinstance(outputs, list) else [outputs])
        for message in _listed((fields_of(part) or {}).get("messages"))
        if isinstance(message, AIMessage) and not message.tool_calls
        if (text := content_text(message.content).strip()) and not is_verdict(text)
    ]
    if replies:
        span.state.spoken_in.setdefault((id(span.parent), span.step), []).append(replies)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


@guarded
def record_interrupt(state: RunState, error: BaseException) -> None:
    """Note that the run waits for a person, and what it asks."""
    state.is_interrupted = True
    asked = payload_of(error)
    if asked and asked not in state.interrupts:  # it passes through the node and each graph around it
        state.interrupts.append(asked)


@guarded
def record_failed_retrieval(span: OpenSpan, failure: Failure | None, ended_ns: int) -> None:
    """Report a retriever that failed."""
    span.state.run.retrieved(
        (),
        source=span.source,
        query=span.query or None,
        top_k=span.top_k,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        key=span.key or None,
        parent_key=span.within_key,
        error=failure,
    )


@guarded
def break_off(span: OpenSpan, failure: Failure | None, *, is_failed: bool, ended_ns: int) -> None:
    """Report a step that was still open when its root ended: what it had done by then, and why it stopped."""
    if isinstance(span, ModelCall):
        if is_failed or span.first_chunk_ns:
            span.state.record(record_model_call, span, None, failure, ended_ns)
    elif span.kind == "retriever" and is_failed:
        span.state.record(record_failed_retrieval, span, failure, ended_ns)


def conclude(root: OpenSpan, outcome: Outcome | None, failure: Failure | None) -> None:
    """Write the facts that are known at a run's end, and forget its documents."""
    try:
        _conclude(root, outcome, failure)
    finally:
        root.state.forget()


@guarded
def _conclude(root: OpenSpan, outcome: Outcome | None, failure: Failure | None) -> None:
    state = root.state
    answer = state.answer
    if outcome == "interrupted":
        answer, state.branches = "", []  # what its state holds by then was not told to anybody
    elif answer is None and outcome == "error":
        answer = state.broken_text  # the user has read it
    if not state.is_joined:
        record_asked(root)
    settle(root)
    if state.interrupts:
        state.run.interrupted("\n".join(state.interrupts))
    if state.is_joined:
        _conclude_block(state)
        return
    text = _text_of(state, answer, outcome)
    if not is_question(root, text, outcome):
        state.run.discard()
        return
    has_refused = is_refusal(state, text)
    if len(state.branches) > 1:
        state.run.answered_by_branches(state.branches, model=state.last_model, usage=state.usage)
    elif (text or has_refused) and (outcome != "error" or answer is not None):
        state.run.answered(text, model=state.last_model, usage=state.usage, is_refused=has_refused)
    elif outcome is None and (state.is_retrieval_only or not state.has_model):
        state.run.expects_no_answer()
    elif outcome is None:  # a model spoke, and said nothing
        state.run.answered("", model=state.last_model, usage=state.usage)
    if failure is not None and outcome in {"error", None}:
        state.run.failed(failure)


def is_refusal(state: RunState, answer: str) -> bool:
    """Tell whether an answer is what the last model said when its provider declined, or is blank for that."""
    said = state.refused_text
    return said is not None and answer.strip() in {"", said.strip()}


def _text_of(state: RunState, answer: str | None, outcome: Outcome | None) -> str:
    spoken = state.last_text if state.spoken_ns > state.searched_ns and outcome != "interrupted" else ""
    text = answer if answer is not None else spoken
    # LangChain hands an abandoned root all pieces but the last one that was read.
    return spoken if outcome == "partial" and spoken.startswith(text) else text


@guarded
def record_chain_answer(
    span: OpenSpan,
    answer: str | None,
    outcome: Outcome | None,
    *,
    outputs: object = None,
    branches: Sequence[str] = (),
) -> None:
    """Take the end of a chain in the block of an application's own run: an answer, unless a later chain has one.

    A grader behind the chain that answered leaves the answer as it is.
    """
    state = span.state
    text = "" if outcome == "interrupted" else _text_of(state, answer, outcome)
    state.run.ends_as(outcome)
    state.is_retrieval_only = state.is_interrupted = False
    if outcome != "interrupted":
        state.interrupts.clear()
    if text and not (state.chain_answer and (is_verdict(text) or is_check(span.inputs, outputs, text))):
        state.chain_answer, state.branches = text, list(branches)


def _conclude_block(state: RunState) -> None:
    """Fill in the answer of an application's own run where the application has given none."""
    run = state.run
    if "answer" in run.attributes:
        run.attributes["is_refused"] |= is_refusal(state, run.attributes["answer"])
        return
    text = state.chain_answer if state.chain_answer is not None else _text_of(state, None, None)
    has_refused = is_refusal(state, text)
    if len(state.branches) > 1:
        run.answered_by_branches(state.branches, model=state.last_model, usage=state.usage)
    elif text or has_refused or state.spoken_ns > state.searched_ns:  # a model that said nothing
        run.answered(text, model=state.last_model, usage=state.usage, is_refused=has_refused)
    elif state.has_retriever and not run.has_generations():
        run.expects_no_answer(is_of_application=True)


_ASKED_KEYS = ("question", "query", "user_query", "user_input", "messages")
_SPOKEN_KEYS = ("answer", "final_answer", "generation", "response")
_GRADED_KEYS = (*_SPOKEN_KEYS, "prediction", "student_answer")


def is_question(root: OpenSpan, answer: str, outcome: Outcome | None) -> bool:
    """Tell whether a root that ended was a question, so that its run is kept.

    A run is kept where a model answered or a retriever was called. A grader, a router and a model that only calls
    a tool are no questions when they stand alone. A run that failed or was stopped before either is kept where
    a chain was asked something.
    """
    state = root.state
    if state.has_retriever or state.run.selection_source == "explicit":
        return True
    pool = state.run.candidates()
    if outcome not in {None, "partial"}:
        return state.has_model or (root.kind == "chain" and state.has_query)
    if not state.has_model:
        is_searched = bool(pool) and bool(_plain_question(root))
        return outcome is None and (is_searched or (bool(answer) and not state.is_retrieval_only))
    if state.is_retrieval_only:
        return bool(pool) and state.spoken_ns < _searched_ns(state)
    if outcome == "partial" or answer.strip() in state.direct.values():
        return True
    # A number or a yes answers what an agent looked up, or what a person asked in a conversation.
    is_looked_up = bool(state.tool_texts or (state.rows and root.beginning is not None))
    if answer and (is_looked_up or state.run.attributes.get("history")) and not state.is_check:
        return not is_steering(answer)
    if not answer and state.last_called is None:
        return not state.is_check
    is_graded = state.is_check or is_verdict(answer)
    return not is_graded or (len(pool) > 1 and not _is_grader(root, answer))


def _is_grader(root: OpenSpan, verdict: str) -> bool:
    """Tell whether a verdict over several passages grades them or an answer, and is not the answer itself."""
    given = fields_of(root.inputs) or {}
    is_answer_given = any(isinstance(given.get(key), str) and given[key] for key in _GRADED_KEYS)
    return is_answer_given or is_steering(verdict)


class Given(NamedTuple):
    """The answer in a root's output: None for the last model's text, "" where there is none.

    `branches` holds the answers of branches that ran side by side, where there are several.
    """

    text: str | None
    branches: list[str] = []  # noqa: RUF012 - never changed


def answer_of(span: OpenSpan, outputs: object, *, is_streamed: bool) -> Given:
    """Return the answer in a root's output, less what the run began with.

    These come in turn: the results of tools that answer for the agent, answers of branches side by side, the field
    or the message with the answer, a text that a model said under a name of the application's own. A stream whose
    pieces cannot be added up leaves the root with the last piece only; the model has the whole.
    """
    state = span.state
    began = _began(span)
    is_draft_kept = span.is_resumed and not (state.has_model or state.has_retriever)
    new = of_this_turn(outputs, began, state.said, is_draft_kept=is_draft_kept)
    direct = _given_directly(new, state.direct)
    if direct:
        return Given(direct)
    branches = [answer_text(one, is_json=state.is_json_asked) for one in _branches(state, new)]
    if len(branches) > 1:
        return Given("\n\n".join(branches), branches)
    told = _held_direct(new, state.direct) or answer_in(new)
    answer = None if told is None else answer_text(told, is_json=state.is_json_asked)
    if _is_retrieval_only(span, outputs, answer):
        state.is_retrieval_only = True
        return Given("")
    if told is None or answer is None:
        is_wordless = state.last_model is not None and not state.last_text  # it called a tool with its answer
        if is_wordless:
            return Given(structured_text(new) or called_in(new, state.last_called))
        if branches:
            return Given(branches[0])
        is_step = span.beginning is not None or state.has_retriever
        return Given("" if is_step and fields_of(outputs) is not None and is_verdict(state.last_text) else None)
    whole = state.last_reply
    is_last_piece = is_streamed and len(told) < len(whole) and whole.endswith(told)
    return Given(state.last_text if is_last_piece else answer)


def _began(span: OpenSpan) -> dict[object, object]:
    """Return what a root's state or input held before its first step, by the names of the fields."""
    given = span.inputs
    fields: Mapping[object, object] = {"messages": given} if isinstance(given, list) else fields_of(given) or {}
    return {**fields, **(span.beginning.fields if span.beginning is not None else {})}


def _given_directly(outputs: object, direct: Mapping[str, str]) -> str:
    """Return the results of tools with `return_direct`, where they are the last messages; else ""."""
    messages: object = outputs.get("messages") if isinstance(outputs, dict) else outputs
    last: list[str] = []
    for message in reversed(messages) if isinstance(messages, list) and direct else ():
        if not isinstance(message, ToolMessage) or message.tool_call_id not in direct:
            break
        last.append(content_text(message.content))
    return "\n\n".join(reversed(last))


def _held_direct(outputs: object, direct: Mapping[str, str]) -> str:
    """Return the result of a direct tool that stands under a name of the application's own, else ""."""
    texts = (text for text in (fields_of(outputs) or {}).values() if direct and isinstance(text, str))
    return next((text for text in texts if text.strip() and text in direct.values()), "")


def _branches(state: RunState, outputs: object) -> list[str]:
    """Return the answers in an output: several where branches or steps side by side answered, one for each.

    A dict with an ``answer`` has that one, whatever is beside it.
    """
    fields = fields_of(outputs)
    side = _side_by_side(state, outputs if fields is None else fields.get("messages"))
    if len(side) > 1 or (fields is None and not isinstance(outputs, list)):
        return side
    fields = fields or {}
    named = {key: value for key, value in fields.items() if key in ANSWER_FIELDS and not _is_blank(value)}
    if isinstance(named.get("answer"), str):
        return []
    if not named and answer_in(outputs) is not None:  # in its messages
        return []
    queries = {step.query.strip() for step in state.run.retrievals() if step.query}
    prompts = [
        "\n".join(one.content for one in step.inputs)
        for step in state.run.steps
        if isinstance(step, Generation) and not all(is_verdict(one.content) for one in step.outputs)
    ]
    return branch_answers(named or last_spoken(fields, state.spoken_at) or outputs, state.said, prompts, queries)


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _side_by_side(state: RunState, messages: object) -> list[str]:
    """Return the replies of the nodes of one step, where the last of the new messages is one of them."""
    said = [content_text(one.content).strip() for one in _listed(messages) if isinstance(one, AIMessage)]
    for replies in state.spoken_in.values() if said else ():
        texts = sorted({reply for node in replies for reply in node if reply in said})
        if len(replies) > 1 and said[-1] in texts:
            return texts
    return []


def _is_retrieval_only(span: OpenSpan, outputs: object, answer: str | None) -> bool:
    """Tell whether a root gave out what was retrieved, and no answer.

    A model that wrote the query spoke before the retrieval began, one that graded the documents behind it.
    """
    state = span.state
    has_spoken = state.spoken_ns > _searched_ns(state)
    if (answer and answer.strip() in state.direct.values()) or (has_spoken and state.has_failed and not answer):
        return False
    if is_documents_only(outputs) and (outputs or state.has_retriever):
        return True
    if answer is None and _is_documents_state(span, outputs):
        return True
    if has_spoken:
        return False
    if answer is None or answer == structured_text(outputs):
        return True
    if not state.has_retriever and not _is_stated(span, outputs):
        return True
    return state.run.is_mostly_passages(answer)


def _searched_ns(state: RunState) -> int:
    return max((state.searched_ns, *(step.started_ns for step in state.run.retrievals())))


def _is_documents_state(span: OpenSpan, outputs: object) -> bool:
    """Tell whether a state holds documents, and beside them no text that is new and longer than a grade."""
    fields = fields_of(outputs)
    if not fields or documents_in(outputs) is None:
        return False
    given = _began(span)
    others = (value for key, value in fields.items() if key not in QUESTION_KEYS and value != given.get(key))
    return all(_is_silent(value) for value in others)


def _is_silent(value: object) -> bool:
    if isinstance(value, str):
        return is_verdict(value)
    return (
        value is None
        or isinstance(value, bool | int | float)
        or documents_in(value) is not None
        or value in ([], {})
    )


def _is_stated(span: OpenSpan, outputs: object) -> bool:
    """Tell whether a function answered: a question and a new answer stand under names that say so.

    A text is an answer where the question came with documents.
    """
    if not _plain_question(span):
        return False
    given, fields = _began(span), fields_of(outputs)
    if fields is None:
        return isinstance(outputs, str) and bool(span.state.run.candidates() or span.state.given)
    if span.is_resumed:  # a person approved what the state held
        given = {}
    is_under_key = any(isinstance(said := fields.get(key), str) and said != given.get(key) for key in _SPOKEN_KEYS)
    return is_under_key or _is_replied(fields.get("messages"), given.get("messages"))


def _plain_question(span: OpenSpan) -> str:
    given = _began(span)
    return question_in({key: given[key] for key in _ASKED_KEYS if key in given})


def _is_replied(messages: object, given: object) -> bool:
    last = messages[-1] if isinstance(messages, list) and messages else None
    return getattr(last, "type", None) == "ai" and not (isinstance(given, list | tuple) and last in given)
