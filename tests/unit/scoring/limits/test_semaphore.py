"""Places for calls: in order, never too many, none lost to a cancellation or a loop that ended."""

from __future__ import annotations

import asyncio
import gc
import threading

from ragtrace.scoring.limits.semaphore import Slots


async def turns(n: int = 20) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


async def test_first_come_first_served_and_never_more_than_allowed() -> None:
    slots, order, most = Slots(2), [], 0

    async def call(name: int) -> None:
        nonlocal most
        await slots.enter()
        most = max(most, slots.under_way)
        order.append(name)
        await turns(3)
        slots.leave()

    await asyncio.gather(*(call(i) for i in range(10)))
    assert (order, most, slots.under_way) == (list(range(10)), 2, 0)


async def test_a_lower_limit_lets_in_nobody_until_enough_have_left() -> None:
    slots = Slots(4)
    for _ in range(4):
        await slots.enter()
    waiting = asyncio.create_task(slots.enter())
    await turns()
    for _ in range(3):
        slots.leave(allowed=1)
        await turns()
        assert not waiting.done()
    slots.leave(allowed=1)
    await waiting
    assert slots.under_way == 1


async def test_a_cancelled_waiter_takes_no_place() -> None:
    slots = Slots(1)
    await slots.enter()
    first, second = asyncio.create_task(slots.enter()), asyncio.create_task(slots.enter())
    await turns()
    first.cancel()
    await turns()
    slots.leave()
    await second
    assert slots.under_way == 1


async def test_a_waiter_cancelled_as_it_is_let_in_passes_its_place_on() -> None:
    slots = Slots(1)
    await slots.enter()
    first, second = asyncio.create_task(slots.enter()), asyncio.create_task(slots.enter())
    await turns()
    slots.leave()  # given to the first, which has not run yet
    first.cancel()
    await asyncio.wait_for(second, 5)
    assert slots.under_way == 1


def test_a_waiter_whose_loop_has_ended_takes_no_place() -> None:
    slots = Slots(1)

    asyncio.run(slots.enter())
    loop = asyncio.new_event_loop()
    place = loop.create_future()
    slots._waiting.append(place)
    loop.close()
    slots.leave()
    assert slots.under_way == 0
    asyncio.run(asyncio.wait_for(slots.enter(), 5))


def test_loops_of_two_threads_share_the_places() -> None:
    slots, seen, lock = Slots(3), [], threading.Lock()

    async def call() -> None:
        await slots.enter()
        with lock:
            seen.append(slots.under_way)
        await asyncio.sleep(0)
        slots.leave()

    async def many() -> None:
        await asyncio.wait_for(asyncio.gather(*(call() for _ in range(100))), 30)

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 200
    assert max(seen) <= 3
    assert slots.under_way == 0


def test_a_place_given_to_a_loop_that_never_turns_again_comes_back() -> None:
    slots = Slots(1)
    asyncio.run(slots.enter())
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(slots.enter())
    loop.run_until_complete(turns())
    slots.leave()
    loop.close()
    del waiting
    gc.collect()
    assert slots.under_way == 0
    asyncio.run(asyncio.wait_for(slots.enter(), 5))


def test_a_place_given_back_by_a_finaliser_inside_an_entry_is_taken() -> None:
    """The garbage collector may run where a future is made, and there end a call that its loop left behind."""
    slots, entered = Slots(1), []

    async def enter() -> None:
        await slots.enter()
        loop = asyncio.get_running_loop()
        made = loop.create_future

        def create_future() -> asyncio.Future[None]:
            loop.create_future = made  # type: ignore[method-assign]
            slots.leave()
            return made()

        loop.create_future = create_future  # type: ignore[method-assign]
        await slots.enter()
        entered.append(slots.under_way)

    thread = threading.Thread(target=lambda: asyncio.run(enter()), daemon=True)
    thread.start()
    thread.join(10)
    assert entered == [1]


def test_who_was_passed_over_as_its_loop_had_ended_gives_nothing_back() -> None:
    slots = Slots(1)
    asyncio.run(slots.enter())
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(slots.enter())
    loop.run_until_complete(turns())
    loop.close()
    slots.leave()
    assert slots.under_way == 0
    del waiting
    gc.collect()
    assert slots.under_way == 0
