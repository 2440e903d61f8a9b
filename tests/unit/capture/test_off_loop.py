"""Calls that block are made in a thread without an event loop, and a thread without one makes its own."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from ragtrace.capture import is_on_loop, served_by
from ragtrace.capture.off_loop import off_loop
from ragtrace.scoring import DaemonThreads

asker: ContextVar[str] = ContextVar("asker")


@off_loop
def told(*parts: str, end: str = "") -> tuple[str, bool, str]:
    """Return what was given with the context's asker, whether a loop runs here, and the thread's name."""
    return " ".join([*parts, asker.get("nobody")]) + end, is_on_loop(), threading.current_thread().name


async def on_a_loop(*parts: str) -> tuple[str, bool, str]:
    asker.set("ada")
    return told(*parts, end="!")


def test_without_a_loop_the_caller_makes_the_call():
    assert told("asked by", end=".") == ("asked by nobody.", False, threading.current_thread().name)


def test_on_a_loop_another_thread_makes_it_in_the_callers_context():
    assert asyncio.run(on_a_loop("asked by")) == ("asked by ada!", False, "ragtrace-off-loop")


def test_a_loop_that_brings_threads_uses_them():
    threads = DaemonThreads()
    with served_by(threads):
        assert asyncio.run(on_a_loop("asked by")) == ("asked by ada!", False, "ragtrace-scorer-thread")
    threads.shutdown()
    assert asyncio.run(on_a_loop("asked by"))[2] == "ragtrace-off-loop"


@pytest.mark.parametrize("error", [ValueError("no such file"), KeyboardInterrupt()])
@pytest.mark.parametrize("has_threads", [False, True])
def test_an_error_is_the_callers(error, has_threads):
    @off_loop
    def failing() -> None:
        raise error

    async def asks() -> BaseException:
        with pytest.raises(type(error)) as caught:
            failing()
        return caught.value

    threads = DaemonThreads()
    if has_threads:
        with served_by(threads):
            assert asyncio.run(asks()) is error
    else:
        assert asyncio.run(asks()) is error
    threads.shutdown()


def test_where_no_thread_begins_the_caller_makes_the_call(monkeypatch):
    """From Python 3.12 on none begins at the end of a process."""

    def begin_none(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", begin_none)
    assert asyncio.run(on_a_loop("asked by")) == ("asked by ada!", True, threading.current_thread().name)
