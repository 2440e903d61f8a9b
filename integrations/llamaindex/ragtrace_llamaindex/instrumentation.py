"""Global instrumentation: put the handlers on LlamaIndex's root dispatcher, and take them off."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation import get_dispatcher

import ragtrace
from ragtrace.capture import Defaults, Instrumentor, guarded, guarded_constructor
from ragtrace_llamaindex.handlers import RagtraceEventHandler, RagtraceSpanHandler
from ragtrace_llamaindex.request import holder, inside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextvars import Token
    from types import TracebackType

    from ragtrace.capture import Recorder


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

    Raises:
        TypeError: an argument that there is not.

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
