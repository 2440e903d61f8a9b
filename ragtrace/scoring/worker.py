"""The background scorer: one thread with an event loop of its own.

The loop runs while jobs are scored and while nothing is to be done. Between two runs of it the same thread leases,
writes, acks and publishes: SQLite blocks, and some servers forbid that on a thread whose loop runs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, record_internal_error
from ragtrace.capture.guard import log_failure
from ragtrace.capture.off_loop import served_by
from ragtrace.capture.suppression import own_work
from ragtrace.model.printable import count_text
from ragtrace.scoring.daemon_threads import DaemonThreads

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable, Sequence

    from ragtrace.model import End, Score
    from ragtrace.queues import Job, Queue, Unit

_log = logging.getLogger("ragtrace")
SWEEP_EVERY_S = 1.0
FAILED_S = 5.0  # before a job is tried again after an internal error; the fifth time it is dead
WARN_EVERY_S = 60.0
_CANCEL_S = 0.2  # a judge that hangs lets go at once
RETRY_S = 0.05  # after an internal error, so that a lasting one does not spin


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a job, or its delay, with the calls that write and publish its scores.

    Attributes:
        state: how it ends.
        reason: the cause, where the state does not tell it.
        retry_in_s: give it back instead, due in so many seconds.
        is_spared: a retry that counts no attempt, for want of budget or judge.
        scores: what was found before the job was given back; none where nobody was asked.
        write: writes the scores where `also` cannot; runs before the end, so that no scored job lacks its scores.
        also: written in the transaction of the end, in a queue that has one.
        then: publishes the scores, once the end is written and if the lease still holds.
    """

    state: End = "scored"
    reason: str = ""
    retry_in_s: float | None = None
    is_spared: bool = False
    scores: Sequence[Score] = ()
    write: Callable[[], None] | None = None
    also: Callable[[sqlite3.Connection], None] | None = None
    then: Callable[[], None] | None = None


class Worker:
    """Takes jobs from a queue and handles a bounded number of them at once, in a daemon thread.

    The thread starts with `begin` or the first unit. A handler that raises is logged, ends its job as ``failed``
    (in a shared queue it is tried again first), and does not stop the others. A job whose lease was lost is not
    published: another scorer has it. While scores cannot be written (disk full, read-only, locked) the jobs that
    have them wait in memory, with their leases, and are tried again about once a second; no further job is taken.

    Args:
        queue: where jobs come from.
        handle: scores one job.
        concurrency: most units under way at once.
        missed: counts the scores of a unit as missing, before its job is given back or ends as ``failed``; returns
            the unit with what was counted.
        sweep: called about once a second from the thread while it runs, off its loop: it may block.
        tick: called as often on its loop: it may begin tasks.
        close: awaited once when the thread ends.
    """

    def __init__(
        self,
        queue: Queue,
        handle: Callable[[Job], Awaitable[Outcome]],
        *,
        concurrency: int = 8,
        missed: Callable[[Unit, Outcome], Unit] | None = None,
        sweep: Callable[[], None] | None = None,
        tick: Callable[[], None] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._held: dict[asyncio.Task[Outcome], Job] = {}
        self._unwritten: deque[tuple[Job, Outcome]] = deque()
        self._unwritten_because = ""
        self._warned_at, self._has_warned = -WARN_EVERY_S, False
        self._concurrency = concurrency
        self._missed = missed
        self._sweep = sweep
        self._tick = tick
        self._close = close
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake = asyncio.Event()  # of its loop
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._is_stopping = False
        self._is_draining = True
        self._swept_at = time.monotonic()
        self.turned_at_s = time.monotonic()  # of its loop, for a health check
        self.moved_at_s = time.monotonic()  # a job ended or went back, or none was due
        self.postponed_for = ""  # the reason of the last outcome that gave a job back
        queue.on_put(self.wake)

    @property
    def is_begun(self) -> bool:
        """True once the thread was started."""
        return self._thread is not None

    @property
    def is_alive(self) -> bool:
        """True while the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_idle(self) -> bool:
        """True when no job is under way, and none waits to be written."""
        return not (self._held or self._unwritten)

    @property
    def unwritten(self) -> tuple[int, str]:
        """Scored jobs that could not be written so far, and why."""
        return sum(outcome.retry_in_s is None for _, outcome in list(self._unwritten)), self._unwritten_because

    def begin(self) -> None:
        """Start the thread, once, and never raise; a stopped worker stays stopped. Called with every run."""
        if self._thread is None:
            self._begin()

    @guarded
    def _begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_stopping:
                self.turned_at_s = self.moved_at_s = time.monotonic()
                # Its loop's threads begin here: a script may be at its end before the scorer's thread has a turn.
                thread = threading.Thread(
                    target=self._run, args=(DaemonThreads(),), name="ragtrace-scorer", daemon=True
                )
                thread.start()
                self._thread = thread

    def wake(self) -> None:
        """Tell the thread that there is work; called from any thread, starts it at first."""
        self.begin()
        if self._loop is not None and not self._awake.is_set():
            with suppress(RuntimeError):  # the loop has just closed; `stop` accounts for what is left in the queue
                self._loop.call_soon_threadsafe(self._awake.set)

    def call_soon(self, call: Callable[[], object]) -> None:
        """Have the thread make a call between two jobs, off its loop; nothing is called while it does not run."""
        if self.is_alive:
            self._calls.put(call)
            self.wake()

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
        thread.join(_CANCEL_S)
        return False

    def _run(self, threads: DaemonThreads | None) -> None:
        """Run the loop until it is stopped; an internal error is counted, and the loop begins anew."""
        while True:
            try:
                threads = threads or DaemonThreads()
                # Runs of a judge or a sink built on a captured framework are not scored.
                with own_work(), served_by(threads):
                    self._run_loop(threads)
            except Exception as error:
                record_internal_error("ragtrace.scoring.worker", error)
                log_failure("the scorer's loop ended by an error and begins anew", error)
                if self._is_stopping:
                    return
                time.sleep(RETRY_S)
                threads = None  # they ended with the loop
            else:
                return

    def _run_loop(self, threads: DaemonThreads) -> None:
        """Run a loop to its end; `asyncio.run` would begin a thread at its end, which fails in ``atexit``."""
        loop = asyncio.new_event_loop()
        loop.set_default_executor(threads)
        try:
            self._main(loop)
        finally:
            loop.run_until_complete(_end_tasks())
            loop.close()

    def _main(self, loop: asyncio.AbstractEventLoop) -> None:
        self._awake = asyncio.Event()  # first: `wake` looks for the loop
        self._loop = loop
        while not self._turn(loop):
            pass
        for task in self._held:
            task.cancel()
        if self._held:
            loop.run_until_complete(asyncio.wait(self._held))
        self._settle()
        self._give_up_unwritten()
        if self._close is not None:
            loop.run_until_complete(self._close())

    def _turn(self, loop: asyncio.AbstractEventLoop) -> bool:
        """End jobs, lease due ones, run the loop; return whether to end. An internal error ends no thread."""
        self.turned_at_s = time.monotonic()
        try:
            self._awake.clear()
            while not self._calls.empty():
                self._calls.get()()
            self._settle()
            self._fill(loop)
            if self._is_done():
                return True
            loop.run_until_complete(self._rest(self._rest_s()))
            if time.monotonic() - self._swept_at >= SWEEP_EVERY_S:
                self._swept_at = time.monotonic()
                self._swept()
                if self._tick is not None:
                    loop.call_soon(self._tick)
        except Exception as error:
            record_internal_error("ragtrace.scoring.worker.turn", error)
            loop.run_until_complete(asyncio.sleep(RETRY_S))
            return self._is_stopping
        return False

    def _is_done(self) -> bool:
        if not self._is_stopping:
            return False
        if not self._is_draining or self._held:
            return not self._is_draining
        return self._queue.is_shared or self._queue.next_due_s() is None or not self._write_again()

    def _swept(self) -> None:
        try:
            self._queue.heartbeat([*self._held.values(), *(job for job, _ in self._unwritten)])
            self._queue.requeue_expired()
            self._write_again()
            if self._sweep is not None:
                self._sweep()
        except Exception as error:
            record_internal_error("ragtrace.scoring.worker.sweep", error)

    def _fill(self, loop: asyncio.AbstractEventLoop) -> None:
        # Units of a shared queue outlive this process: a stop finishes only those under way.
        if self._is_stopping and (not self._is_draining or self._queue.is_shared):
            return
        # While scores cannot be written, no new ones could be either.
        room = 0 if self._unwritten else self._concurrency - len(self._held)
        for job in self._queue.lease(room):
            self._held[loop.create_task(self._scored(job))] = job

    def _rest_s(self) -> float:
        """Return the seconds until a job is due or it is time to sweep."""
        rest_s = SWEEP_EVERY_S
        if len(self._held) < self._concurrency and not (self._is_stopping or self._unwritten):
            due_s = self._queue.next_due_s()
            if not self._held and due_s != 0.0:
                self.moved_at_s = time.monotonic()
            rest_s = rest_s if due_s is None else min(rest_s, max(due_s, RETRY_S))
        return rest_s

    async def _rest(self, rest_s: float) -> None:
        """Sleep until a unit comes, a task ends or the time is over; tasks go on meanwhile."""
        waiter = asyncio.create_task(self._awake.wait())
        await asyncio.wait({waiter, *self._held}, timeout=rest_s, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()

    async def _scored(self, job: Job) -> Outcome:
        return await self._handle(job)

    def _settle(self) -> None:
        """Bring the jobs whose tasks ended to their end: write, ack and publish; a cancelled one goes back."""
        for task, job in list(self._held.items()):
            if task.done():
                self.moved_at_s = time.monotonic()
                self._end(task, job)
                del self._held[task]

    @guarded
    def _end(self, task: asyncio.Task[Outcome], job: Job) -> None:
        if task.cancelled():
            self._queue.nack(job, is_attempt=False)
            return
        error = task.exception()
        if error is None:
            outcome = task.result()
        else:
            record_internal_error("ragtrace.scoring.worker.handle", error)
            log_failure("a unit could not be scored", error)
            retry_in_s = FAILED_S if self._queue.is_shared else None
            outcome = Outcome(state="failed", reason=type(error).__name__, retry_in_s=retry_in_s)
        if outcome.retry_in_s is not None:
            self.postponed_for = outcome.reason
        if outcome.retry_in_s is not None or outcome.state == "failed":
            job = self._counted(job, outcome)
        if self._unwritten or not self._finish(job, outcome):
            self._unwritten.append((job, outcome))
            self._warn()

    def _finish(self, job: Job, outcome: Outcome) -> bool:
        """Write the scores, ack the job and publish; False when nothing can be written for now.

        A shared queue says whether the job is still ours before anything is published. In one of our own it always
        is, and its scores are published before its end, which `ragtrace.flush` waits for.
        """
        queue, publish = self._queue, outcome.then or _nothing
        try:
            if outcome.retry_in_s is not None:
                queue.nack(job, outcome.retry_in_s, outcome.reason, is_attempt=not outcome.is_spared)
                return True
            self._write(outcome)
            if not queue.is_shared:
                publish()
            if not queue.ack(job, outcome.state, outcome.reason, outcome.also):
                record_internal_error("ragtrace.scoring.worker.lease_lost", reason="another scorer has the unit")
            elif queue.is_shared:
                publish()
        except Exception as error:
            if self._may_wait(error):
                return False
            record_internal_error("ragtrace.scoring.worker.settle", error)
            if outcome.retry_in_s is None:
                again = Outcome(reason=type(error).__name__, retry_in_s=FAILED_S)
                return self._finish(self._counted(job, again), again)
        return True

    def _counted(self, job: Job, outcome: Outcome) -> Job:
        """Return a job with what its scores are counted missing with while it waits.

        Counted before the job is given back: a kill between the two leaves the bounds too wide, never too narrow.
        """
        try:
            return job if self._missed is None else replace(job, unit=self._missed(job.unit, outcome))
        except Exception as error:
            record_internal_error("ragtrace.scoring.worker.missed", error)
            return job

    def _write(self, outcome: Outcome) -> None:
        """Write scores into a separate file; a permanent error is counted, and the job ends."""
        try:
            if outcome.write is not None:
                outcome.write()
        except Exception as error:
            if self._may_wait(error):
                raise
            record_internal_error("ragtrace.scoring.worker.write", error)

    def _may_wait(self, error: Exception) -> bool:
        from ragtrace.sqlite_file import unwritable  # noqa: PLC0415 - sqlite3 only for those who write files

        self._unwritten_because = unwritable(error) or ""
        return bool(self._unwritten_because)

    def _write_again(self) -> bool:
        """Write waiting jobs in order; False when some still wait."""
        if not self._unwritten:
            return True
        count = len(self._unwritten)
        while self._unwritten:
            if not self._finish(*self._unwritten[0]):
                self._warn()
                return False
            self._unwritten.popleft()
        if self._has_warned:
            self._has_warned = False
            _log.info("the scores can be written again: %s waited", count_text(count, "scored unit"))
        return True

    @guarded
    def _give_up_unwritten(self) -> None:
        """Try once more at the end; jobs that still cannot be written go back to the queue."""
        if not self._write_again():
            for job, _ in self._unwritten:
                self._queue.nack(job, is_attempt=False)
            self._unwritten.clear()

    def _warn(self) -> None:
        if time.monotonic() - self._warned_at >= WARN_EVERY_S:
            self._warned_at, self._has_warned = time.monotonic(), True
            _log.warning(
                "the scores cannot be written (%s): scored units wait in memory, and no more are scored",
                self._unwritten_because,
            )


def _nothing() -> None:
    pass


async def _end_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
