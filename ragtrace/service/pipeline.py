"""Turn ended runs into records, draws, spans and units for the scorer, in one thread.

- The application's thread starts the root span in `Pipeline.on_start`, and puts the ended run in `Pipeline.on_end`.
  A long run that is open is put in `Pipeline.on_part` before.
- The pipeline's thread makes record, draw, child spans, the root's end and the scorer's unit in `Pipeline.process`.
"""

from __future__ import annotations

import math
import threading
import time
from _thread import allocate_lock, start_new_thread
from collections import Counter
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture import finished_run, guarded, record_internal_error
from ragtrace.queues import Unit
from ragtrace.queues.base import LossTellingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.capture import Run
    from ragtrace.model import End, RagRecord
    from ragtrace.queues import Queue
    from ragtrace.sampling import Draw, Sampler
    from ragtrace.scoring import Ledger, Worker
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.spans.writer import Root, SpanWriter

    _Item = tuple[Root, Run, bool] | str | SimpleQueue[None]

MOST_RUNS = 4_096
MOST_CHARS = 67_108_864
_LOOK_EVERY_S = 0.1
_GATHER_S = 0.02
_LATE_S = 1.0  # that the end of a run waits behind a shutdown
_COUNTED = {"none": "skipped", "dropped": "dropped"}  # decisions of a draw as the counter of traces has them
_DRAWN = frozenset({"random", "forced"})  # decisions of a draw that ask for scores


class Pipeline:
    """Takes runs in the application's threads, and processes them in a daemon thread of its own.

    At most 4,096 runs with 64 Mi characters wait, ended ones and open ones with a part. A run beyond that is
    dropped with its spans, and counted as ``dropped`` (``queue_full``). `metrics` are the names that are drawn for.
    Each function of `remember` is called with every record. `lost` is called with the unit of a run that gets no
    score, the reason, and how many runs were lost alike.
    """

    def __init__(
        self,
        *,
        writer: SpanWriter,
        instruments: Instruments,
        sampler: Sampler,
        metrics: Sequence[str],
        ledger: Ledger,
        queue: Queue,
        worker: Worker,
        remember: Sequence[Callable[[RagRecord], None]] = (),
        lost: Callable[[Unit, str, int], None] = lambda _unit, _reason, _runs: None,
    ) -> None:
        self._writer = writer
        self._instruments = instruments
        self._sampler = sampler
        self.metrics = tuple(metrics)
        self._ledger = ledger
        self._queue = queue
        self._worker = worker
        self._remember = tuple(remember)
        self._lost = lost
        if isinstance(queue, LossTellingQueue):
            queue.on_lost(lambda unit, reason: lost(unit, reason, 1))
        self._is_closed = False
        self._has_ended = False
        self._is_parents = False
        # Runs, and whether they have ended; workflows of runs that found no room; who waits until what came before
        # is processed; None = the end.
        self._waiting: SimpleQueue[_Item | None] = SimpleQueue()
        self._sizes: dict[int, int] = {}  # characters of what waits: ended runs by their roots, parts by their runs
        self._is_awaited = threading.Event()  # somebody waits for what came before
        self._starting = threading.RLock()
        self._working_off = threading.RLock()
        self._unread: Counter[tuple[str, str, float]] = Counter()  # see `lose_unread`
        self._thread: threading.Thread | None = None

    # -- the application's thread --

    def on_start(self, workflow: str, started_ns: int) -> Root:
        """Start the root span, and with the first run the threads."""
        self._worker.begin()
        if self._thread is None and not self._has_ended:
            self._start()
        return self._writer.open_root(workflow, started_ns)

    def on_part(self, root: Any, run: Run) -> bool:
        """Hand over what waits of a run that is open, as `on_end` does; False where the run is lost."""
        return not self._is_parents and self._offer(root, run, has_ended=False)

    def on_end(self, root: Any, run: Run) -> None:
        """Hand a run over, in one put and without a lock: the garbage collector may be inside any of them."""
        if not self._is_parents:
            self._offer(root, run, has_ended=True)

    def _offer(self, root: Root, run: Run, *, has_ended: bool) -> bool:
        self._sizes.pop(id(run), None)  # of an earlier part, which is counted with this one
        sizes, chars = list(self._sizes.values()), run.size_chars
        if len(sizes) >= MOST_RUNS or sum(sizes) + chars > MOST_CHARS:
            self._waiting.put(root.workflow)
            return False
        self._sizes[id(root if has_ended else run)] = chars
        self._waiting.put((root, run, has_ended))
        if self._has_ended:  # a run that began before a shutdown
            self._work_off_apart(_LATE_S if has_ended else 0.0)
        return True

    def _work_off_apart(self, timeout_s: float) -> None:
        """Process what waits in a thread for it, and wait for that: the process may end next."""
        is_over = allocate_lock()
        is_over.acquire()

        def work_off() -> None:
            try:
                self._work_off(math.inf)
            finally:
                is_over.release()

        try:  # not `threading.Thread`, which takes a lock
            start_new_thread(work_off, ())
        except RuntimeError:  # at the interpreter's end no thread begins
            self._work_off(time.monotonic() + _LATE_S)
        else:
            is_over.acquire(timeout=timeout_s)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ragtrace-pipeline", daemon=True)
                thread.start()
                self._thread = thread

    # -- the pipeline's thread --

    def _run(self) -> None:
        """Process what comes, some time after it came.

        Runs that are processed in turn take a tenth less CPU than each by itself, and an application that answers
        several questions at once is not interrupted for each.
        """
        while (item := self._waiting.get()) is not None:
            if self._waiting.empty() and not isinstance(item, SimpleQueue):
                self._is_awaited.wait(_GATHER_S)
            self._take(item)
            del item  # and the run with it, before the next wait
        self._work_off(math.inf)  # what came while the thread was told to end

    @guarded
    def _take(self, item: _Item) -> None:
        if isinstance(item, SimpleQueue):
            self._is_awaited.clear()
            item.put(None)
            return
        if isinstance(item, str):
            self._drop("queue_full", item)
            return
        root, run, has_ended = item
        try:
            if has_ended:
                self.process(root, run)
            else:
                run.take_part()
        except Exception as error:
            record_internal_error("ragtrace.service.pipeline", error)
            if has_ended:
                root.end(run.ended_ns)
                self._drop("internal_error", root.workflow)
        finally:
            self._sizes.pop(id(root if has_ended else run), None)

    def _drop(self, reason: str, workflow: str) -> None:
        self._ledger.passed("dropped", reason)
        self._instruments.traces("dropped", reason)
        self.lose_unread(reason, workflow=workflow)

    def process(self, root: Root, run: Run) -> None:
        """Turn a run that has ended into a record, a draw, spans, and a unit where it was drawn."""
        finished = finished_run(run)
        if finished is None:  # no question: its root is never ended, so that nothing of it is exported
            return
        draw = self._sampler.decide(finished.record, self.metrics)
        self._writer.write(root, finished, decision=draw.decision, reason=draw.reason, probability=draw.probability)
        root.end(run.ended_ns)
        self._instruments.operations(finished)
        unit = self.unit_of(finished.record, draw, is_recorded=root.is_recording, root=root)
        if unit is not None:
            self.enqueue(unit)

    def lose_unread(self, reason: str, *, seen: float = 1.0, workflow: str = "", runs: int = 1) -> None:
        """Note runs that were lost before they were read: they count as missing, with the inputs of the next run.

        Args:
            reason: why.
            seen: the share of all runs that gets as far.
            workflow: of the runs, "" = of the next run.
            runs: how many.
        """
        self._unread[workflow, reason, seen] += runs

    def _count_unread(self, record: RagRecord) -> None:
        unread, self._unread = self._unread, Counter()
        for (workflow, reason, seen), runs in unread.items():
            like = replace(record, workflow=workflow or record.workflow, session=None, user=None)
            if rates := self._sampler.undrawn(like, self.metrics, seen=seen):
                self._lost(Unit(record=like, rates=rates), reason, runs)

    def unit_of(
        self, record: RagRecord, draw: Draw, *, is_recorded: bool = True, root: Root | None = None
    ) -> Unit | None:
        """Count and remember one record, and return its unit where it was drawn; called in one thread.

        A later revision of a trace is remembered again, and not counted among the traces and runs.
        """
        if not record.revision:
            if self._unread:
                self._count_unread(record)
            self._instruments.run(record)
            self._instruments.traces(_COUNTED.get(draw.decision, "sampled"), draw.reason)
            if draw.undrawn:
                self._lost(Unit(record=record, rates=draw.undrawn), draw.undrawn_for, 1)
        for remember in self._remember:
            remember(record)
        if draw.decision not in _DRAWN:
            end: End = "dropped" if draw.decision == "dropped" else "skipped"
            self._ledger.passed(end, draw.reason or "not_sampled")
            return None
        return Unit(
            record=record,
            decision="forced" if draw.decision == "forced" else "random",
            reason=draw.reason,
            probability=draw.probability,
            rates=draw.rates,
            factor=draw.factor,
            is_recorded=is_recorded,
            root=root,
        )

    def enqueue(self, unit: Unit) -> None:
        """Put a unit into the queue; an evicted one is counted."""
        self._ledger.offer()
        is_refused = self._is_closed
        try:
            evicted = [unit] if is_refused else self._queue.put(unit)
        except Exception as error:
            record_internal_error("ragtrace.service.pipeline.queue", error)
            self._ledger.end("dropped", "internal_error")
            self._lost(unit, "internal_error", 1)
            return
        if is_refused:
            self._lost(unit, "shutdown", 1)
        for one in evicted:  # the queue tells which of them count as missing
            self._ledger.end("dropped", "shutdown" if self._is_closed and one is unit else "queue_full")

    # -- waiting and ending, from any thread --

    def drain(self, timeout_s: float) -> bool:
        """Wait until every run that ended before this call is processed; False when the time is over first."""
        if self._is_parents:
            return True
        thread = self._thread
        if thread is None or not thread.is_alive():  # at an interpreter's end no thread begins
            return self._work_off(time.monotonic() + timeout_s)
        if thread is threading.current_thread():  # a span processor of the application's flushes
            return True
        deadline = time.monotonic() + timeout_s
        drained: SimpleQueue[None] = SimpleQueue()
        self._waiting.put(drained)
        self._is_awaited.set()
        while True:
            with suppress(Empty):
                drained.get(timeout=min(max(deadline - time.monotonic(), 0.0), _LOOK_EVERY_S))
                return True
            if not thread.is_alive():
                return self._work_off(deadline)
            if time.monotonic() >= deadline:
                return False

    def close(self, timeout_s: float) -> bool:
        """Process what waits and end the thread. Runs that end later are traced, and dropped unscored."""
        is_drained = self.drain(timeout_s)
        self._has_ended = True
        if self._thread is not None:
            self._waiting.put(None)
            self._is_awaited.set()
        return is_drained

    def refuse(self) -> None:
        """Put no more units into the queue: the scorer has ended."""
        self._is_closed = True

    def leave_to_parent(self) -> None:
        """Process nothing in a forked child: the runs that began before the fork are the parent's."""
        self._is_parents = True

    def _work_off(self, deadline: float) -> bool:
        """Process what waits in the calling thread; another one that does so is waited for."""
        if not self._working_off.acquire(timeout=min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX)):
            return False
        try:
            while time.monotonic() < deadline:
                try:
                    item = self._waiting.get_nowait()
                except Empty:
                    return True
                if item is not None:
                    self._take(item)
            return False
        finally:
            self._working_off.release()
