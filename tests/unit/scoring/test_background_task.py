"""Work beside the scorer's jobs: when it begins, that it is alone, and how it ends."""

from __future__ import annotations

import asyncio

from ragtrace.scoring import BackgroundTask


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


class Work:
    """Counts its begins, and waits until it is let go."""

    def __init__(self):
        self.begun, self.let_go = 0, asyncio.Event()

    async def __call__(self):
        self.begun += 1
        await self.let_go.wait()


async def ticks(background, n=3):
    for _ in range(n):
        background.tick()
        await asyncio.sleep(0)


async def test_it_begins_when_it_is_due_and_is_alone():
    clock, work = Clock(), Work()
    background = BackgroundTask(work, first_after_s=10.0, clock=clock)
    await ticks(background)
    assert (work.begun, background.is_under_way) == (0, False)
    clock.now += 10.0
    await ticks(background)
    assert (work.begun, background.is_under_way) == (1, True)
    work.let_go.set()
    await background.task
    await ticks(background, 1)
    assert work.begun == 2


async def test_the_next_run_waits_as_long_as_it_was_told():
    clock, work = Clock(), Work()
    work.let_go.set()
    background = BackgroundTask(work, again_after_s=100.0, clock=clock)
    await ticks(background)
    assert work.begun == 1
    clock.now += 100.0
    await ticks(background)
    assert work.begun == 2
    background.postpone(7.0)
    clock.now += 6.9
    await ticks(background)
    assert work.begun == 2
    clock.now += 0.1
    await ticks(background)
    assert work.begun == 3


async def test_closing_cancels_a_run_and_waits_for_its_end():
    ended = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    background = BackgroundTask(work)
    await background.aclose()
    await ticks(background, 1)
    await background.aclose()
    assert (background.is_under_way, ended) == (False, [1])
