"""The scorer's own threads: what a loop asks is made, side by side, and never more than are allowed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ragtrace.scoring import DaemonThreads


def test_calls_are_made_side_by_side_in_daemon_threads_up_to_the_bound():
    threads = DaemonThreads(3)
    met = threading.Barrier(3)
    asked = [threads.submit(met.wait, 30) for _ in range(6)]  # three at a time pass, and fewer never would
    assert sorted(future.result(30) for future in asked) == [0, 0, 1, 1, 2, 2]
    ours = [thread for thread in threading.enumerate() if thread.name == "ragtrace-scorer-thread"]
    assert len(ours) == 3
    assert all(thread.daemon for thread in ours)
    threads.shutdown()
    assert not any(thread.is_alive() for thread in ours)


def test_one_thread_serves_calls_that_come_one_after_another():
    threads = DaemonThreads()
    assert len({threads.submit(threading.get_ident).result(30) for _ in range(20)}) == 1
    threads.shutdown()


def test_where_no_further_thread_begins_the_first_makes_every_call(monkeypatch):
    threads = DaemonThreads()

    def begin_none(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", begin_none)
    asked = [threads.submit(threading.get_ident) for _ in range(20)]
    assert len({future.result(30) for future in asked}) == 1
    threads.shutdown()


def test_a_loop_gets_values_and_errors_and_may_give_up():
    threads = DaemonThreads(1)
    held = threading.Event()

    async def ask():
        asyncio.get_running_loop().set_default_executor(threads)
        assert await asyncio.to_thread(max, 1, 2) == 2
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)
        first = asyncio.create_task(asyncio.to_thread(held.wait, 30))
        second = asyncio.create_task(asyncio.to_thread(pytest.fail, "it was given up before its turn"))
        await asyncio.sleep(0)
        second.cancel()
        held.set()
        assert await first
        with pytest.raises(asyncio.CancelledError):
            await second

    asyncio.run(ask())
