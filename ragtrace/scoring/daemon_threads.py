"""Threads for the scorer's loop that serve it to the very end of the process."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(ThreadPoolExecutor):
    """An executor of daemon threads, the first of them begun at once.

    The standard one takes no work once the interpreter begins to end, and that is before ``atexit`` runs, where the
    last units are scored; from Python 3.12 on no thread begins there either. A judge's name would not be looked up.

    Args:
        most: threads; one more begins when all have work.

    Raises:
        RuntimeError: not even one thread begins.

    Example:
        >>> threads = DaemonThreads(2)
        >>> threads.submit(max, 1, 2).result()
        2
        >>> threads.shutdown()
    """

    def __init__(self, most: int = 32) -> None:
        super().__init__(most)
        self._most = most
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._futures: list[Future[Any]] = []  # not done as of the last call
        self._begun: list[threading.Thread] = []
        self._begin()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a call made; from one thread at a time, as a loop does."""
        future: Future[T] = Future()
        self._calls.put(partial(_made, future, partial(fn, *args, **kwargs)))
        self._futures = [each for each in self._futures if not each.done()] + [future]
        if len(self._begun) < min(len(self._futures), self._most):
            with suppress(RuntimeError):  # the call waits for one of those that are there
                self._begin()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """End the threads when all calls are made."""
        for _ in self._begun:
            self._calls.put(None)
        for thread in self._begun if wait else ():
            thread.join()

    def _begin(self) -> None:
        thread = threading.Thread(target=self._serve, name="ragtrace-scorer-thread", daemon=True)
        thread.start()
        self._begun.append(thread)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # and with it what it holds, before the next wait


def _made(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # whoever asked for the call gets it
        future.set_exception(error)
