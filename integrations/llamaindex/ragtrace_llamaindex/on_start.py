"""Facts recorded where a span starts: the question, the history, the prompt, the arguments of a step."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from llama_index.core.llms.structured_llm import StructuredLLM

from ragtrace.capture import (
    REQUEST_NAMES,
    SERVER_NAMES,
    before_question,
    guarded,
    is_json_asked,
    prompt_text,
    read_request,
    read_server,
    shown,
)
from ragtrace_llamaindex.attributes import argument, first_of, settings_of
from ragtrace_llamaindex.messages import (
    answers_told,
    asked_of,
    asked_with,
    history_in,
    is_in_process,
    messages_of,
    model_of,
    provider_of,
    query_text,
    question_in,
    question_in_state,
    question_shown,
    texts_in,
    turns_before,
    turns_in,
)
from ragtrace_llamaindex.nodes import NodeColumns
from ragtrace_llamaindex.run_state import ModelSpan, ToolSpan
from ragtrace_llamaindex.selection import record_synthesized
from ragtrace_llamaindex.span_kinds import is_retry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from inspect import BoundArguments

    from ragtrace.capture import IntegrationRun
    from ragtrace.model import Message
    from ragtrace_llamaindex.run_state import OpenSpan, RunState

_provider = lru_cache(maxsize=256)(provider_of)
_in_process = lru_cache(maxsize=256)(is_in_process)
_PLAIN = (str, int, float, bool, list, dict, type(None))


@guarded
def record_question(state: RunState, arguments: Mapping[str, object]) -> None:
    """Take a run's question and the turns before it, where the outermost call's arguments have them."""
    question = question_in(arguments)
    _record_question(state, question)
    history = () if state.is_told else history_in(arguments)
    if history and (history[-1].role, history[-1].content) == ("user", question):
        history = history[:-1]  # an agent puts it into the list that it was given
    if history and state.run is not None:
        state.record(state.run.set_history, history)
        state.is_told = True


def record_history(state: RunState, turns: tuple[Message, ...], *, is_final: bool) -> None:
    """Take the turns before the question from what a chat engine or an agent hands on, where its caller gave none.

    Its memory itself is left alone: to read it may take a database, or a model that summarises.
    """
    examples = state.examples
    if turns[: len(examples)] == examples:
        turns = turns[len(examples) :]
    if turns and state.run is not None:
        state.record(state.run.set_history, turns)
        state.is_told = is_final


def may_record_history(span: OpenSpan | None) -> bool:
    """Tell whether what happens right inside a node may tell the turns before the run's question."""
    return span is not None and span.state.keeps_turns and span.is_top and not span.state.is_told


@guarded
def record_input(state: RunState, arguments: Mapping[str, object]) -> None:
    """Take the input of a workflow or a function: its question, or its texts where it names that in its own way.

    A workflow that goes on from a saved context has no input; what the context holds then is it.
    """
    saved = state.saved
    if saved is not None:
        state.told = frozenset(answers_told(saved.state))
    if not state.is_resumed or saved is None:
        record_question(state, arguments)
        state.texts = tuple(texts_in(arguments.get("start_event", arguments)))
        return
    record_question(state, saved.started)
    if not state.has_query:
        _record_question(state, question_in_state(saved.state))
    for event in saved.events:
        record_question(state, event)
    state.texts = tuple(texts_in([saved.started, saved.state]))


def _record_question(state: RunState, question: str, *, is_final: bool = True) -> None:
    """Set the question, unless it is known; one that is not final stands in until the question is met."""
    if question and not state.has_query and state.run is not None and (is_final or not state.question):
        state.has_query, state.question = is_final, question
        state.record(state.run.set_query, question)


def _record_asked(span: OpenSpan, asked: str) -> None:
    """Take what a step inside the run is asked, where the question is not known.

    A text of the run's own input that the step is asked with is the question, and so is the only text of that
    input. Else what is asked stands in for it, but not inside a tool: a model wrote the tool's arguments.
    """
    state = span.state
    if not asked or state.has_query:
        return
    if span.is_top:
        _record_question(state, asked)
    elif own := asked_with(asked, state.texts):
        _record_question(state, own)
    elif span.tool is None and not state.is_agent:
        _record_question(state, asked, is_final=False)


def _record_shown(span: ModelSpan) -> None:
    """Take the question of a run that goes on from a saved context out of what its model is shown."""
    state = span.state
    if state.is_resumed and not state.has_query and not span.is_inner and span.tool is None:
        _record_question(state, question_shown(span.messages, is_agent=state.is_agent))


def _on_query_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    owner: type = type(instance)
    span.state.is_retried = span.state.is_retried or is_retry(owner)
    if span.within is not None:
        return
    if span.is_top:
        record_question(span.state, bound.arguments)
    else:
        _record_asked(span, question_in(bound.arguments))


def _on_retrieval_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    span.query = query_text(argument(bound, "str_or_query_bundle")) or question_in(bound.arguments)
    span.source = _source_of(instance) or span.name
    top_k = first_of(instance, ("similarity_top_k", "_similarity_top_k", "top_k"))
    span.top_k = top_k if isinstance(top_k, int) else None
    _record_asked(span, span.query)


def _source_of(retriever: object) -> str | None:
    """Return the name of the index a retriever searches, where it or its vector store says one."""
    for part in (retriever, first_of(retriever, ("_vector_store",))):
        name = None if part is None else first_of(part, ("index_name", "collection_name", "table_name"))
        if isinstance(name, str) and name:
            return name
    return None


def _on_rerank_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    span.given = NodeColumns(argument(bound, "nodes"))  # before it can write into them
    model = first_of(instance, ("model_name", "model"))
    span.model = model if isinstance(model, str) else None
    top_n = first_of(instance, ("top_n",))
    span.top_k = top_n if isinstance(top_n, int) else None


def _on_synthesis_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    state = span.state
    span.is_json_asked = first_of(instance, ("_output_cls",)) is not None
    if may_record_history(span.parent):
        template = first_of(instance, ("_text_qa_template",))
        record_history(state, before_question(turns_in(first_of(template, ("message_templates",)))), is_final=True)
    arguments = bound.arguments
    _record_asked(span, query_text(arguments.get("query")) or query_text(arguments.get("query_str")))
    texts = arguments.get("text_chunks")
    if isinstance(texts, list | tuple) and span.within is None:
        state.record(record_given_texts, span, state.run, [text for text in texts if isinstance(text, str)])
    nodes = arguments.get("nodes")
    if nodes and span.within is None:
        state.record(record_synthesized, span, state.run, NodeColumns(nodes))


@guarded
def record_given_texts(span: OpenSpan, run: IntegrationRun, texts: Sequence[str]) -> None:
    """Take the texts that a synthesizer is given in place of nodes: the pool of one that was called alone.

    Inside another call they count where nothing was found as passages.
    """
    given = [text for text in texts if not span.state.own.holds(text)]
    if span.parent is None:
        run.set_candidates(given)
        return
    for text in given:
        run.add_text(text, source=span.name, kind="context_text")


def _on_model_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    if not isinstance(span, ModelSpan):
        return
    state = span.state
    owner: type = type(instance)
    span.model, span.provider, span.is_in_process = model_of(instance), _provider(owner), _in_process(owner)
    span.server = read_server(settings_of(instance, SERVER_NAMES))
    if span.kind == "embedding":
        span.operation = "embeddings"
        return
    asked = asked_of(bound)
    span.request = read_request(bound.arguments.get("kwargs"), settings_of(instance, REQUEST_NAMES))
    span.operation = "text_completion" if isinstance(asked, str) else "chat"
    parameters = (bound.arguments.get("kwargs"), getattr(instance, "__dict__", None))
    span.is_json_asked |= isinstance(instance, StructuredLLM) or any(map(is_json_asked, parameters))
    span.messages = messages_of(asked)
    span.lazy_key = (id(instance), id(asked))
    state.record(record_prompt, span, state.run, state.root)
    _record_shown(span)
    if may_record_history(span.parent):
        record_history(state, turns_before(span.messages, state.question), is_final=True)
    if span.parent is None and state.run is not None and span.messages:
        said = [m.content for m in turns_in(asked) if m.role == "user" and m.content]  # without pictures
        said = said or [m.content for m in span.messages if m.role == "user"]
        _record_question(state, said[-1] if said else "")
        state.record(state.run.set_history, before_question(span.messages))


@guarded
def record_prompt(span: ModelSpan, run: IntegrationRun, root: OpenSpan | None) -> None:
    """Take the rendered prompt of a model call; the models of a retriever that was called alone write no answer."""
    if span.is_inner:
        return
    span.state.is_model_asked = True
    if root is not None and root.kind != "retriever":
        run.add_prompt(prompt_text(span.messages))


def _on_tool_start(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    """Note a tool's name, and the arguments of its call."""
    if not isinstance(span, ToolSpan):
        return
    metadata = getattr(instance, "metadata", None)
    span.name = shown(getattr(metadata, "name", None)) or span.name
    span.description = shown(getattr(metadata, "description", None)) or None
    span.arguments = _arguments_of(bound.arguments)


def _arguments_of(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON, less what is the framework's own, such as a workflow's context."""
    given = {name: value for name, value in arguments.items() if name not in {"args", "kwargs"}}
    given.update(arguments.get("kwargs") or {})
    plain: object = {name: value for name, value in given.items() if isinstance(value, _PLAIN)}
    positional = [value for value in arguments.get("args") or () if isinstance(value, _PLAIN)]
    if positional:
        plain = [*positional, plain] if plain else positional
    return json.dumps(plain, ensure_ascii=False, default=shown) if plain else ""


ON_START = {
    "query": _on_query_start,
    "retriever": _on_retrieval_start,
    "rerank": _on_rerank_start,
    "synthesize": _on_synthesis_start,
    "model": _on_model_start,
    "embedding": _on_model_start,
    "tool": _on_tool_start,
}
