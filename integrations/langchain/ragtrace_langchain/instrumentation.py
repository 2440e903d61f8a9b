"""Global instrumentation: capture every top-level LangChain call without passing a handler.

LangChain hands a config to each call, so a block form does not exist. ``callbacks=[RagtraceHandler(...)]`` captures
one call. ``metadata={"ragtrace.session": ...}`` and ``tags`` describe a request.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler

import ragtrace
from ragtrace.capture import Instrumentor, guarded
from ragtrace_langchain.handler import RagtraceHandler

if TYPE_CHECKING:
    from contextvars import ContextVar

    from ragtrace.capture import Recorder


class _Installed:
    """Stands where LangChain asks a context variable for a handler.

    A variable's default cannot be taken back, and a value set in one context is unknown to other threads.
    """

    def __init__(self) -> None:
        self.handler: RagtraceHandler | None = None
        self.is_registered = False
        self.lock = threading.Lock()

    @guarded
    def get(self) -> RagtraceHandler | None:
        """Return the handler that every call gets now."""
        return self.handler


class _OneOfOurs(type):
    @guarded
    def __instancecheck__(cls, handler: object) -> bool:
        return isinstance(handler, RagtraceHandler)


class _NoHandler(BaseCallbackHandler, metaclass=_OneOfOurs):
    """The class that LangChain is given: a call has one of its own if it has a `RagtraceHandler`.

    LangChain asks for the handler twice, and makes one of this class where another thread has uninstrumented
    between the two: that one takes nothing.
    """


_installed = _Installed()


def instrument(recorder: Recorder | None = None, **defaults: Any) -> None:
    """Capture every top-level LangChain call of this process, in all threads, from now on.

    A second call replaces the arguments of the first; nothing is captured twice. A call that is given a
    `RagtraceHandler` of its own is captured by that one alone. What a request says of itself comes first: its tags,
    and its metadata ``ragtrace.workflow``, ``question``, ``session``, ``user``, ``corpus``, ``corpus_version``,
    ``reference``, ``labels`` and ``k``, each behind ``ragtrace.``. Thread-safe.

    Args:
        recorder: where runs go; default the process's own, as ``ragtrace.configure`` set it up.
        **defaults: what `RagtraceHandler` takes: workflow, session, user, corpus, corpus_version, k, tags, and the
            declarations question, answer, selected, evidence, roots and follows.

    Raises:
        TypeError: an argument that `RagtraceHandler` does not take.
        ConfigError: a declaration is wrong.

    Example:
        >>> instrument(workflow="support")
        >>> is_instrumented()
        True
        >>> uninstrument()
    """
    handler = RagtraceHandler(recorder, **defaults)
    with _installed.lock:
        _installed.handler = handler
        if not _installed.is_registered:  # LangChain has no way to take a hook back: it stays, and gives None
            _register()
            _installed.is_registered = True


def _register() -> None:
    from langchain_core.tracers.context import register_configure_hook  # noqa: PLC0415 - brings in langsmith

    register_configure_hook(cast("ContextVar[Any]", _installed), inheritable=True, handle_class=_NoHandler)


def uninstrument() -> None:
    """Stop capturing calls that are given no handler; runs that are open go on to their end.

    Does nothing when nothing is installed. Thread-safe.
    """
    with _installed.lock:
        _installed.handler = None


def is_instrumented() -> bool:
    """Tell whether `instrument` is in force."""
    return _installed.handler is not None


class LangChainInstrumentor(Instrumentor):
    """Instrumentor of LangChain for OpenTelemetry's auto-instrumentation.

    Example:
        >>> LangChainInstrumentor().instrument()
        >>> is_instrumented()
        True
        >>> LangChainInstrumentor().uninstrument()
    """

    dependencies = ("langchain-core >= 1.0",)
    capture = staticmethod(instrument)
    release = staticmethod(uninstrument)
    is_capturing = staticmethod(is_instrumented)

    @staticmethod
    def configure(**providers: Any) -> None:
        """Call `ragtrace.configure`, which loads the table of settings at the first call."""
        ragtrace.configure(**providers)
