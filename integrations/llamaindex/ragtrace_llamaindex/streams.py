"""Streams that an application reads: watched from outside until they are read, left or broken."""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from contextvars import ContextVar
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse
from wrapt import ObjectProxy

from ragtrace.capture import guarded
from ragtrace.capture.events import Event
from ragtrace_llamaindex.calls import said_by
from ragtrace_llamaindex.open_runs import ModelSpan, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator

    from ragtrace_llamaindex.open_runs import OpenRun, OpenSpan


# The stream that is being read in this context: a synthesizer calls its model only at the first read, and then
# LlamaIndex knows no parent. Set around a single read, in the reader's own frame and context: what its thread does
# between two reads, or another task beside them, is not inside it.
reading: ContextVar[Stream | None] = ContextVar("ragtrace_llamaindex_reading", default=None)
_END = object()


class StreamWatch:
    """Held by a reading generator alone: when that is dropped, read or not, this is too, and tells.

    Attributes:
        stream: what is watched.
        ended: called once with the stream and what ended it; None is its end, GeneratorExit a reader that left.
    """

    __slots__ = ("ended", "stream")

    def __init__(self, stream: Stream, ended: Callable[[Stream, BaseException | None], None]) -> None:
        self.stream = stream
        self.ended = ended

    def __del__(self) -> None:
        stream = getattr(self, "stream", None)  # none where the constructor failed
        if stream is not None and not stream.is_done:
            self.ended(stream, GeneratorExit())


class WatchedStream(ObjectProxy):  # type: ignore[type-arg] # generic for type checkers alone
    """Stand in for a generator: it reads through our watch, and has the generator's type, hash and equality.

    Another instrumentation that knows the generator finds its own entry for it (OpenInference looks streams up in a
    dictionary). The synchronous and the asynchronous form are two classes, since others tell them apart by methods.
    """

    # Looked up in C: a chunk costs no further frame.
    __iter__ = property(attrgetter("_self_reader.__iter__"))
    __next__ = property(attrgetter("_self_reader.__next__"))
    send = property(attrgetter("_self_reader.send"))
    throw = property(attrgetter("_self_reader.throw"))
    close = property(attrgetter("_self_reader.close"))

    def __init__(self, source: Iterator[object], watch: StreamWatch) -> None:
        super().__init__(source)
        self._self_reader = watched(source, watch)


class WatchedAsyncStream(ObjectProxy):  # type: ignore[type-arg] # generic for type checkers alone
    """Stand in for an asynchronous generator; see `WatchedStream`."""

    __aiter__ = property(attrgetter("_self_reader.__aiter__"))
    __anext__ = property(attrgetter("_self_reader.__anext__"))
    asend = property(attrgetter("_self_reader.asend"))
    athrow = property(attrgetter("_self_reader.athrow"))
    aclose = property(attrgetter("_self_reader.aclose"))

    def __init__(self, source: AsyncGenerator[object, object], watch: StreamWatch) -> None:
        super().__init__(source)
        self._self_reader = awatched(source, watch)


def watched(source: Iterator[object], watch: StreamWatch) -> Generator[object, object, None]:
    """Hand on what a generator yields, and note it.

    Example:
        >>> from ragtrace.capture import Defaults
        >>> from ragtrace_llamaindex.open_runs import OpenRun, OpenSpan, Stream
        >>> stream = Stream(OpenSpan(OpenRun(Defaults()), None, "query", "q", 0, 0), is_answer=True)
        >>> watch = StreamWatch(stream, lambda stream, error: setattr(stream, "is_done", True))
        >>> list(watched(iter("ab"), watch))
        ['a', 'b']
        >>> stream.text, stream.is_done
        ('ab', True)
    """
    stream = watch.stream
    take, run = stream.pieces.append, stream.span.state.run
    try:
        while True:
            token = reading.set(stream)
            try:
                piece = next(source, _END)
            finally:
                reading.reset(token)
            if piece is _END:
                break
            take(piece)
            if run is not None:
                run.last_activity = monotonic()  # a stream that flows is not idle
            yield piece
    except GeneratorExit as error:
        close = getattr(source, "close", None)
        if close is not None:
            close()
        watch.ended(stream, error)
        raise
    except BaseException as error:
        watch.ended(stream, error)
        raise
    watch.ended(stream, None)


async def awatched(source: AsyncGenerator[object, object], watch: StreamWatch) -> AsyncGenerator[object, object]:
    """Hand on what an asynchronous generator yields, and note it."""
    stream = watch.stream
    take, run = stream.pieces.append, stream.span.state.run
    following = source.__anext__
    try:
        while True:
            token = reading.set(stream)
            try:
                piece = await following()
            finally:
                with suppress(ValueError):  # a task that is thrown away in the middle of a read ends in any context
                    reading.reset(token)
            take(piece)
            if run is not None:
                run.last_activity = monotonic()  # a stream that flows is not idle
            yield piece
    except StopAsyncIteration:
        pass
    except GeneratorExit as error:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
        watch.ended(stream, error)
        raise
    except BaseException as error:
        watch.ended(stream, error)
        raise
    watch.ended(stream, None)


class OpenStreams:
    """The streams of all of a process's runs that are read now.

    Attributes:
        takers: what takes a model's pieces, by the call's span.
        lazy: model calls by the model and what it was asked: its work may begin at the first read.

    Args:
        over: called with a tree whose root has returned, once what was left to read is read.
    """

    def __init__(self, over: Callable[[OpenRun], None]) -> None:
        self.takers: dict[str | None, Callable[..., None]] = {}
        self.lazy: dict[tuple[int, int], ModelSpan] = {}
        self._over = over

    def forget(self, state: OpenRun) -> None:
        """Wait for nothing more of a tree."""
        for stream in list(state.streams):
            self._let_go(stream)
        state.streams.clear()

    @guarded
    def watch_answer(self, span: OpenSpan, response: Any) -> None:
        """Wait for an answer that is read piece by piece."""
        source = response.response_gen
        if type(source) in {WatchedStream, WatchedAsyncStream} or response.response_txt:
            return
        watch_stream = _watcher_of(response, source)
        if watch_stream is None:
            return
        stream = Stream(span, is_answer=True)
        span.state.streams.add(stream)
        response.response_gen = watch_stream(source, StreamWatch(stream, self.ended))

    @guarded
    def watch_call(self, span: ModelSpan, generator: object) -> None:
        """Wait for a model's stream; that it is dropped unread is told by the generator itself."""
        stream = span.stream = Stream(span, is_answer=False)
        span.state.streams.add(stream)

        answer = span.read_through
        if answer is not None and not answer.is_fed:
            answer.is_fed = True
            stream.feeds = (answer, len(answer.pieces))

        def take_first(piece: object) -> None:
            span.first_chunk_ns = time.time_ns()
            stream.pieces.append(piece)
            if stream.feeds is None:
                self.takers[span.id] = stream.pieces.append  # the rest costs an append
            else:
                self.takers.pop(span.id, None)  # or nothing: the answer has them

        self.takers[span.id] = take_first
        stream.watch = weakref.ref(generator, lambda _gone: self.ended(stream, GeneratorExit()))
        if span.lazy_key is not None:
            self.lazy[span.lazy_key] = span

    def _let_go(self, stream: Stream) -> None:
        stream.is_done = True
        stream.watch = None
        span = stream.span
        if isinstance(span, ModelSpan) and not stream.is_answer:
            self.takers.pop(span.id, None)
            if stream.feeds is not None:
                stream.feeds[0].is_fed = False
            if span.lazy_key is not None:
                self.lazy.pop(span.lazy_key, None)

    @guarded
    def ended(self, stream: Stream, error: BaseException | None, response: object = None) -> None:
        """Take the end of a stream: read to its end, left by its reader, or broken by an error."""
        if _is_over(stream):  # asked before the lock too: who ends the run may wait for one that this thread holds
            return
        state = stream.span.state
        with state.lock:  # whoever ends the run meanwhile waits for what this stream has said
            if _is_over(stream):
                return
            state.streams.discard(stream)
            self._let_go(stream)
            is_over = self._record_end(stream, error, response)
        if is_over:
            self._over(state)

    def _record_end(self, stream: Stream, error: BaseException | None, response: object) -> bool:
        """Report what was read, and tell whether nothing is left to wait for."""
        span = stream.span
        state = span.state
        is_answering = any(one.is_answer for one in list(state.streams))
        if state.is_waiting and isinstance(error, GeneratorExit):
            # Where an answer is read, that decides, and not the model's stream behind it.
            state.is_partial = state.is_partial or stream.is_answer or not is_answering
        elif state.is_waiting and error is not None:
            state.error = error
        elif not stream.is_answer:
            state.broken = error
        if isinstance(span, ModelSpan) and not stream.is_answer:
            end_model_call(span, response, error)
        else:
            self._record_answer(stream, error)
        # An answer that is read is the end, whatever a model's generator may still hold.
        is_open = is_answering if stream.is_answer else bool(state.streams)
        return state.is_waiting and not is_open

    def _record_answer(self, stream: Stream, error: BaseException | None) -> None:
        state = stream.span.state
        state.add(Event("answer", data=stream.text))
        for inner in list(state.streams):  # nobody reads on in what was read through it
            if isinstance(inner.span, ModelSpan) and inner.span.read_through is stream:
                state.streams.discard(inner)
                self._let_go(inner)
                end_model_call(inner.span, None, error)


@guarded
def end_model_call(span: ModelSpan, response: object, error: BaseException | None) -> None:
    """Tell the end of a model call, with what it said by then."""
    run = span.state.run
    if run is not None:
        span.ends(said_by(span, response), run.failure_of(error))


def _watcher_of(response: object, source: object) -> type[WatchedStream | WatchedAsyncStream] | None:
    """Return the class that reads an answer's stream as its response does; None for no iterator.

    A proxy of another instrumentation may have both protocols, so the response's type decides.
    """
    is_sync, is_async = hasattr(source, "__next__"), hasattr(source, "__anext__")
    if is_sync and is_async:
        is_async = isinstance(response, AsyncStreamingResponse)
    if is_async:
        return WatchedAsyncStream
    return WatchedStream if is_sync else None


def _is_over(stream: Stream) -> bool:
    """Tell whether nothing of a stream is wanted any more."""
    stream.is_done = stream.is_done or stream.span.state.is_ended
    return stream.is_done
