"""Handlers on LlamaIndex's dispatcher: they pass spans and events of interest to the tracer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMPredictStartEvent,
)
from llama_index.core.instrumentation.events.rerank import ReRankStartEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

from ragtrace.capture import guarded, record_internal_error
from ragtrace.capture.fork import after_fork_in_child
from ragtrace_llamaindex.request import holder
from ragtrace_llamaindex.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import BoundArguments

    from llama_index.core.instrumentation.events import BaseEvent

MAX_EVENT_KINDS = 4_096  # classes of events, of which an application may make its own at run time

tracer = Tracer(holder.current)
after_fork_in_child(tracer.reset_after_fork)
_taker_of = tracer.takers.get


class RagtraceSpanHandler(BaseSpanHandler[BaseSpan]):
    """Passes spans to the tracer.

    It overrides enter, exit and drop whole: LlamaIndex's own versions keep spans in dicts under a lock.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex shows."""
        return "RagtraceSpanHandler"

    @guarded
    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, object] | None = None,  # noqa: ARG002 - called by keyword
        **_kwargs: object,
    ) -> None:
        """Note a span that begins."""
        tracer.entered(id_, bound_args, instance, parent_id)

    @guarded
    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,  # noqa: ARG002 - called by keyword
        instance: object = None,  # noqa: ARG002 - called by keyword
        result: object = None,
        **_kwargs: object,
    ) -> None:
        """Take what a span returned."""
        tracer.exited(id_, result)

    @guarded
    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,  # noqa: ARG002 - called by keyword
        instance: object = None,  # noqa: ARG002 - called by keyword
        err: BaseException | None = None,
        **_kwargs: object,
    ) -> None:
        """Take the failure of a span."""
        tracer.dropped(id_, err)

    def new_span(self, *_args: object, **_kwargs: object) -> None:
        """Make no span: see `span_enter`."""

    def prepare_to_exit_span(self, *_args: object, **_kwargs: object) -> None:
        """Exit no span: see `span_exit`."""

    def prepare_to_drop_span(self, *_args: object, **_kwargs: object) -> None:
        """Drop no span: see `span_drop`."""


@guarded
def _on_end(event: LLMChatEndEvent | LLMCompletionEndEvent) -> None:
    tracer.stream_ended(event.span_id, event.response, None)


@guarded
def _on_exception(event: ExceptionEvent) -> None:
    tracer.stream_ended(event.span_id, None, event.exception)


@guarded
def _on_rerank(event: ReRankStartEvent) -> None:
    span = tracer.spans.get(event.span_id)
    if span is not None and span.kind == "rerank":
        span.model = event.model_name or span.model
        span.top_k = event.top_n


@guarded
def _on_predict(event: LLMPredictStartEvent) -> None:
    noted = event.template.metadata
    if "prompt_name" in noted:
        tracer.prompted(event.span_id, noted["prompt_name"], noted.get("prompt_version"))
    told = event.template_args
    if told and "chat_history" in told:
        tracer.condensed(event.span_id, told["chat_history"])


@guarded
def _on_cancelled(event: BaseEvent) -> None:
    tracer.cancelled(event.span_id)


_CHUNKS = {LLMChatInProgressEvent, LLMCompletionInProgressEvent}
_HANDLERS: dict[type, Callable[..., None] | None] = {
    LLMChatEndEvent: _on_end,
    LLMCompletionEndEvent: _on_end,
    ExceptionEvent: _on_exception,
    ReRankStartEvent: _on_rerank,
    LLMPredictStartEvent: _on_predict,
}


@guarded
def _handler_of(kind: type) -> Callable[..., None] | None:
    """Decide once for each class of event; a workflow's are loaded late, and are not there in old versions."""
    is_cancelled = kind.__name__ == "SpanCancelledEvent" and kind.__module__.startswith("workflows.")
    take = _on_cancelled if is_cancelled else None
    if len(_HANDLERS) < MAX_EVENT_KINDS:
        _HANDLERS[kind] = take
    return take


def _take(take: Callable[..., None], event: Any) -> None:
    try:  # 0.2 us less than `guarded`
        take(event.response.delta)
    except Exception as error:
        record_internal_error("ragtrace_llamaindex.handlers.take", error)


class RagtraceEventHandler(BaseEventHandler):
    """Passes the few events of interest to the tracer."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex shows."""
        return "RagtraceEventHandler"

    def handle(self, event: BaseEvent, **_kwargs: object) -> None:
        """Take an event; each kind's own taker is guarded."""
        kind = type(event)
        if kind in _CHUNKS:  # hundreds in a run: an application waits for each
            take_piece = _taker_of(event.span_id)
            if take_piece is not None:
                _take(take_piece, event)
            return
        take = _HANDLERS[kind] if kind in _HANDLERS else _handler_of(kind)
        if take is not None:
            take(event)
