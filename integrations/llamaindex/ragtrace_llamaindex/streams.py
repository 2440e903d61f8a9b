"""Watches answers that are read piece by piece, without reading them: to the end, half, or never."""

from __future__ import annotations

from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from ragtrace_llamaindex.tree import Node, Stream

# The node whose stream is being read in this context: a synthesizer calls its model only at the first read, and
# LlamaIndex then knows no parent. Set around each single read, in the reader's own frame.
reading: ContextVar[Node | None] = ContextVar("ragtrace_llamaindex_reading", default=None)


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
        if not self.stream.is_done:
            self.ended(self.stream, GeneratorExit())


def watched(source: Generator[Any, Any, Any], watch: Watch) -> Generator[Any, Any, Any]:
    """Hand on what a generator yields, and note it.

    Example:
        >>> from ragtrace_llamaindex.settings import Settings
        >>> from ragtrace_llamaindex.tree import Node, Stream, Tree
        >>> stream = Stream(Node(Tree(Settings()), None, "query", "q", 0, 0), is_answer=True)
        >>> list(watched(iter("ab"), Watch(stream, lambda stream, error: setattr(stream, "is_done", True))))
        ['a', 'b']
        >>> stream.text, stream.is_done
        ('ab', True)
    """
    stream = watch.stream
    node, take = stream.node, stream.pieces.append
    run = node.tree.run
    try:
        while True:
            token = reading.set(node)
            try:
                piece = next(source)
            except StopIteration as end:
                result = end.value
                break
            finally:
                reading.reset(token)
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
    return result


async def awatched(source: AsyncGenerator[Any, Any], watch: Watch) -> AsyncGenerator[Any, Any]:
    """Hand on what an asynchronous generator yields, and note it."""
    stream = watch.stream
    node, take = stream.node, stream.pieces.append
    run = node.tree.run
    following = source.__anext__
    try:
        while True:
            token = reading.set(node)
            try:
                piece = await following()
            except StopAsyncIteration:
                break
            finally:
                reading.reset(token)
            take(piece)
            if run is not None:
                run.touched = monotonic()  # a stream that flows is not idle
            yield piece
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
