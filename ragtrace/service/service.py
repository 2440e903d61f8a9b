"""The object graph of one set of settings: spans out, units in, scores out."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture import guarded, lost
from ragtrace.errors import ConfigError, QueueError
from ragtrace.queues import HandingQueue, Job, MemoryQueue, Unit
from ragtrace.sampling import Load, Pressure, Sampler
from ragtrace.scoring import Ledger, Outcome, Worker
from ragtrace.scoring.limits.sparing import spared
from ragtrace.scoring.retry import verdict_of
from ragtrace.service.rates import rates_of
from ragtrace.service.spool_identity import spool_identity
from ragtrace.telemetry.deadline import all_within
from ragtrace.telemetry.readings import LedgerReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.capture import Captured
    from ragtrace.model import Score
    from ragtrace.queues import Queue
    from ragtrace.queues.sqlite import SqliteQueue
    from ragtrace.sampling import Draw
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.canaries import Canaries
    from ragtrace.scoring.limits import Closed
    from ragtrace.service.drift import DriftMonitor
    from ragtrace.service.health import HealthEndpoint
    from ragtrace.service.limits import ServiceGate
    from ragtrace.service.publish import Publisher
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.telemetry.provider import Providers
    from ragtrace.telemetry.root import Root
    from ragtrace.telemetry.spans import SpanWriter

_log = logging.getLogger("ragtrace")
_LOOK_EVERY_S = 0.02
REPUBLISH_AFTER_S = 60.0
_GRACE_S = 0.5  # the providers end a late exporter within 0.2 s behind their own deadline


class Service:
    """Listens to the recorder, draws, writes spans, queues, scores in a background thread, publishes.

    Built by `ragtrace.service.build.build` alone. Its methods may be called from any thread.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        providers: Providers,
        writer: SpanWriter,
        publisher: Publisher,
        scorer: Scorer,
        drift: DriftMonitor,
        sinks: Sequence[Sink] = (),
        endpoint: Any = None,
        sweep: Callable[[], None] | None = None,
        storing: Storing | None = None,
        gate: ServiceGate | None = None,
        canaries: Callable[[], Canaries | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.providers = providers
        self.publisher = publisher
        self.drift = drift
        self.endpoint = endpoint
        self.ledger = Ledger()
        self.queue = self._new_queue()
        self.sampler = Sampler(
            rates_of(settings),
            pressure=Pressure(self._load),
        )
        self._metrics = tuple(metric.declaration.name for metric in scorer.metrics)
        self._writer = writer
        self._scorer = scorer
        self._sinks = tuple(sinks)
        self._recorder_sweep = sweep
        self._storing = storing
        self._republish_at = 0.0
        self._gate = gate
        self._new_canaries = canaries
        self._canaries = canaries()
        self._health: HealthEndpoint | None = None
        self._worker = self._new_worker()
        self._is_closed = False
        self._has_said_no_metric = False

    # -- the recorder's side: called in the application's thread, no I/O, no waiting --

    def started(self, workflow: str, started_ns: int) -> Root:
        """Begin the trace of a run, and with the first the thread that sweeps leaked ones."""
        if not self._worker.is_begun:
            self._begin_worker()
        return self._writer.open_root(workflow, started_ns)

    def finished(self, ref: Any, captured: Captured) -> None:
        """Draw, write the run's spans, and queue it when it was drawn. Each step is guarded on its own."""
        self.ledger.offer()
        decision = self._drawn(captured)
        self._write(ref, captured, decision)
        self._measure(captured, decision)
        self._remember(captured)
        if decision is not None and decision.decision in {"random", "forced"}:
            self._queue_unit(ref, captured, decision)
        elif decision is not None and decision.decision == "dropped":
            self.ledger.end("dropped", decision.reason or "")
        else:
            self.ledger.end("skipped", "not_sampled" if decision is not None else "internal_error")

    @guarded
    def _begin_worker(self) -> None:
        self._worker.start()

    @guarded
    def _drawn(self, captured: Captured) -> Draw | None:
        return self.sampler.decide(captured.record, self._metrics)

    @guarded
    def _write(self, root: Root, captured: Captured, decision: Draw | None) -> None:
        is_drawn = decision is not None and decision.decision in {"random", "forced"}
        try:
            self._writer.write(
                root,
                captured,
                decision=decision.decision if decision else "none",
                reason=decision.reason if decision else "internal_error",
                probability=decision.probability if decision else 0.0,
            )
        finally:
            if not (is_drawn and self.publisher.hold(root, captured.ended_ns)):
                self._writer.end_root(root, captured.ended_ns)

    @guarded
    def _measure(self, captured: Captured, decision: Draw | None) -> None:
        self.publisher.captured(captured, decision)

    @guarded
    def _remember(self, captured: Captured) -> None:
        if self._storing is not None:
            self._storing.remember(captured.record)

    def _queue_unit(self, root: Root, captured: Captured, decision: Draw) -> None:
        evicted = self._put(root, captured, decision)
        if evicted is None:
            self.ledger.end("dropped", "internal_error")
            return
        for _ in evicted:
            self.ledger.end("dropped", "queue_full")

    @guarded
    def _put(self, root: Root, captured: Captured, decision: Draw) -> list[Unit] | None:
        unit = Unit(
            record=captured.record,
            decision="forced" if decision.decision == "forced" else "random",
            reason=decision.reason,
            probability=decision.probability,
            rates=decision.rates,
            factor=decision.factor,
            is_recorded=root.is_recording,
            root=root,
        )
        if self._is_closed:
            return [unit]
        return self.queue.put(unit)

    # -- the scorer's side: called in the background thread --

    async def _handle(self, job: Job) -> Outcome:
        started_ns = time.time_ns()
        if not self._scorer.chosen(job.unit):
            self._say_no_metric(job.unit)
            return Outcome(state="skipped", reason="no_metric")
        self._announce(job.unit)
        waits = spared(self._gate.now.closed()) if self._gate is not None else None
        if waits is not None:
            return waits
        scores = await self._scorer.score(job.unit)
        deciding = self._scorer.deciding(scores)
        waits = spared(self._gate.now.closed(), deciding) if self._gate is not None else None
        return waits or verdict_of(
            deciding,
            job.attempt,
            also=self._storing.also(scores, job.unit.record) if self._storing is not None else None,
            then=lambda: self._publish(job.unit, scores, started_ns),
        )

    @guarded
    def _announce(self, unit: Unit) -> None:
        """Let the series of a unit from another process exist at 0 before its scores: there it was captured."""
        self.publisher.instruments.eligible(unit.record)

    def _say_no_metric(self, unit: Unit) -> None:
        if not self._has_said_no_metric:
            self._has_said_no_metric = True
            _log.warning(
                "units were drawn for %s and skipped (no_metric): this scorer has %s; give application and worker "
                "the same metrics",
                ", ".join(sorted(unit.rates)),
                ", ".join(self._metrics),
            )

    def _publish(self, unit: Unit, scores: list[Score], started_ns: int) -> None:
        self._observe(scores, unit)
        self._to_telemetry(unit, scores, started_ns)
        for sink in self._sinks:
            try:
                sink.emit(unit.record, scores)
            except Exception as error:
                lost(f"sink:{type(sink).__name__}", error)

    @guarded
    def _observe(self, scores: list[Score], unit: Unit) -> None:
        self.drift.observe(scores, self.publisher.instruments.workflow(unit.record))

    @guarded
    def _to_telemetry(self, unit: Unit, scores: list[Score], started_ns: int) -> None:
        self.publisher.scored(unit, scores, started_ns, time.time_ns())

    def _new_queue(self) -> MemoryQueue | SqliteQueue:
        settings = self.settings
        if settings.spool is None:
            if settings.scorer == "worker":
                raise ConfigError("scorer=worker needs a spool that the worker reads: set spool to a file")
            return MemoryQueue(settings.queue_units, settings.queue_bytes, ended=self._ended)
        from ragtrace.queues.sqlite import SqliteQueue  # noqa: PLC0415 - sqlite3 only for those who want it

        try:
            return SqliteQueue(
                Path(settings.spool),
                capacity=settings.queue_units,
                capacity_bytes=settings.queue_bytes,
                spool_bytes=settings.spool_bytes,
                ended=self._ended,
            )
        except QueueError as error:
            raise ConfigError(f"spool: {error}") from error

    def _ended(self, state: str, reason: str) -> None:
        self.ledger.end(state, reason)  # type: ignore[arg-type]  # the queues' states are the ledger's

    def _load(self) -> Load | None:
        """Return what stands behind the queue, a spool's by its own accounts; None before these are known."""
        size, capacity = self.queue.size, self.queue.capacity
        if isinstance(self.queue, MemoryQueue):
            return Load(size=size, capacity=capacity, served=_served(self.ledger.counts()))
        accounts = self.queue.accounts()
        if accounts is None:
            return None
        return Load(size=size, capacity=capacity, served=_served(accounts.ends), wanted=accounts.wanted)

    def _new_worker(self) -> Worker:
        queue: Queue = self.queue
        if self.settings.scorer == "worker" and not isinstance(self.queue, MemoryQueue):
            queue = HandingQueue(self.queue)
        return Worker(
            queue,
            self._handle,
            concurrency=self.settings.concurrency,
            sweep=self._swept,
            close=self._close,
        )

    async def _close(self) -> None:
        if self._canaries is not None:
            await self._canaries.aclose()
        await self._scorer.aclose()

    @guarded
    def _swept(self) -> None:
        if self._recorder_sweep is not None:
            self._recorder_sweep()
        if self._canaries is not None:
            self._canaries.tick()
        self._share_series()
        if self._storing is not None:
            self._republish(self._storing)
            self._storing.sweep()
        self.refresh_baselines()
        self.publisher.sweep()

    @guarded
    def _share_series(self) -> None:
        """Tell the other processes of a spool what is captured here, and pre-create the series of theirs."""
        if isinstance(self.queue, MemoryQueue):
            return
        instruments = self.publisher.instruments
        for name in self.queue.share([json.dumps(like) for like in instruments.likes()]):
            instruments.announce(*json.loads(name))

    @guarded
    def refresh_baselines(self) -> None:
        """Take frozen baselines that are new; a store that cannot be read is counted as lost and asked again."""
        self.drift.refresh()

    def _republish(self, storing: Storing) -> None:
        """Publish what a killed scorer had written in the spool's transaction and not published: at least once."""
        now = time.time()
        if not storing.is_joined or self.settings.scorer == "worker" or now < self._republish_at:
            return
        self._republish_at = now + REPUBLISH_AFTER_S
        # What is younger, another scorer has just written and is about to publish.
        for pending in storing.unpublished(before=now - REPUBLISH_AFTER_S):
            if pending.scores:  # of a newer ragtrace none may be readable
                first = pending.scores[0]
                probability = 1.0 / first.weight if first.weight else 1.0
                unit = Unit(record=pending.record, decision=first.stratum, probability=probability)
                self._publish(unit, list(pending.scores), time.time_ns())
            storing.store.exported(pending.marks)

    # -- the operator's side --

    def budget_left(self) -> list[tuple[float, dict[str, str]]]:
        """Return what is left of today's budgets, for a gauge: dollars and tokens, each with its unit."""
        if self._gate is None:
            return []
        reading = self._gate.now.reading()
        left = {"USD": reading.budget_usd, "token": reading.budget_tokens}
        about = {semconv.JUDGE_MODEL: self.settings.judge}
        return [(float(n), {**about, semconv.UNIT: unit}) for unit, n in left.items() if n is not None]

    def canary_gap(self) -> list[tuple[float, dict[str, str]]]:
        """Return the canaries' gap, for a gauge; nothing before a round succeeded."""
        return [(value, dict(about)) for value, about in self._canaries.points()] if self._canaries else []

    def serve_health(self) -> None:
        """Serve ``/healthz`` and ``/readyz`` where a port is set.

        Raises:
            ConfigError: the port is taken.
        """
        if self.settings.health_port is None:
            return
        from ragtrace.service.health import HealthEndpoint, health_facts, ready_facts  # noqa: PLC0415 - for some

        self._health = HealthEndpoint(
            health_facts(
                is_begun=lambda: self._worker.is_begun,
                is_alive=lambda: self._worker.is_alive,
                turned_at_s=lambda: self._worker.turned_at_s,
            ),
            ready_facts(
                queue=lambda: self.queue.fullest,
                spool=Path(self.settings.spool) if self.settings.spool else None,
                closed=self._closed,
            ),
            host=self.settings.health_host,
            port=self.settings.health_port,
        )

    def _closed(self) -> Closed | None:
        return self._gate.now.closed() if self._gate is not None else None

    def breaker_state(self) -> list[tuple[float, dict[str, str]]]:
        """Return the judge's circuit breaker, for a gauge: 0 closed, 1 half-open, 2 open or held."""
        if self._gate is None:
            return []
        return [(float(self._gate.now.reading().breaker), {semconv.JUDGE_MODEL: self.settings.judge})]

    def begin(self) -> None:
        """Start scoring without waiting for a first run: what a spool holds is there already."""
        self._share_series()
        self._begin_worker()

    def ledger_readings(self, *, is_fresh: bool = False) -> list[LedgerReading]:
        """Return the accounts of this process and, where it scores a spool, those that all of its processes share.

        The spool's are as of the last look or, fresh, as they are now.
        """
        readings = [LedgerReading(ends=self.ledger.counts(), pending=self.ledger.pending)]
        if not isinstance(self.queue, MemoryQueue) and self.settings.scorer == "thread":
            spool = self.queue.snapshot() if is_fresh else self.queue.accounts()
            if spool is not None:
                name = spool_identity(self.queue.path)
                readings.append(LedgerReading(ends=spool.ends, pending=spool.pending, spool=name))
        return readings

    def accounts(self, *, is_fresh: bool = False) -> tuple[Mapping[tuple[str, str], int], int]:
        """Return the ends by (state, reason), and the number of pending traces, for `ledger_readings` in one.

        Beside the spool's accounts ``spooled`` is no end but a way there, and left out.
        """
        own, *shared = self.ledger_readings(is_fresh=is_fresh)
        counts, pending = Counter(own.ends), own.pending
        for spool in shared:
            counts.pop(("spooled", ""), None)
            counts.update(spool.ends)
            pending += spool.pending
        return counts, pending

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored and exported; False when the time is over first."""
        deadline = time.monotonic() + timeout_s
        is_scored = self.ledger.wait_settled(timeout_s) and self._is_spool_scored(deadline)
        self.publisher.release_held()
        left_s = max(deadline - time.monotonic(), 0.0)
        calls = [lambda: self.providers.flush(left_s), *self._sink_calls("flush", left_s)]
        return all_within(calls, left_s + _GRACE_S) and is_scored

    def _is_spool_scored(self, deadline: float) -> bool:
        """Wait until a spool that this process scores is empty; what a worker scores is out of our hands."""
        if isinstance(self.queue, MemoryQueue):
            return True
        if not self.queue.flush(max(deadline - time.monotonic(), 0.0)):
            return False
        if self.settings.scorer == "worker":
            return True
        while self.queue.snapshot().pending or not self._worker.is_idle:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def shutdown(self, timeout_s: float, *, kept: Sequence[Sink] = ()) -> bool:
        """Score and export what is there, then stop; what is left at the deadline is counted and logged.

        Sinks are closed; those in `kept` go on in another service and are flushed alone.
        """
        if self._is_closed:
            return True
        self._is_closed = True
        deadline = time.monotonic() + timeout_s
        is_scored = self._worker.stop(timeout_s * 0.6)
        if isinstance(self.queue, MemoryQueue):
            is_scored = is_scored and self.queue.size == 0
        else:
            is_scored = self.queue.close(timeout_s * 0.2) and is_scored
        left = self.queue.clear()
        for _ in left:
            self.ledger.end("dropped", "shutdown")
        self.publisher.release_held()
        if self.endpoint is not None:
            self.endpoint.close()
        if self._health is not None:
            self._health.close()
        if self._gate is not None:
            self._gate.close()
        left_s = max(deadline - time.monotonic(), 0.05)
        calls = [lambda: self.providers.shutdown(left_s), *self._sink_calls("close", left_s, kept)]
        is_exported = all_within(calls, left_s + _GRACE_S)
        self.publisher.close()
        if not (is_scored and is_exported):
            _log.warning(
                "shutdown: the deadline of %.1f s was not met; %d traces not scored%s",
                timeout_s,
                len(left) + self.ledger.pending,
                "" if is_exported else ", and not everything was exported",
            )
        return is_scored and is_exported

    def _sink_calls(self, method: str, timeout_s: float, kept: Sequence[Sink] = ()) -> list[Callable[[], bool]]:
        """Return a call of each sink that has the optional method; a sink that is kept is flushed."""
        calls: list[Callable[[], bool]] = []
        for sink in self._sinks:
            is_kept = any(sink is other for other in kept)
            found = getattr(sink, "flush" if is_kept else method, None)
            if found is not None:
                calls.append(lambda found=found: found(timeout_s) is not False)  # type: ignore[misc]
        return calls

    def reset_after_fork(self) -> None:
        """Give a forked child its own queue, accounts and thread; the parent scores what it had."""
        self.ledger = Ledger()
        if isinstance(self.queue, MemoryQueue):
            self.queue = self._new_queue()
        else:
            self.queue.reset_after_fork()
        self.sampler.reset_after_fork()
        if self._gate is not None:
            self._gate.reset_after_fork()
        self._canaries = self._new_canaries()
        self.publisher.reset_after_fork()
        self.drift.reset_after_fork()
        self._worker = self._new_worker()


def _served(ends: Mapping[Any, int]) -> int:
    """Return how many units a scorer worked off; what was skipped or dropped it did not have to."""
    return sum(n for (state, _), n in ends.items() if state in {"scored", "invalid", "dead", "failed"})
