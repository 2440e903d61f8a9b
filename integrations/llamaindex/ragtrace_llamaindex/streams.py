"""Watches answers that are read piece by piece, without reading them: to the end, half, or never."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

from wrapt import ObjectProxy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from ragtrace_llamaindex.tree import Stream

# The stream that is being read in this context: a synthesizer calls its model only at the first read, and then
# LlamaIndex knows no parent. Set around a single read, in the reader's own frame and context: what its thread does
# between two reads, or another task beside them, is not inside it.
reading: ContextVar[Stream | None] = ContextVar("ragtrace_llamaindex_reading", default=None)
_END = object()


class Watch:
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

    def __init__(self, source: Generator[Any, Any, Any], watch: Watch) -> None:
        super().__init__(source)
        self._self_reader = watched(source, watch)


class WatchedAsyncStream(ObjectProxy):  # type: ignore[type-arg] # generic for type checkers alone
    """Stand in for an asynchronous generator; see `WatchedStream`."""

    __aiter__ = property(attrgetter("_self_reader.__aiter__"))
    __anext__ = property(attrgetter("_self_reader.__anext__"))
    asend = property(attrgetter("_self_reader.asend"))
    athrow = property(attrgetter("_self_reader.athrow"))
    aclose = property(attrgetter("_self_reader.aclose"))

    def __init__(self, source: AsyncGenerator[Any, Any], watch: Watch) -> None:
        super().__init__(source)
        self._self_reader = awatched(source, watch)


def watched(source: Generator[Any, Any, Any], watch: Watch) -> Generator[Any, Any, None]:
    """Hand on what a generator yields, and note it.

    Example:
        >>> from ragtrace.capture import Defaults
        >>> from ragtrace_llamaindex.tree import Node, Stream, Tree
        >>> stream = Stream(Node(Tree(Defaults()), None, "query", "q", 0, 0), is_answer=True)
        >>> list(watched(iter("ab"), Watch(stream, lambda stream, error: setattr(stream, "is_done", True))))
        ['a', 'b']
        >>> stream.text, stream.is_done
        ('ab', True)
    """
    stream = watch.stream
    take, run = stream.pieces.append, stream.node.tree.run
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
                run.touched = monotonic()  # a stream that flows is not idle
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


async def awatched(source: AsyncGenerator[Any, Any], watch: Watch) -> AsyncGenerator[Any, Any]:
    """Hand on what an asynchronous generator yields, and note it."""
    stream = watch.stream
    take, run = stream.pieces.append, stream.node.tree.run
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
                run.touched = monotonic()  # a stream that flows is not idle
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
