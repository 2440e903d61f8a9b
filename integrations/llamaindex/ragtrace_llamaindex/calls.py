"""The data of an event, from the arguments of a call of LlamaIndex's and from its result."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.llms.structured_llm import StructuredLLM

from ragtrace.capture import (
    REQUEST_NAMES,
    SERVER_NAMES,
    is_json_asked,
    is_refused,
    read_request,
    read_server,
    record_internal_error,
    shown,
)
from ragtrace.capture.events import Asked, Began, Chosen, Said, Sought
from ragtrace.model import Message
from ragtrace_llamaindex.asking import tell_asked, tell_examples, tell_prompted, tell_question
from ragtrace_llamaindex.attributes import argument, first_of, settings_of
from ragtrace_llamaindex.messages import (
    answer_in,
    asked_of,
    facts_in,
    facts_of,
    is_call,
    is_in_process,
    messages_of,
    model_of,
    provider_of,
    query_text,
    question_in,
    reply_in,
    structured_answer,
    texts_in,
    usage_in,
)
from ragtrace_llamaindex.open_runs import ModelSpan
from ragtrace_llamaindex.span_kinds import is_all, is_fusion, is_retry
from ragtrace_llamaindex.values import arguments_of

if TYPE_CHECKING:
    from inspect import BoundArguments

    from ragtrace_llamaindex.open_runs import OpenSpan

_provider = lru_cache(maxsize=256)(provider_of)
_in_process = lru_cache(maxsize=256)(is_in_process)


# -- beginnings --


def _begin_query(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    owner: type = type(instance)
    span.begins(Began(is_engine=True, is_retry=is_retry(owner)))
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
    span.given = span.state.values.documents(argument(bound, "nodes"))  # before it can write into them
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
    parameters = (bound.arguments.get("kwargs"), getattr(instance, "__dict__", None))
    if not is_embedding:
        span.is_json_asked |= isinstance(instance, StructuredLLM) or any(map(is_json_asked, parameters))
        span.lazy_key = (id(instance), id(asked))
    span.begins(
        Asked(
            messages=span.state.values.turns(messages_of(asked)),
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
        tell_prompted(span, asked)


def _begin_tool(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    metadata = getattr(instance, "metadata", None)
    span.name = shown(getattr(metadata, "name", None)) or span.name
    description = shown(getattr(metadata, "description", None)) or None
    span.begins(Began(arguments_of(bound.arguments), description=description))


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
            return shown(result)
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
