"""The background scorer: one thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING

from ragtrace.capture import lost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ragtrace.queues import Queue, Unit
    from ragtrace.scoring.ledger import End, Ledger

_log = logging.getLogger("ragtrace")
SWEEP_EVERY_S = 1.0
RETRY_S = 0.05  # after an error of our own, so that a lasting one does not spin


class Worker:
    """Takes units from a queue and handles a bounded number of them at once, in a daemon thread.

    The thread starts with `start` or the first unit. A handler that raises is logged, counted as ``failed`` in
    the ledger, and does not stop the others.

    Args:
        queue: where units come from.
        handle: scores and publishes one unit.
        ledger: is told of every end.
        concurrency: most units under way at once.
        sweep: called about once a second from the thread while it runs.
        close: awaited once when the thread ends.
    """

    def __init__(
        self,
        queue: Queue,
        handle: Callable[[Unit], Awaitable[None]],
        ledger: Ledger,
        *,
        concurrency: int = 8,
        sweep: Callable[[], None] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._ledger = ledger
        self._concurrency = concurrency
        self._sweep = sweep
        self._close = close
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake: asyncio.Event | None = None
        self._is_stopping = False
        self._is_draining = True
        self._swept_at = time.monotonic()
        queue.on_put(self.wake)

    @property
    def is_begun(self) -> bool:
        """Whether the thread was ever started."""
        return self._thread is not None

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread, once; a stopped worker stays stopped."""
        with self._lock:
            if self._thread is None and not self._is_stopping:
                self._thread = threading.Thread(target=self._run, name="ragtrace-scorer", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Tell the thread that there is work; called from any thread, starts it at first."""
        if self._thread is None:
            self.start()
        loop, awake = self._loop, self._awake
        if loop is not None and awake is not None and not awake.is_set():
            try:
                loop.call_soon_threadsafe(awake.set)
            except RuntimeError:  # the loop has just closed; `stop` accounts for what is left in the queue
                return

    def stop(self, timeout_s: float, *, drain: bool = True) -> bool:
        """End the thread; with `drain` what is queued is handled first. False when the time is over first."""
        with self._lock:
            self._is_stopping = True
            self._is_draining = drain
            thread = self._thread
        if thread is None:
            return True
        self.wake()
        thread.join(max(timeout_s, 0.0))
        if not thread.is_alive():
            return True
        self._is_draining = False
        self.wake()
        return False

    def _run(self) -> None:
        """Run the loop until it is stopped; a defect of ours that ends it is counted, and it begins anew."""
        while True:
            try:
                asyncio.run(self._main())
            except Exception as error:
                lost("ragtrace.scoring.worker", error)
                _log.exception("the scorer's loop ended by an error and begins anew")
                if self._is_stopping:
                    return
                time.sleep(RETRY_S)
            else:
                return

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._awake = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        while not await self._turn(tasks):
            pass
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._close is not None:
            await self._close()

    async def _turn(self, tasks: set[asyncio.Task[None]]) -> bool:
        """Take what there is, then rest; return whether it is time to end. A defect of ours ends no thread."""
        try:
            if self._awake is not None:
                self._awake.clear()
            self._fill(tasks)
            if self._is_done(tasks):
                return True
            await self._rest(tasks)
            if time.monotonic() - self._swept_at >= SWEEP_EVERY_S:
                self._swept_at = time.monotonic()
                self._swept()
        except Exception as error:
            lost("ragtrace.scoring.worker.turn", error)
            await asyncio.sleep(RETRY_S)
            return self._is_stopping
        return False

    def _is_done(self, tasks: set[asyncio.Task[None]]) -> bool:
        if not self._is_stopping:
            return False
        return not self._is_draining or (not tasks and self._queue.size == 0)

    def _swept(self) -> None:
        try:
            if self._sweep is not None:
                self._sweep()
        except Exception as error:
            lost("ragtrace.scoring.worker.sweep", error)

    def _fill(self, tasks: set[asyncio.Task[None]]) -> None:
        tasks.difference_update([task for task in tasks if task.done()])
        while len(tasks) < self._concurrency and not (self._is_stopping and not self._is_draining):
            unit = self._queue.take()
            if unit is None:
                return
            tasks.add(asyncio.create_task(self._one(unit)))

    async def _rest(self, tasks: set[asyncio.Task[None]]) -> None:
        """Sleep until a unit comes, a task ends or it is time to sweep."""
        if self._awake is None:
            return
        waiter = asyncio.create_task(self._awake.wait())
        await asyncio.wait({waiter, *tasks}, timeout=SWEEP_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()

    async def _one(self, unit: Unit) -> None:
        state: End = "scored"
        reason = ""
        try:
            await self._handle(unit)
        except asyncio.CancelledError:
            state, reason = "dropped", "shutdown"
            raise
        except Exception as error:
            state, reason = "failed", type(error).__name__
            lost("ragtrace.scoring.worker.handle", error)
            _log.exception("a unit could not be scored")
        finally:
            try:
                self._ledger.end(state, reason)
            except Exception as error:  # an account that is not kept is a loss too, and must not pass unseen
                lost("ragtrace.scoring.worker.ledger", error)
