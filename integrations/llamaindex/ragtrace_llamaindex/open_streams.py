"""What is still being read: answers, and models' replies, until their readers are done with them."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse

from ragtrace.capture import guarded
from ragtrace_llamaindex.calls import report_call
from ragtrace_llamaindex.streams import Watch, WatchedAsyncStream, WatchedStream
from ragtrace_llamaindex.tree import ModelCall, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace_llamaindex.tree import Node, Tree


class OpenStreams:
    """The streams of all of a process's runs that are read now.

    Attributes:
        takers: what takes a model's pieces, by the call's span.
        lazy: model calls by the model and what it was asked: its work may begin at the first read.

    Args:
        over: called with a tree whose root has returned, once what was left to read is read.
    """

    def __init__(self, over: Callable[[Tree], None]) -> None:
        self.takers: dict[str, Callable[[Any], None]] = {}
        self.lazy: dict[tuple[int, int], ModelCall] = {}
        self._over = over

    def forget(self, tree: Tree) -> None:
        """Wait for nothing more of a tree."""
        for stream in list(tree.streams):
            self._let_go(stream)
        tree.streams.clear()

    @guarded
    def watch_answer(self, node: Node, response: Any) -> None:
        """Wait for an answer that is read piece by piece."""
        source = response.response_gen
        if type(source) in {WatchedStream, WatchedAsyncStream} or response.response_txt:
            return
        watch_stream = _watcher_of(response, source)
        if watch_stream is None:
            return
        stream = Stream(node, is_answer=True)
        node.tree.streams.add(stream)
        response.response_gen = watch_stream(source, Watch(stream, self.ended))

    @guarded
    def watch_call(self, node: ModelCall, generator: Any) -> None:
        """Wait for a model's stream; that it is dropped unread is told by the generator itself."""
        stream = node.stream = Stream(node, is_answer=False)
        node.tree.streams.add(stream)

        answer = node.read_through
        if answer is not None and not answer.is_fed:
            answer.is_fed = True
            stream.feeds = (answer, len(answer.pieces))

        def take_first(piece: Any) -> None:
            node.first_chunk_ns = time.time_ns()
            stream.pieces.append(piece)
            if stream.feeds is None:
                self.takers[node.id] = stream.pieces.append  # the rest costs an append
            else:
                self.takers.pop(node.id, None)  # or nothing: the answer has them

        self.takers[node.id] = take_first
        stream.watch = weakref.ref(generator, lambda _gone: self.ended(stream, GeneratorExit()))
        if node.lazy_key is not None:
            self.lazy[node.lazy_key] = node

    def _let_go(self, stream: Stream) -> None:
        stream.is_done = True
        stream.watch = None
        node = stream.node
        if isinstance(node, ModelCall) and not stream.is_answer:
            self.takers.pop(node.id, None)
            if stream.feeds is not None:
                stream.feeds[0].is_fed = False
            if node.lazy_key is not None:
                self.lazy.pop(node.lazy_key, None)

    @guarded
    def ended(self, stream: Stream, error: BaseException | None, response: Any = None) -> None:
        """Take the end of a stream: read to its end, left by its reader, or broken by an error."""
        if _is_over(stream):  # asked before the lock too: who ends the run may wait for one that this thread holds
            return
        tree = stream.node.tree
        with tree.lock:  # whoever ends the run meanwhile waits for what this stream has said
            if _is_over(stream):
                return
            tree.streams.discard(stream)
            self._let_go(stream)
            is_over = self._take_end(stream, error, response)
        if is_over:
            self._over(tree)

    def _take_end(self, stream: Stream, error: BaseException | None, response: Any) -> bool:
        """Report what was read, and tell whether nothing is left to wait for."""
        node = stream.node
        tree = node.tree
        is_answering = any(one.is_answer for one in list(tree.streams))
        if tree.is_waiting and isinstance(error, GeneratorExit):
            # Where an answer is read, that decides, and not the model's stream behind it.
            tree.is_partial = tree.is_partial or stream.is_answer or not is_answering
        elif tree.is_waiting and error is not None:
            tree.error = error
        if isinstance(node, ModelCall) and not stream.is_answer:
            report_call(node, response, error, time.time_ns())
        else:
            self._answer_read(stream, error)
        # An answer that is read is the end, whatever a model's generator may still hold.
        is_open = is_answering if stream.is_answer else bool(tree.streams)
        return tree.is_waiting and not is_open

    def _answer_read(self, stream: Stream, error: BaseException | None) -> None:
        tree = stream.node.tree
        tree.answer = stream.text
        for inner in list(tree.streams):  # nobody reads on in what was read through it
            if isinstance(inner.node, ModelCall) and inner.node.read_through is stream:
                tree.streams.discard(inner)
                self._let_go(inner)
                report_call(inner.node, None, error, time.time_ns())


def _watcher_of(response: Any, source: Any) -> Callable[[Any, Watch], Any] | None:
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
    stream.is_done = stream.is_done or stream.node.tree.is_ended
    return stream.is_done
