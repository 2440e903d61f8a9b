"""Make calls that read or write files in a thread that runs no event loop."""

from __future__ import annotations

import functools
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

P = ParamSpec("P")
R = TypeVar("R")

_executor: ContextVar[Executor | None] = ContextVar("ragtrace_executor", default=None)


def off_loop(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run in another thread where an event loop runs in the caller's; the caller waits for it.

    Some servers, such as ``langgraph dev``, raise an error at a blocking call on a thread with a running loop. On
    any other thread the function is called as it is. A slow function still stops the caller's loop.

    Example:
        >>> import asyncio
        >>> @off_loop
        ... def name() -> str:
        ...     return threading.current_thread().name
        >>> async def on_a_loop() -> str:
        ...     return name()
        >>> name(), asyncio.run(on_a_loop())
        ('MainThread', 'ragtrace-off-loop')
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_on_loop():
            return function(*args, **kwargs)
        return _made(functools.partial(copy_context().run, function, *args, **kwargs))

    return wrapper


def is_on_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    asyncio = sys.modules.get("asyncio")  # 50 ms to import; who has not imported it runs no loop
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def served_by(executor: Executor) -> Iterator[None]:
    """Have the tasks that begin inside the block use these threads, which serve to the end of the process."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def _made(call: Callable[[], R]) -> R:
    executor = _executor.get()
    done: SimpleQueue[Future[R]] = SimpleQueue()
    if executor is not None:
        executor.submit(call).add_done_callback(done.put)
        return done.get().result()
    try:
        threading.Thread(target=_run, args=(call, done), name="ragtrace-off-loop", daemon=True).start()
    except RuntimeError:  # no thread begins at an interpreter's end
        return call()
    return done.get().result()


def _run(call: Callable[[], Any], done: SimpleQueue[Future[Any]]) -> None:
    future: Future[Any] = Future()
    try:
        future.set_result(call())
    except BaseException as error:  # whoever asked for the call gets it
        future.set_exception(error)
    done.put(future)
