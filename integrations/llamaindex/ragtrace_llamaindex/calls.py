"""Data of events out of LlamaIndex's calls, and the question that they tell, with the turns before it.

The rules of the question are LlamaIndex's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.llms.structured_llm import StructuredLLM

from ragtrace.capture import (
    REQUEST_NAMES,
    SERVER_NAMES,
    before_question,
    guarded,
    is_json_asked,
    is_refused,
    read_request,
    read_server,
    record_internal_error,
    spoken,
)
from ragtrace.capture.events import Asked, Asking, Began, Chosen, Event, Said, Sought
from ragtrace.capture.turns import only_text
from ragtrace.capture.values import Walker, told
from ragtrace.model import Message
from ragtrace_llamaindex.messages import (
    answer_in,
    answers_told,
    asked_of,
    asked_with,
    facts_in,
    facts_of,
    history_in,
    is_call,
    is_in_process,
    messages_in,
    model_of,
    object_text,
    place_of_question,
    provider_of,
    query_text,
    question_in,
    question_in_state,
    question_shown,
    reply_in,
    structured_answer,
    texts_in,
    turns_before,
    turns_in,
    usage_in,
    with_pictures,
)
from ragtrace_llamaindex.open_runs import ModelSpan
from ragtrace_llamaindex.span_kinds import is_agent_event, is_all, is_fusion, is_retry
from ragtrace_llamaindex.values import Shown, argument, arguments_of, first_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from inspect import BoundArguments

    from ragtrace_llamaindex.open_runs import OpenRun, OpenSpan
    from ragtrace_llamaindex.values import Values


_provider = lru_cache(maxsize=256)(provider_of)
_in_process = lru_cache(maxsize=256)(is_in_process)


# -- beginnings --


def _begin_query(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    owner: type = type(instance)
    is_declared = span.is_top and span.state.run is not None and span.state.run.has_declared
    given = span.state.values.of(arguments_of(bound.arguments)) if is_declared else None
    span.begins(Began(given, is_engine=True, is_retry=is_retry(owner)))
    if span.within is not None:
        return
    if span.is_top:
        tell_question(span.state, bound.arguments)
    else:
        tell_asked(span, question_in(bound.arguments))


def _begin_search(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    owner: type = type(instance)
    query = query_text(argument(bound, "str_or_query_bundle")) or question_in(bound.arguments)
    top_k = first_of(instance, ("similarity_top_k", "_similarity_top_k", "top_k"))
    fuses = "always" if is_fusion(owner) else "several"
    source = _source_of(instance) or span.name
    span.begins(Sought(query, source, top_k if isinstance(top_k, int) else None, fuses, is_all(owner)))  # type: ignore[arg-type]
    tell_asked(span, query)


def _source_of(retriever: object) -> str | None:
    """Return the name of the index a retriever searches, where it or its vector store says one."""
    for part in (retriever, first_of(retriever, ("_vector_store",))):
        name = None if part is None else first_of(part, ("index_name", "collection_name", "table_name"))
        if isinstance(name, str) and name:
            return name
    return None


def _begin_choice(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    # Before it can write into them.
    span.given = span.state.values.documents(argument(bound, "nodes"), is_given=True)
    model = first_of(instance, ("model_name", "model"))
    span.model = model if isinstance(model, str) else None
    top_n = first_of(instance, ("top_n",))
    span.top_k = top_n if isinstance(top_n, int) else None
    span.begins(None)


def _begin_synthesis(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    arguments = bound.arguments
    texts, nodes = arguments.get("text_chunks"), arguments.get("nodes")
    span.is_json_asked = first_of(instance, ("_output_cls",)) is not None
    span.begins(
        Began(
            shows=span.state.values.shown(nodes) if nodes else None,
            texts=[text for text in texts if isinstance(text, str)] if isinstance(texts, list | tuple) else [],
        )
    )
    tell_examples(span, instance)
    tell_asked(span, query_text(arguments.get("query")) or query_text(arguments.get("query_str")))


def _begin_model(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    if not isinstance(span, ModelSpan):
        return
    owner: type = type(instance)
    server = read_server(settings_of(instance, SERVER_NAMES))
    is_embedding = span.kind == "embedding"
    asked = None if is_embedding else asked_of(bound)
    prompt = _prompt_of(span.state.values, asked)
    parameters = (bound.arguments.get("kwargs"), getattr(instance, "__dict__", None))
    if not is_embedding:
        span.is_json_asked |= isinstance(instance, StructuredLLM) or any(map(is_json_asked, parameters))
        span.lazy_key = (id(instance), id(asked))
    span.begins(
        Asked(
            messages=[one.turn for one in prompt],
            operation="embeddings" if is_embedding else "text_completion" if isinstance(asked, str) else "chat",
            model=model_of(instance),
            provider=_provider(owner),
            request={} if is_embedding else read_request(parameters[0], settings_of(instance, REQUEST_NAMES)),
            server_address=server.address,
            server_port=server.port,
            is_in_process=_in_process(owner),
            is_json_asked=span.is_json_asked,
        )
    )
    if not is_embedding:
        tell_prompted(span, asked, [one.message for one in prompt])


def _prompt_of(values: Values, asked: object) -> list[Shown]:
    if isinstance(asked, str):
        message = Message(role="user", content=asked)
        return [Shown(message, values.turn(message))]
    return values.prompt(messages_in(asked), with_pictures)


def _begin_tool(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    metadata = getattr(instance, "metadata", None)
    span.name = told(getattr(metadata, "name", None)) or span.name
    description = told(getattr(metadata, "description", None)) or None
    span.begins(Began(arguments_of(bound.arguments), call_id=span.call_id, description=description))


def call_in(event: object) -> str | None:
    """Return the id of the call that an agent's step is to carry out; None for any other event.

    Example:
        >>> from llama_index.core.agent.workflow import ToolCall
        >>> call_in(ToolCall(tool_name="search", tool_kwargs={}, tool_id="call-7")), call_in(None)
        ('call-7', None)
    """
    kind: type = type(event)
    if kind.__name__ != "ToolCall" or not is_agent_event(kind):
        return None
    return told(getattr(event, "tool_id", None)) or None


BEGINNINGS = {
    "query": _begin_query,
    "retriever": _begin_search,
    "rerank": _begin_choice,
    "synthesize": _begin_synthesis,
    "model": _begin_model,
    "embedding": _begin_model,
    "tool": _begin_tool,
}


# -- ends --


def chosen_by(span: OpenSpan, nodes: object) -> Chosen:
    """Return what a postprocessor made of its nodes; of one that failed nothing."""
    out = span.state.values.documents(nodes)
    return Chosen(span.given, out, span.model or span.name, span.top_k, source="framework")


def said_by(span: ModelSpan, response: object) -> Said:
    """Return what a model replied, with what its stream gave by then."""
    stream, span.stream = span.stream, None  # the two refer to each other
    reply, facts = reply_in(response), facts_of(response)
    streamed = stream.text if stream is not None else ""
    if reply is None or len(streamed) > len(reply.content):  # a last chunk may hold the whole or its own piece
        calls = () if reply is None else reply.calls
        reply = Message(role="assistant", content=streamed, calls=calls) if streamed or calls else None
    response_model, response_id, reasons = facts_in(facts)
    return Said(
        choices=[span.state.values.turn(reply)] if reply is not None and reply.shown else [],
        first_chunk_ns=span.first_chunk_ns,
        chunks=stream.chunks if stream is not None else 0,
        is_streamed=stream is not None,
        usage=usage_in(facts),
        finish_reasons=reasons,
        response_model=response_model,
        response_id=response_id,
        is_refused=span.kind == "model" and is_refused(facts._asdict()),
        goes_on=span.state.is_agent and reply is not None and is_call(reply.content),
    )


def answer_of(result: object, *, is_inner: bool = False, is_synthesis: bool = False) -> str | None:
    """Return the answer in what a call returned; see `answer_in`.

    Args:
        result: what it returned.
        is_inner: another prompt may show the answer, and structured output is then shown whole.
        is_synthesis: a synthesizer returned it, so that an object of the application's own is the answer.
    """
    try:
        if is_inner and isinstance(result, PydanticResponse):
            return object_text(result)
        answer = answer_in(result)
        return structured_answer(result) if answer is None and is_synthesis else answer
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.calls.answer", error)
        return None


def given_out(result: object) -> tuple[str, ...]:
    """Return the texts in a result of which no name tells the answer."""
    try:
        held = getattr(result, "result", None)  # of a workflow's last event
        return tuple(dict.fromkeys(texts_in(result if held is None else held)))
    except Exception as error:  # an application's own result may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.calls.given_out", error)
        return ()


# -- the question, and the turns before it --


def _tell(state: OpenRun, asking: Asking) -> None:
    state.add(Event("ask", data=asking))


def _tell_history(state: OpenRun, turns: tuple[Message, ...]) -> None:
    _tell(state, Asking(history=state.values.turns(turns)))


@guarded
def tell_question(state: OpenRun, arguments: Mapping[str, object]) -> None:
    """Tell a run's question and the turns before it, where the outermost call's arguments have them."""
    question = question_in(arguments)
    if question and not state.has_query:
        _tell_question(state, question, place=place_of_question(arguments, question))
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
    if saved is not None and (answers := tuple(answers_told(saved.state))):
        _tell(state, Asking(told=answers))
    if not state.is_resumed or saved is None:
        tell_question(state, arguments)
        state.texts = tuple(texts_in(arguments.get("start_event", arguments)))
        return
    tell_question(state, saved.started)
    if not state.has_query:
        _tell_question(state, question_in_state(saved.state), place="state")
    for event in saved.events:
        tell_question(state, event)
    if not state.has_query:
        _tell_question(state, only_text(Walker().of(saved.state)), place="state", is_final=False)
    state.texts = tuple(texts_in([saved.started, saved.state]))


def _tell_question(
    state: OpenRun, question: str, *, place: str, is_final: bool = True, is_guess: bool | None = None
) -> None:
    """Tell the question, unless it is known; one that is not final stands in until the question is met."""
    if question and not state.has_query and state.run is not None and (is_final or not state.question):
        state.has_query, state.question = is_final, question
        _tell(state, Asking(question, place=place, is_guess=not is_final if is_guess is None else is_guess))


def tell_asked(span: OpenSpan, asked: str) -> None:
    """Tell what a step inside the run is asked, where the question is not known.

    A text of the run's own input that the step is asked with is the question, and so is the only text of that
    input. Else what is asked stands in for it, but not inside a tool: a model wrote the tool's arguments.
    """
    state = span.state
    if not asked or state.has_query:
        return
    if span.is_top:
        _tell_question(state, asked, place="input")
    elif own := asked_with(asked, state.texts):
        _tell_question(state, own, place="a text of the input", is_guess=True)
    elif span.tool is None and not state.is_agent:
        _tell_question(state, asked, place=f"what {span.name} was asked", is_final=False)


def tell_prompted(span: OpenSpan, asked: object, messages: Sequence[Message]) -> None:
    """Tell what a model's prompt says of the question.

    It shows the question of a run that goes on from a saved context, and the turns before that of a chat engine. A
    model that is called alone is asked the question itself.
    """
    state = span.state
    if state.is_resumed and not state.has_query and not span.is_inner and span.tool is None:
        shown = question_shown(messages, is_agent=state.is_agent)
        if not state.question or shown in state.question:  # else it may be what the person replied
            _tell_question(state, shown, place="the prompt", is_guess=True)
    if may_tell_history(span.parent):
        tell_history(state, turns_before(messages, state.question), is_final=True)
    if span.parent is None and state.run is not None and messages:
        said = [m.content for m in turns_in(asked) if m.role == "user" and m.content]  # without pictures
        said = said or [m.content for m in messages if m.role == "user"]
        _tell_question(state, said[-1] if said else "", place="input.messages[-1]", is_guess=True)
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
