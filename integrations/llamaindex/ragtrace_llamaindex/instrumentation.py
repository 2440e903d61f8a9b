"""Global instrumentation: handlers on LlamaIndex's root dispatcher, which pass spans and events to the tracer."""

from __future__ import annotations

import threading
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
from llama_index_instrumentation import get_dispatcher

import ragtrace
from ragtrace.capture import Defaults, Instrumentor, guarded, guarded_constructor, record_internal_error
from ragtrace.capture.declared import Declared
from ragtrace.capture.fork import after_fork_in_child
from ragtrace_llamaindex.request import holder, inside
from ragtrace_llamaindex.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import Token
    from inspect import BoundArguments
    from types import TracebackType

    from llama_index.core.instrumentation.events import BaseEvent

    from ragtrace.capture import Recorder
    from ragtrace.capture.declared import Evidence


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
        record_internal_error("ragtrace_llamaindex.instrumentation.take", error)


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


_lock = threading.RLock()
_span_handler = RagtraceSpanHandler()
_event_handler = RagtraceEventHandler()


@guarded_constructor
def instrument(
    recorder: Recorder | None = None,
    *,
    workflow: str | None = None,
    session: str | None = None,
    user: str | None = None,
    corpus: str | None = None,
    corpus_version: str | None = None,
    k: int | None = None,
    tags: Iterable[str] = (),
    question: str | None = None,
    answer: str | None = None,
    selected: str | None = None,
    evidence: Evidence | None = None,
    roots: Iterable[str] | None = None,
    follows: bool | None = None,
) -> None:
    """Capture every LlamaIndex run of this process from now on.

    A second call adds nothing to what is captured; its arguments replace those of the first for runs that begin
    later. Thread-safe.

    Args:
        recorder: where runs go; default the process's own, as ``ragtrace.configure`` set it up.
        workflow: name of the application; default the class of the outermost call. What `request` says comes
            first, and so it is with the others.
        session: conversation id of every run.
        user: end user's id.
        corpus: name of the index searched.
        corpus_version: its version.
        k: cut-off of @K metrics; default the number of contexts delivered.
        tags: tags of every run; a text is one.
        question: where the question stands, such as ``input.ticket.body`` or ``state.messages[-1]``; see
            docs/how-to/declare.md for this and what follows.
        answer: where the answer stands, such as ``output.report``.
        selected: where the chosen passages stand.
        evidence: names of tools, retrievers, functions and places: True of evidence, False of none, or where in its
            output the evidence stands. A list of names is True of each.
        roots: names of the calls that are runs; others are none.
        follows: False where no run repeats the answer of the one before it.

    Raises:
        TypeError: an argument that there is not.
        ConfigError: a declaration is wrong.

    Example:
        >>> instrument()
        >>> is_instrumented()
        True
        >>> uninstrument()
    """
    defaults = Defaults(
        recorder=recorder,
        workflow=workflow,
        session=session,
        user=user,
        corpus=corpus,
        corpus_version=corpus_version,
        k=k,
        tags=tags,
        declared=Declared.of(
            question=question,
            answer=answer,
            selected=selected,
            evidence=evidence,
            roots=roots,
            follows=follows,
        ),
    )
    with _lock:
        holder.base = defaults
        _settle()


@guarded
def uninstrument() -> None:
    """Capture nothing more, save inside an `instrumented` block; a second call does nothing.

    A run that is open then is ended as ``partial`` by the recorder's time limit.

    Example:
        >>> uninstrument()
        >>> is_instrumented()
        False
    """
    with _lock:
        holder.base = None
        _settle()


def is_instrumented() -> bool:
    """Tell whether runs are captured: after `instrument`, or while an `instrumented` block is open.

    Example:
        >>> with instrumented():
        ...     is_instrumented()
        True
    """
    return holder.base is not None or bool(holder.blocks)


class instrumented:  # noqa: N801 - used like a function: ``with instrumented(...):``
    """Capture the runs begun inside the block: ``with instrumented(...):`` or ``async with``.

    It takes the arguments of `instrument`, and leaves things as they were. Blocks may stand inside each other
    and inside `instrument`; the innermost one's arguments hold. A run of another thread that is in no block of
    its own goes to the block opened last. Each object is good for one block at a time.

    Example:
        >>> from ragtrace.capture import Recorder
        >>> with instrumented(Recorder(), corpus="faq"):
        ...     is_instrumented()
        True
        >>> is_instrumented()
        False
    """

    @guarded_constructor
    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        workflow: str | None = None,
        session: str | None = None,
        user: str | None = None,
        corpus: str | None = None,
        corpus_version: str | None = None,
        k: int | None = None,
        tags: Iterable[str] = (),
        question: str | None = None,
        answer: str | None = None,
        selected: str | None = None,
        evidence: Evidence | None = None,
        roots: Iterable[str] | None = None,
        follows: bool | None = None,
    ) -> None:
        self._token: Token[Defaults | None] | None = None
        self._defaults = Defaults(
            recorder=recorder,
            workflow=workflow,
            session=session,
            user=user,
            corpus=corpus,
            corpus_version=corpus_version,
            k=k,
            tags=tags,
            declared=Declared.of(
                question=question,
                answer=answer,
                selected=selected,
                evidence=evidence,
                roots=roots,
                follows=follows,
            ),
        )

    def __enter__(self) -> instrumented:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def __aenter__(self) -> instrumented:
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @guarded
    def _open(self) -> None:
        with _lock:
            holder.blocks = (*holder.blocks, self._defaults)
            _settle()
        self._token = inside.set(self._defaults)

    @guarded
    def _close(self) -> None:
        with _lock:
            holder.blocks = tuple(block for block in holder.blocks if block is not self._defaults)
            _settle()
        token, self._token = self._token, None
        if token is not None:
            try:
                inside.reset(token)
            except ValueError:  # closed in another context, as a fixture may be; the block is off the list anyway
                inside.set(None)


def _settle() -> None:
    """Put the two handlers on the root dispatcher, each once, or take them off."""
    root = get_dispatcher()
    if is_instrumented():
        if not _holds(root.span_handlers, _span_handler):
            root.add_span_handler(_span_handler)
        if not _holds(root.event_handlers, _event_handler):
            root.add_event_handler(_event_handler)
        return
    # New lists: another thread may be walking the old ones.
    root.span_handlers = [one for one in root.span_handlers if one is not _span_handler]
    root.event_handlers = [one for one in root.event_handlers if one is not _event_handler]


def _holds(handlers: Iterable[object], handler: object) -> bool:
    return any(one is handler for one in handlers)


class LlamaIndexInstrumentor(Instrumentor):
    """Instrumentor of LlamaIndex for OpenTelemetry's auto-instrumentation.

    Example:
        >>> LlamaIndexInstrumentor().instrument()
        >>> is_instrumented()
        True
        >>> LlamaIndexInstrumentor().uninstrument()
    """

    dependencies = ("llama-index-core >= 0.14",)
    capture = staticmethod(instrument)
    release = staticmethod(uninstrument)
    is_capturing = staticmethod(is_instrumented)

    @staticmethod
    def configure(**providers: Any) -> None:
        """Call `ragtrace.configure`, which loads the table of settings at the first call."""
        ragtrace.configure(**providers)
