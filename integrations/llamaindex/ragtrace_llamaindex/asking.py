"""The question of a run and the turns before it, from what its calls are given: the rules are LlamaIndex's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture import before_question, guarded, spoken
from ragtrace.capture.events import Asking, Event
from ragtrace.capture.turns import question_among
from ragtrace_llamaindex.attributes import first_of
from ragtrace_llamaindex.messages import (
    answers_told,
    asked_with,
    history_in,
    messages_of,
    question_in,
    question_in_state,
    question_shown,
    texts_in,
    turns_before,
    turns_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import Message
    from ragtrace_llamaindex.open_runs import OpenRun, OpenSpan


def _tell(state: OpenRun, asking: Asking) -> None:
    state.add(Event("ask", data=asking))


def _tell_history(state: OpenRun, turns: tuple[Message, ...]) -> None:
    _tell(state, Asking(history=state.values.turns(turns)))


@guarded
def tell_question(state: OpenRun, arguments: Mapping[str, object]) -> None:
    """Tell a run's question and the turns before it, where the outermost call's arguments have them."""
    question = question_in(arguments)
    _tell_question(state, question)
    history = () if state.is_told else history_in(arguments)
    if history and (history[-1].role, history[-1].content) == ("user", question):
        history = history[:-1]  # an agent puts it into the list that it was given
    if history and state.run is not None:
        _tell_history(state, history)
        state.is_told = True


def tell_history(state: OpenRun, turns: tuple[Message, ...], *, is_final: bool) -> None:
    """Tell the turns before the question from what a chat engine or an agent hands on, where its caller gave none.

    Its memory itself is left alone: to read it may take a database, or a model that summarises.
    """
    examples = state.examples
    if turns[: len(examples)] == examples:
        turns = turns[len(examples) :]
    if turns and state.run is not None:
        _tell_history(state, turns)
        state.is_told = is_final


def may_tell_history(span: OpenSpan | None) -> bool:
    """Tell whether what happens right inside a node may tell the turns before the run's question."""
    return span is not None and span.state.keeps_turns and span.is_top and not span.state.is_told


@guarded
def tell_input(state: OpenRun, arguments: Mapping[str, object]) -> None:
    """Tell the question in the input of a workflow or a function, or keep its texts where it has a name of its own.

    A workflow that goes on from a saved context has no input; what the context holds then is it.
    """
    saved = state.saved
    if saved is not None and (told := tuple(answers_told(saved.state))):
        _tell(state, Asking(told=told))
    if not state.is_resumed or saved is None:
        tell_question(state, arguments)
        state.texts = tuple(texts_in(arguments.get("start_event", arguments)))
        return
    tell_question(state, saved.started)
    if not state.has_query:
        _tell_question(state, question_in_state(saved.state))
    for event in saved.events:
        tell_question(state, event)
    if not state.has_query:
        _tell_question(state, question_among(saved.state, ()), is_final=False)
    state.texts = tuple(texts_in([saved.started, saved.state]))


def _tell_question(state: OpenRun, question: str, *, is_final: bool = True) -> None:
    """Tell the question, unless it is known; one that is not final stands in until the question is met."""
    if question and not state.has_query and state.run is not None and (is_final or not state.question):
        state.has_query, state.question = is_final, question
        _tell(state, Asking(question))


def tell_asked(span: OpenSpan, asked: str) -> None:
    """Tell what a step inside the run is asked, where the question is not known.

    A text of the run's own input that the step is asked with is the question, and so is the only text of that
    input. Else what is asked stands in for it, but not inside a tool: a model wrote the tool's arguments.
    """
    state = span.state
    if not asked or state.has_query:
        return
    if span.is_top:
        _tell_question(state, asked)
    elif own := asked_with(asked, state.texts):
        _tell_question(state, own)
    elif span.tool is None and not state.is_agent:
        _tell_question(state, asked, is_final=False)


def tell_prompted(span: OpenSpan, asked: object) -> None:
    """Tell what a model's prompt says of the question.

    It shows the question of a run that goes on from a saved context, and the turns before that of a chat engine. A
    model that is called alone is asked the question itself.
    """
    state, messages = span.state, messages_of(asked)
    if state.is_resumed and not state.has_query and not span.is_inner and span.tool is None:
        shown = question_shown(messages, is_agent=state.is_agent)
        if not state.question or shown in state.question:  # else it may be what the person replied
            _tell_question(state, shown)
    if may_tell_history(span.parent):
        tell_history(state, turns_before(messages, state.question), is_final=True)
    if span.parent is None and state.run is not None and messages:
        said = [m.content for m in turns_in(asked) if m.role == "user" and m.content]  # without pictures
        said = said or [m.content for m in messages if m.role == "user"]
        _tell_question(state, said[-1] if said else "")
        _tell_history(state, before_question(messages))


def tell_examples(span: OpenSpan, synthesizer: object) -> None:
    """Tell the turns that a chat engine wrote into the template of its synthesizer."""
    if may_tell_history(span.parent):
        template = first_of(synthesizer, ("_text_qa_template",))
        turns = before_question(turns_in(first_of(template, ("message_templates",))))
        tell_history(span.state, turns, is_final=True)


def examples_of(talker: object) -> tuple[Message, ...]:
    """Return the turns that a chat engine puts before its memory."""
    return spoken(turns_in(first_of(talker, ("_prefix_messages",))))
