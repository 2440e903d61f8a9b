"""Waits until what a service was offered is scored and exported, and ends its parts within a deadline."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from ragtrace.errors import QueueError
from ragtrace.queues.base import counters_of
from ragtrace.service.shutdown_report import ShutdownReport
from ragtrace.telemetry.setup.flushing import unended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.http_server import HttpServer
    from ragtrace.queues.base import Queue
    from ragtrace.scoring import Ledger, Worker
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.pipeline import Pipeline
    from ragtrace.service.score_handler import ScoreHandler
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.setup.providers import Providers

_log = logging.getLogger("ragtrace")
_EXPORT, _MEMORY = "the export", "the queue in memory"
_LOOK_EVERY_S = 0.02
_GRACE_S = 0.5  # the providers end a late exporter within 0.2 s behind their own deadline


class Flusher:
    """Flushes and ends the parts of one service. `flush` and `wait_scored` may be called from any thread.

    Args:
        settings: of the service.
        providers: export spans, events and metrics.
        instruments: closed at the end.
        pipeline: its queue is emptied first.
        ledger: tells what was offered and not scored.
        queue: holds what waits to be scored.
        worker: the scorer's thread.
        handler: publishes scores that wait in the outbox.
        begin: starts the scorer.
        sinks: take scores.
        storing: keeps scores; None without a store.
        outbox: keeps scores until they were delivered; None where there is none.
        limiter: stands before the judge, where it has limits.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        providers: Providers,
        instruments: Instruments,
        pipeline: Pipeline,
        ledger: Ledger,
        queue: Queue,
        worker: Worker,
        handler: ScoreHandler,
        begin: Callable[[], None],
        sinks: Sequence[Sink] = (),
        storing: Storing | None = None,
        outbox: ScoreOutbox | None = None,
        limiter: JudgeLimiter | None = None,
    ) -> None:
        self._settings = settings
        self._providers = providers
        self._instruments = instruments
        self._pipeline = pipeline
        self._ledger = ledger
        self._queue = queue
        self._worker = worker
        self._handler = handler
        self._begin = begin
        self._sinks = sinks
        self._storing = storing
        self._outbox = outbox
        self._limiter = limiter
        self._has_said_who_scores = False

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored and exported; False when the time is over first."""
        deadline = time.monotonic() + timeout_s
        is_scored = self.wait_scored(timeout_s)
        is_scored = self._are_leftovers_published(deadline) and is_scored
        left_s = max(deadline - time.monotonic(), 0.0)
        calls = {_EXPORT: self._providers.flush, **self._sink_calls("flush")}
        if self._storing is not None:
            calls["the store"] = self._storing.flush
        is_exported = not _late(calls, left_s)
        if self._outbox is not None:
            left_s = max(deadline - time.monotonic(), _GRACE_S)
            _late({"the outbox": self._outbox.drain}, left_s, grace_s=0.0)  # another process may have the file
        return is_exported and is_scored

    def wait_scored(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored, and a spool that this process scores is empty.

        The scorer starts for what another process left in the spool.
        """
        deadline = time.monotonic() + timeout_s
        is_drained = self._pipeline.drain(timeout_s)
        is_settled = self._ledger.wait_settled(max(deadline - time.monotonic(), 0.0))
        return is_drained and is_settled and self._is_spool_scored(deadline)

    def shutdown(
        self, timeout_s: float, *, servers: Sequence[HttpServer] = (), kept: Sequence[object] = ()
    ) -> bool:
        """Score and export what is there, then stop; what is left at the deadline is counted and logged.

        Sinks and store are closed; those in `kept` go on in another service and are only flushed.
        """
        deadline = time.monotonic() + timeout_s
        # What a receiver's stop left open before, such as a trace without its root, is told by its own counts.
        open_before = self._ledger.read()[0].get(("dropped", "shutdown"), 0)
        ended = {"the pipeline": self._pipeline.close(timeout_s * 0.2)}
        self._pipeline.refuse()
        ended["the scorer"] = self._worker.stop((deadline - time.monotonic()) * 0.6)
        # To a broker that comes back in time units are still written; a file is there or not.
        queue_s = (deadline - time.monotonic()) * 0.8 if self._settings.queue.address else timeout_s * 0.2
        ended[f"the {self._keeper}" if self._keeper else _MEMORY] = self._queue.close(queue_s)
        unscored_by = [name for name, is_ended in ended.items() if not is_ended]
        for server in servers:
            server.close()
        late: list[str] = []
        if self._outbox is not None:
            half_s = max(deadline - time.monotonic(), 0.05) / 2  # the rest is for metrics and spans
            late += _late({"the outbox": partial(self._empty_outbox, self._outbox)}, half_s, grace_s=0.0)
        left_s = max(deadline - time.monotonic(), 0.05)
        undelivered: list[str] = []
        ends = {
            name: partial(_is_ended, undelivered, call) for name, call in self._sink_calls("close", kept).items()
        }
        late += _late({_EXPORT: self._providers.shutdown, **ends}, left_s)
        if self._storing is not None:
            left_s = max(deadline - time.monotonic(), _GRACE_S)
            is_kept = any(self._storing is other for other in kept)
            end_store = self._storing.flush if is_kept else self._storing.close
            late += _late({"the store": partial(self._close_outbox, end_store)}, left_s)
        self._instruments.close()
        report = self._report(unscored_by, late, undelivered, open_before)
        if self._limiter is not None:
            self._limiter.close()  # after the last export, which tells what is left of its budget
        if not report.is_whole:
            _log.warning("ragtrace: shutdown, limit %.1f s: %s", timeout_s, report)
        return report.is_whole

    def _empty_outbox(self, outbox: ScoreOutbox, timeout_s: float) -> bool:
        """Send what ended processes left, and events that a full queue dropped; False when time is over first.

        Of a receiver that takes nothing no more is asked; the next process will. So will it where the scorer's
        thread hangs, which may be publishing the same scores.
        """
        began = time.monotonic()
        if self._worker.is_alive:
            return self._providers.flush_events(timeout_s) and outbox.drain(began + timeout_s - time.monotonic())
        self._handler.republish(is_ending=True)
        while not outbox.is_refused and (left_s := began + timeout_s - time.monotonic()) > 0.0:
            if not (self._providers.flush_events(left_s) and outbox.drain(left_s)):
                return False
            sent = self._handler.republish(is_ending=True)
            if not sent:
                sent = self._handler.resend(older_s=time.monotonic() - began)  # so each of them once
            if not sent:
                return True
        return outbox.is_refused  # which the providers tell

    def _close_outbox(self, end_store: Callable[[float], bool], timeout_s: float) -> bool:
        """Note what was delivered, and then flush or close the store."""
        if self._outbox is not None:
            self._outbox.close(timeout_s)
        return end_store(timeout_s)

    def _are_leftovers_published(self, deadline: float) -> bool:
        """Wait until the scorer's thread has published what ended processes left in the store."""
        if self._outbox is None or not self._has_leftovers(self._outbox):
            return True
        self._begin()
        while self._has_leftovers(self._outbox):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _has_leftovers(self, outbox: ScoreOutbox) -> bool:
        """Return whether left scores wait to be claimed, or are claimed and not published yet."""
        return outbox.has_leftovers() or self._handler.is_republishing

    @property
    def _keeper(self) -> str:
        """Name of what keeps units after this process; "" where they wait in its memory."""
        return "" if self._settings.units_at is None else "queue" if self._settings.queue.address else "spool"

    def _report(
        self, unscored_by: list[str], late: list[str], undelivered: Sequence[str], open_before: int
    ) -> ShutdownReport:
        """Return what is left.

        Args:
            unscored_by: parts of the way to a score that did not end.
            late: parts of the way out that did not.
            undelivered: what sinks did not deliver.
            open_before: traces that were dropped before the shutdown began.
        """
        ends, pending = self._ledger.read()
        lost = sum(ends.get(("dropped", reason), 0) for reason in ("shutdown", "spool_unwritable")) - open_before
        unsent = self._providers.unsent()
        if _EXPORT in late and (self._providers.unended or unsent):  # which say it better
            late = [name for name in (*self._providers.unended, *late) if name != _EXPORT and name not in unsent]
        why = self._limiter.trouble.why if self._limiter is not None else ""
        told = {_MEMORY} if pending + lost else set()  # by the number of traces
        told |= {"the scorer"} if told and why else set()  # by the judge's cause
        return ShutdownReport(
            unscored=pending + lost,
            why=why,
            is_scored=not unscored_by and self._settings.scorer == "thread",
            unended=[*(name for name in unscored_by if name not in told), *late],
            unsent=unsent,
            unheard=self._providers.unheard(),
            sent=self._providers.arrived(),
            undelivered=undelivered,
            keeper=self._keeper,
            waiting=self._waiting() if self._keeper and self._settings.scorer == "thread" else 0,
            unwritten=lost if self._settings.queue.address else 0,
            has_store=self._storing is not None,
        )

    def _waiting(self) -> int:
        """Return the units that wait in the spool; 0 where it does not tell."""
        import sqlite3  # noqa: PLC0415 - of a shared queue alone

        try:
            spool = counters_of(self._queue, is_fresh=True)
        except (QueueError, OSError, sqlite3.Error):
            return 0
        return spool.pending if spool is not None else 0

    def _is_spool_scored(self, deadline: float) -> bool:
        """Wait until a spool that this process scores is empty; what a worker scores is out of our hands."""
        if not self._queue.flush(max(deadline - time.monotonic(), 0.0)):
            return False
        if self._settings.scorer == "worker":
            self._say_who_scores()
            return True
        while (spool := counters_of(self._queue, is_fresh=True)) is not None:
            if not spool.pending and self._worker.is_idle:
                return True
            self._worker.begin()
            is_over = time.monotonic() >= deadline
            if is_over or not self._worker.is_begun:  # no thread begins at an interpreter's end
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _say_who_scores(self) -> None:
        """Tell a process that captured nothing, and may have been started to score, that a worker does."""
        if self._ledger.offered or self._has_said_who_scores:
            return
        spool = counters_of(self._queue, is_fresh=True)
        if spool is not None and spool.pending:
            self._has_said_who_scores = True
            _log.warning(
                "%s in %s for `ragtrace worker`; with scorer=worker this process scores nothing",
                "1 unit waits" if spool.pending == 1 else f"{spool.pending} units wait",
                self._settings.units_at,
            )

    def _sink_calls(self, method: str, kept: Sequence[object] = ()) -> dict[str, Callable[[float], bool]]:
        """Return the optional method of each sink by its name; that of a sink that is kept is ``flush``."""
        found: dict[str, Callable[[float], bool]] = {}
        for sink in self._sinks:
            call = getattr(sink, "flush" if any(sink is other for other in kept) else method, None)
            if call is not None:
                name = f"the sink {type(sink).__name__}"
                found[f"{name} ({len(found) + 1})" if name in found else name] = call
        return found


def _late(
    calls: Mapping[str, Callable[[float], bool]], timeout_s: float, *, grace_s: float = _GRACE_S
) -> list[str]:
    """Give every call the same time, side by side; return the names of those that fail or are late."""
    timed = {name: partial(_is_done, call, timeout_s) for name, call in calls.items()}
    return unended(timed, timeout_s + grace_s)


def _is_ended(undelivered: list[str], call: Callable[[float], bool | None], timeout_s: float) -> bool:
    """End a sink; note what it did not deliver where it can tell, which is no matter of time."""
    is_whole = _is_done(call, timeout_s)
    sink = getattr(call, "__self__", None)
    lost = "" if is_whole else getattr(sink, "lost", "")
    if lost:
        undelivered.append(f"not delivered to {type(sink).__name__.removesuffix('Sink').lower()}: {lost}")
    return is_whole or bool(lost)


def _is_done(call: Callable[[float], bool | None], timeout_s: float) -> bool:
    return call(timeout_s) is not False  # a sink of the application may return nothing
