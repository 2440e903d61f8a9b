"""The recorder's side of a service: a run becomes spans and, when it was drawn, a unit in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded
from ragtrace.queues import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.capture import FinishedRun
    from ragtrace.model import RagRecord
    from ragtrace.queues import Queue
    from ragtrace.sampling import Draw, Sampler
    from ragtrace.scoring import Ledger
    from ragtrace.service.publish import Publisher
    from ragtrace.telemetry.root import Root
    from ragtrace.telemetry.spans import SpanWriter

_TAKEN = frozenset({"random", "forced"})  # the decisions of a draw that ask for scores


class Intake:
    """Listens to the recorder. Called in the application's threads: no I/O, no waiting.

    Args:
        writer: writes a run's spans.
        publisher: counts runs.
        sampler: draws.
        metrics: names of the metrics that are drawn for.
        ledger: takes every run into account.
        queue: takes what was drawn.
        begin: starts the scorer's thread; called with every run.
        remember: told of every record; must not wait.
    """

    def __init__(
        self,
        *,
        writer: SpanWriter,
        publisher: Publisher,
        sampler: Sampler,
        metrics: Sequence[str],
        ledger: Ledger,
        queue: Queue,
        begin: Callable[[], object],
        remember: Callable[[RagRecord], None] | None = None,
    ) -> None:
        self._writer = writer
        self._publisher = publisher
        self._sampler = sampler
        self._metrics = tuple(metrics)
        self._ledger = ledger
        self._queue = queue
        self._begin = begin
        self._remember = remember
        self._is_closed = False

    def on_start(self, workflow: str, started_ns: int) -> Root:
        """Begin the trace of a run, and with the first the thread that sweeps leaked ones."""
        self._begin()
        return self._writer.open_root(workflow, started_ns)

    def on_end(self, ref: Any, captured: FinishedRun) -> None:
        """Draw, write the run's spans, and queue it when it was drawn. Each step is guarded on its own."""
        draw = self._drawn(captured)
        is_taken = draw is not None and draw.decision in _TAKEN
        if is_taken:
            self._ledger.offer()
        self._write(ref, captured, draw)
        self._measure(captured, draw)
        self._keep(captured)
        if draw is None:
            self._ledger.passed("skipped", "internal_error")
        elif is_taken:
            self._queue_unit(ref, captured, draw)
        elif draw.decision == "dropped":
            self._ledger.passed("dropped", draw.reason or "")
        else:
            self._ledger.passed("skipped", "not_sampled")

    def close(self) -> None:
        """Queue nothing any more; runs that end later are dropped."""
        self._is_closed = True

    @guarded
    def _drawn(self, captured: FinishedRun) -> Draw | None:
        return self._sampler.decide(captured.record, self._metrics)

    @guarded
    def _write(self, root: Root, captured: FinishedRun, draw: Draw | None) -> None:
        try:
            self._writer.write(
                root,
                captured,
                decision=draw.decision if draw else "none",
                reason=draw.reason if draw else "internal_error",
                probability=draw.probability if draw else 0.0,
            )
        finally:
            self._writer.end_root(root, captured.ended_ns)

    @guarded
    def _measure(self, captured: FinishedRun, draw: Draw | None) -> None:
        self._publisher.captured(captured, draw)

    @guarded
    def _keep(self, captured: FinishedRun) -> None:
        if self._remember is not None:
            self._remember(captured.record)

    def _queue_unit(self, root: Root, captured: FinishedRun, draw: Draw) -> None:
        evicted = self._put(root, captured, draw)
        if evicted is None:
            self._ledger.end("dropped", "internal_error")
            return
        for unit in evicted:
            is_late = self._is_closed and unit.root is root
            self._ledger.end("dropped", "shutdown" if is_late else "queue_full")

    @guarded
    def _put(self, root: Root, captured: FinishedRun, draw: Draw) -> list[Unit] | None:
        unit = Unit(
            record=captured.record,
            decision="forced" if draw.decision == "forced" else "random",
            reason=draw.reason,
            probability=draw.probability,
            rates=draw.rates,
            factor=draw.factor,
            is_recorded=root.is_recording,
            root=root,
        )
        return [unit] if self._is_closed else self._queue.put(unit)
