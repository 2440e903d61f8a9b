"""The service of one process: it processes the recorder's runs, scores them, and publishes the scores."""

from __future__ import annotations

import json
import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.capture import guarded
from ragtrace.errors import ConfigError
from ragtrace.metrics.evaluate import expected
from ragtrace.queues import SharedQueue
from ragtrace.queues.base import counters_of
from ragtrace.queues.registry import open_queue
from ragtrace.sampling import Pressure, Sampler
from ragtrace.scoring import Ledger, Worker
from ragtrace.service.drift import DriftMonitor
from ragtrace.service.gauges import ServiceGauges
from ragtrace.service.pipeline import Pipeline
from ragtrace.service.rates import rates_of
from ragtrace.service.score_handler import ScoreHandler
from ragtrace.telemetry.metrics.instruments import Instruments
from ragtrace.telemetry.setup.flushing import all_within, drain_with
from ragtrace.telemetry.spans.evaluation import EvaluationWriter
from ragtrace.telemetry.spans.writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.capture import Recorder
    from ragtrace.http_server import HttpServer
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.health import HealthEndpoint
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint
    from ragtrace.telemetry.setup.providers import Providers
    from ragtrace.telemetry.setup.receipts import Receipt

_log = logging.getLogger("ragtrace")
_ONE = {"spans": "span", "events": "event", "metrics": "metrics report"}
_LOOK_EVERY_S = 0.02
_GRACE_S = 0.5  # the providers end a late exporter within 0.2 s behind their own deadline


class Service:
    """Owns the pipeline, the queue and the scorer's thread: they begin, are swept, and end here.

    Built by `ragtrace.service.build`. Its methods may be called from any thread. A forked child gets a service of
    its own.

    Args:
        settings: what it is built from.
        providers: make spans, events and metrics.
        recorder: its idle runs are ended about once a second.
        scorer: computes scores.
        limiter: stands before the judge, where it has limits.
        sinks: take scores.
        storing: keeps scores and feedback; None without a store.
        endpoint: serves the metrics; None without a port.
        captures: whether this process shows a count of captured traces.

    Attributes:
        health: serves health checks; None without a port.
        outbox: keeps scores until they were delivered; None without a store, and where a worker scores.
        canaries: tell whether the judge obeys what it reads; None where there are none.
        ledger: what became of the runs of this process.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        providers: Providers,
        recorder: Recorder,
        scorer: Scorer,
        limiter: JudgeLimiter | None = None,
        sinks: Sequence[Sink] = (),
        storing: Storing | None = None,
        endpoint: OpenMetricsEndpoint | None = None,
        captures: bool = True,
    ) -> None:
        self.settings = settings
        self.providers = providers
        self.recorder = recorder
        self.scorer = scorer
        self.sinks = tuple(sinks)
        self.storing = storing
        self.endpoint = endpoint
        self.captures = captures
        self.health: HealthEndpoint | None = None
        self._limiter = limiter
        self._is_closed = False
        self._has_said_who_scores = False

        self.instruments = Instruments(providers.meters(), window_s=settings.window_s, captures=captures)
        outputs = {output.name: output for metric in scorer.metrics for output in metric.spec.outputs}
        for result in expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs):
            if result.name in outputs:  # its label sets exist at 0 before its first score
                self.instruments.precreate_metric(result, outputs[result.name])

        self.ledger = Ledger()
        if settings.spool is None and settings.scorer == "worker":
            raise ConfigError("scorer=worker needs a spool that the worker reads: set spool to a file")
        self.queue = open_queue(
            settings.spool,
            capacity=settings.queue_units,
            capacity_bytes=settings.queue_bytes,
            spool_bytes=settings.spool_bytes,
            is_producer=settings.scorer == "worker",
            ended=self.ledger.end,
        )

        # A process that hands its units to a worker has no scores to publish or to compare, and asks no judge.
        own_storing, own_limiter = (storing, limiter) if settings.scorer == "thread" else (None, None)
        self.drift = DriftMonitor(
            outputs,
            baseline=settings.drift_baseline,
            tolerance=settings.drift_tolerance,
            count_alarms=self.instruments.count_drift_alarms,
            frozen=own_storing.store.baselines if own_storing is not None else None,
        )
        self.outbox: ScoreOutbox | None = None
        if own_storing is not None:
            from ragtrace.service.score_outbox import ScoreOutbox  # noqa: PLC0415 - imports sqlite3

            self.outbox = ScoreOutbox(own_storing, providers.receipts)
        self.canaries: Canaries | None = None
        if own_limiter is not None:
            from ragtrace.service.canaries import build_canaries  # noqa: PLC0415 - imports sqlite3

            self.canaries = build_canaries(settings)

        self.gauges = ServiceGauges(
            settings,
            ledger=self.ledger,
            queue=self.queue,
            monitor=self.drift,
            limiter=limiter,
            canaries=self.canaries,
        )
        self.instruments.observe(self.gauges.readers())
        self.handler = ScoreHandler(
            scorer=scorer,
            instruments=self.instruments,
            evaluation=EvaluationWriter(
                providers.tracer(),
                providers.logger(),
                content=settings.content,
                attach=settings.attach,
                max_span_bytes=settings.max_span_bytes,
            ),
            outputs=outputs,
            drift=self.drift,
            sinks=self.sinks,
            outbox=self.outbox,
            limiter=limiter,
        )
        self._worker = Worker(
            self.queue,
            self.handler.handle,
            concurrency=settings.concurrency,
            sweep=self._sweep,
            close=self._close,
        )
        if self.outbox is not None:
            providers.receipts.listen(self._take_receipt)
        self.sampler = Sampler(rates_of(settings), pressure=Pressure(self.gauges.load))
        self.pipeline = Pipeline(
            writer=SpanWriter(
                providers.tracer(),
                content=settings.content,
                dialect=settings.dialect,
                prompt_content=settings.prompt_content,
                max_span_bytes=settings.max_span_bytes,
            ),
            instruments=self.instruments,
            sampler=self.sampler,
            metrics=[metric.spec.name for metric in scorer.metrics],
            ledger=self.ledger,
            queue=self.queue,
            worker=self._worker,
            storing=storing,
        )
        if storing is not None:
            storing.wait_for_runs = self.pipeline.drain
        drain_with(providers.tracer_provider, self.pipeline)

    def begin(self) -> None:
        """Start scoring without waiting for a first run: what a spool holds is there already."""
        self._share_series()
        self._worker.begin()

    def serve_health(self, replaced: Sequence[HttpServer] = ()) -> None:
        """Serve ``/healthz`` and ``/readyz`` where a port is set.

        Args:
            replaced: servers of the service before, whose port may be the same.

        Raises:
            ConfigError: the port is taken.
        """
        settings = self.settings
        if settings.health_port is None:
            return
        from ragtrace.service.health import HealthChecks, HealthEndpoint, longest_quiet_s  # noqa: PLC0415

        checks = HealthChecks(
            self._worker,
            self.queue,
            limiter=self._limiter,
            spool=Path(settings.spool) if settings.spool else None,
            quiet_s=longest_quiet_s(settings.judge_timeout_s, has_pairs=settings.pairs is not None),
        )
        host, port = settings.health_host, settings.health_port
        self.health = HealthEndpoint(checks.health, checks.ready, host=host, port=port, replaced=replaced)

    @property
    def servers(self) -> tuple[HttpServer, ...]:
        """The HTTP servers of metrics and health checks."""
        return tuple(server for server in (self.endpoint, self.health) if server is not None)

    @guarded
    def refresh_baselines(self) -> None:
        """Take frozen baselines that are new; a store that cannot be read is counted as lost and asked again."""
        self.drift.refresh()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored and exported; False when the time is over first."""
        deadline = time.monotonic() + timeout_s
        is_scored = self.wait_scored(timeout_s)
        is_scored = self._are_leftovers_published(deadline) and is_scored
        left_s = max(deadline - time.monotonic(), 0.0)
        calls = [self.providers.flush, *self._sink_calls("flush")]
        if self.storing is not None:
            calls.append(self.storing.flush)
        is_exported = _all_true(calls, left_s)
        if self.outbox is not None:
            left_s = max(deadline - time.monotonic(), _GRACE_S)
            _all_true([self.outbox.drain], left_s, grace_s=0.0)  # another process may have the file
        return is_exported and is_scored

    def wait_scored(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored, and a spool that this process scores is empty.

        The scorer starts for what another process left in the spool.
        """
        deadline = time.monotonic() + timeout_s
        is_drained = self.pipeline.drain(timeout_s)
        is_settled = self.ledger.wait_settled(max(deadline - time.monotonic(), 0.0))
        return is_drained and is_settled and self._is_spool_scored(deadline)

    @property
    def postponed_for(self) -> str:
        """Reason for which a unit was last given back to be scored later; "" when none was."""
        return self._worker.postponed_for

    def shutdown(self, timeout_s: float, *, kept: Sequence[object] = ()) -> bool:
        """Score and export what is there, then stop; what is left at the deadline is counted and logged.

        Sinks and store are closed; those in `kept` go on in another service and are only flushed.
        """
        if self._is_closed:
            return True
        self._is_closed = True
        deadline = time.monotonic() + timeout_s
        is_scored = self.pipeline.close(timeout_s * 0.2)
        self.pipeline.refuse()
        is_scored = self._worker.stop((deadline - time.monotonic()) * 0.6) and is_scored
        is_scored = self.queue.close(timeout_s * 0.2) and is_scored
        for server in self.servers:
            server.close()
        is_emptied = True
        if self.outbox is not None:
            half_s = max(deadline - time.monotonic(), 0.05) / 2  # the rest is for metrics and spans
            is_emptied = _all_true([partial(self._empty_outbox, self.outbox)], half_s, grace_s=0.0)
        left_s = max(deadline - time.monotonic(), 0.05)
        is_exported = _all_true([self.providers.shutdown, *self._sink_calls("close", kept)], left_s) and is_emptied
        if self.storing is not None:
            left_s = max(deadline - time.monotonic(), _GRACE_S)
            is_kept = any(self.storing is other for other in kept)
            end_store = self.storing.flush if is_kept else self.storing.close
            is_exported = _all_true([partial(self._close_outbox, end_store)], left_s) and is_exported
        self.instruments.close()
        if self._limiter is not None:
            self._limiter.close()  # after the last export, which tells what is left of its budget
        if not (is_scored and is_exported):
            _log.warning("ragtrace: shutdown, limit %.1f s: %s", timeout_s, self._left(is_exported=is_exported))
        return is_scored and is_exported

    def _take_receipt(self, receipt: Receipt) -> None:
        """Have an acknowledgement written by the scorer's thread; exporters call it in theirs."""
        if self.outbox is not None:
            self.outbox.take(receipt)
            self._worker.call_soon(self.outbox.note)

    def _empty_outbox(self, outbox: ScoreOutbox, timeout_s: float) -> bool:
        """Send what ended processes left, and events that a full queue dropped; False when time is over first.

        Of a receiver that takes nothing no more is asked; the next process will. So will it where the scorer's
        thread hangs, which may be publishing the same scores.
        """
        began = time.monotonic()
        if self._worker.is_alive:
            return self.providers.flush_events(timeout_s) and outbox.drain(began + timeout_s - time.monotonic())
        self.handler.republish(is_ending=True)
        while not outbox.is_refused and (left_s := began + timeout_s - time.monotonic()) > 0.0:
            if not (self.providers.flush_events(left_s) and outbox.drain(left_s)):
                return False
            sent = self.handler.republish(is_ending=True)
            if not sent:
                sent = self.handler.resend(older_s=time.monotonic() - began)  # so each of them once
            if not sent:
                return True
        return outbox.is_refused  # which the providers tell

    def _close_outbox(self, end_store: Callable[[float], bool], timeout_s: float) -> bool:
        """Note what was delivered, and then flush or close the store."""
        if self.outbox is not None:
            self.outbox.close(timeout_s)
        return end_store(timeout_s)

    def _are_leftovers_published(self, deadline: float) -> bool:
        """Wait until the scorer's thread has published what ended processes left in the store."""
        if self.outbox is None or not self.outbox.has_leftovers():
            return True
        self.begin()
        while self.outbox.has_leftovers():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _left(self, *, is_exported: bool) -> str:
        """Return in words what a shutdown lost, and what it did not."""
        ends, unscored = self.ledger.read()
        unscored += sum(ends.get(("dropped", reason), 0) for reason in ("shutdown", "spool_unwritable"))
        unsent = ", ".join(_counted(n, _ONE[signal]) for signal, n in self.providers.unsent().items())
        parts = [
            f"not scored: {_counted(unscored, 'trace')}" if unscored else "every sampled trace was scored",
            f"not sent: {unsent}" if unsent else "everything captured was sent",
        ]
        if not (unsent or is_exported):
            parts[-1] = "a provider or a sink did not finish in time"
        if self.settings.spool is not None:
            parts.append("what waits in the spool is kept")
        if self.storing is not None:
            parts.append("scores in the store are kept")
        return "; ".join(parts)

    def leave_to_parent(self) -> None:
        """Give up everything in a forked child: runs, ports, gauges and receipts are the parent's."""
        self.pipeline.leave_to_parent()
        self.instruments.close()
        self.providers.reset_after_fork()
        for server in self.servers:
            server.leave_to_parent()

    async def _close(self) -> None:
        if self.canaries is not None:
            await self.canaries.aclose()
        await self.scorer.aclose()

    @guarded
    def _sweep(self) -> None:
        self.recorder.sweep()
        if self.canaries is not None:
            self.canaries.tick()
        self._share_series()
        if self.outbox is not None:
            self.handler.republish()
            self.handler.resend()
            self.outbox.sweep()
        if self.storing is not None:
            self.storing.sweep()
        self.refresh_baselines()

    @guarded
    def _share_series(self) -> None:
        """Tell the other processes of a spool what is captured here, and pre-create the series of theirs."""
        instruments = self.instruments
        if isinstance(self.queue, SharedQueue):
            for name in self.queue.publish_names([json.dumps(like) for like in instruments.known_series()]):
                instruments.precreate(*json.loads(name))

    def _is_spool_scored(self, deadline: float) -> bool:
        """Wait until a spool that this process scores is empty; what a worker scores is out of our hands."""
        if not self.queue.flush(max(deadline - time.monotonic(), 0.0)):
            return False
        if self.settings.scorer == "worker":
            self._say_who_scores()
            return True
        while (spool := counters_of(self.queue, is_fresh=True)) is not None:
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
        if self.ledger.offered or self._has_said_who_scores:
            return
        spool = counters_of(self.queue, is_fresh=True)
        if spool is not None and spool.pending:
            self._has_said_who_scores = True
            _log.warning(
                "%s in the spool %s for `ragtrace worker`; with scorer=worker this process scores nothing",
                "1 unit waits" if spool.pending == 1 else f"{spool.pending} units wait",
                self.settings.spool,
            )

    def _sink_calls(self, method: str, kept: Sequence[object] = ()) -> list[Callable[[float], bool]]:
        """Return the optional method of each sink; that of a sink that is kept is ``flush``."""
        wanted = ((sink, "flush" if any(sink is other for other in kept) else method) for sink in self.sinks)
        return [getattr(sink, name) for sink, name in wanted if getattr(sink, name, None) is not None]


def _all_true(calls: Sequence[Callable[[float], bool]], timeout_s: float, *, grace_s: float = _GRACE_S) -> bool:
    """Give every call the same time, side by side; False when one returns False, raises or is late."""
    return all_within([partial(_is_done, call, timeout_s) for call in calls], timeout_s + grace_s)


def _is_done(call: Callable[[float], bool | None], timeout_s: float) -> bool:
    return call(timeout_s) is not False  # a sink of the application may return nothing


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
