"""The service of one process: it processes the recorder's runs, scores them, and publishes the scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.capture import guarded
from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError
from ragtrace.metrics.evaluate import expected
from ragtrace.queues import SharedQueue
from ragtrace.queues.registry import open_queue
from ragtrace.sampling import Pressure, Sampler
from ragtrace.scoring import Ledger, Worker
from ragtrace.service.baseline_monitor import BaselineMonitor
from ragtrace.service.feedback.reporting import FeedbackReport
from ragtrace.service.flusher import Flusher
from ragtrace.service.gauges import ServiceGauges
from ragtrace.service.looker import Looker
from ragtrace.service.means.combined import combined_means
from ragtrace.service.means.mix import MixMonitor
from ragtrace.service.pipeline import Pipeline
from ragtrace.service.rates import rates_of
from ragtrace.service.score_handler import ScoreHandler
from ragtrace.settings import secret
from ragtrace.telemetry.metrics.instruments import Instruments
from ragtrace.telemetry.setup.flushing import drain_with
from ragtrace.telemetry.spans.evaluation import EvaluationWriter
from ragtrace.telemetry.spans.writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.capture import Recorder
    from ragtrace.http_server import HttpServer
    from ragtrace.model import RagRecord
    from ragtrace.model.passage import IdKey
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.anchors.rounds import AnchorRounds
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.anchors.falls import Falls
    from ragtrace.service.health import HealthEndpoint
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint
    from ragtrace.telemetry.setup.providers import Providers
    from ragtrace.telemetry.setup.receipts import Receipt


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
        id_key: key of the ids that are made of texts; None makes plain hashes.
        captures: whether this process shows a count of captured traces.

    Attributes:
        health: serves health checks; None without a port.
        outbox: keeps scores until they were delivered; None without a store, and where a worker scores.
        canaries: tell whether the judge obeys what it reads; None where there are none.
        anchors: score kept runs again; None where there are none.
        looker: looks for falls in the store; None without one, and where a worker scores.
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
        id_key: IdKey | None = None,
        captures: bool = True,
    ) -> None:
        self.settings = settings
        self.providers = providers
        self.recorder = recorder
        self.scorer = scorer
        self.sinks = tuple(sinks)
        self.storing = storing
        self.endpoint = endpoint
        self.id_key = id_key
        self.captures = captures
        self.health: HealthEndpoint | None = None
        self._limiter = limiter
        self._is_closed = False

        self.instruments = Instruments(providers.meters(), window_s=settings.window_s, captures=captures)
        outputs = {output.name: output for metric in scorer.metrics for output in metric.spec.outputs}
        for result in expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs):
            if result.name in outputs:  # its label sets exist at 0 before its first score
                self.instruments.precreate_metric(result, outputs[result.name])

        self.combined = combined_means(scorer, outputs, self.instruments, window_s=settings.window_s)

        self.ledger = Ledger()
        if settings.units_at is None and settings.scorer == "worker":
            raise ConfigError(
                "scorer=worker needs a queue that the worker reads: set spool to a file, or queue to an address"
            )
        self.queue = open_queue(
            settings.units_at,
            capacity=settings.queue.units,
            capacity_bytes=settings.queue.bytes,
            spool_bytes=settings.spool.bytes,
            is_producer=settings.scorer == "worker",
            ended=self.ledger.end,
            config=secret(settings.kafka_config),
        )

        # A process that hands its units to a worker has no scores to publish or to compare, and asks no judge.
        own_storing, own_limiter = (storing, limiter) if settings.scorer == "thread" else (None, None)
        self.outbox: ScoreOutbox | None = None
        self.looker: Looker | None = None
        self.anchors, falls = _anchors_of(settings, scorer, own_storing, own_limiter)
        if own_storing is not None:
            from ragtrace.service.score_outbox import ScoreOutbox  # noqa: PLC0415 - imports sqlite3

            self.outbox = ScoreOutbox(own_storing, providers.receipts)
            self.looker = Looker(own_storing.store.path, providers.logger())
            own_storing.store.kind_of = self._kind_of
        self.baselines = BaselineMonitor(
            outputs,
            frozen=own_storing.store.baselines if own_storing is not None else None,
            falls=falls,
        )
        self.mix = MixMonitor(outputs, store=own_storing.store if own_storing is not None else None)
        self.canaries: Canaries | None = None
        if own_limiter is not None:
            from ragtrace.service.canaries import build_canaries  # noqa: PLC0415 - imports sqlite3

            self.canaries = build_canaries(settings, own_limiter)

        self.gauges = ServiceGauges(
            settings,
            ledger=self.ledger,
            queue=self.queue,
            baselines=self.baselines,
            limiter=limiter,
            canaries=self.canaries,
            combined=self.combined,
            anchors=falls.anchors if falls is not None else None,
            looker=self.looker,
        )
        hash_key = id_key if settings.content == "none" else None  # else the texts leave too
        if id_key is not None and scorer.deep_retriever is not None:
            scorer.deep_retriever.id_key = id_key
        evaluation = EvaluationWriter(
            providers.tracer(),
            providers.logger(),
            content=settings.content,
            attach=settings.attach,
            id_key=hash_key,
        )
        self.feedback = FeedbackReport(
            self.instruments,
            evaluation,
            agreement=own_storing.store.agreement if own_storing is not None else None,
            stored_run=storing.store.run_of if storing is not None else None,
        )
        self.instruments.observe({**self.gauges.readers(), **self.feedback.readers(), **self.mix.readers()})
        self.handler = ScoreHandler(
            scorer=scorer,
            instruments=self.instruments,
            evaluation=evaluation,
            outputs=outputs,
            baselines=self.baselines,
            mix=self.mix,
            sinks=self.sinks,
            outbox=self.outbox,
            limiter=limiter,
            combined=self.combined,
        )
        self._worker = Worker(
            self.queue,
            self.handler.handle,
            concurrency=settings.concurrency,
            missed=self.handler.missed,
            sweep=self._sweep,
            tick=self._tick,
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
                id_key=hash_key,
            ),
            instruments=self.instruments,
            sampler=self.sampler,
            metrics=[metric.spec.name for metric in scorer.metrics],
            ledger=self.ledger,
            queue=self.queue,
            worker=self._worker,
            remember=[
                self.feedback.remember,
                *([storing.remember] if storing is not None else ()),
                *_of_console(self.sinks, settings),
            ],
            lost=self.handler.lost,
        )
        self._flusher = Flusher(
            settings,
            providers=providers,
            instruments=self.instruments,
            pipeline=self.pipeline,
            ledger=self.ledger,
            queue=self.queue,
            worker=self._worker,
            handler=self.handler,
            begin=self.begin,
            sinks=self.sinks,
            storing=storing,
            outbox=self.outbox,
            limiter=limiter,
        )
        if storing is not None:
            storing.wait_for_runs = self.pipeline.drain
            storing.on_rated = self.feedback.rated
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
        if settings.health.port is None:
            return
        from ragtrace.service.health import HealthChecks, HealthEndpoint, longest_quiet_s  # noqa: PLC0415

        checks = HealthChecks(
            self._worker,
            self.queue,
            limiter=self._limiter,
            spool=Path(settings.spool.path) if settings.spool.path else None,
            quiet_s=longest_quiet_s(settings.judge.timeout_s, has_pairs=settings.pairs is not None),
        )
        host, port = settings.health.host, settings.health.port
        self.health = HealthEndpoint(checks.health, checks.ready, host=host, port=port, replaced=replaced)

    @property
    def servers(self) -> tuple[HttpServer, ...]:
        """The HTTP servers of metrics and health checks."""
        return tuple(server for server in (self.endpoint, self.health) if server is not None)

    @guarded
    def _kind_of(self, record: RagRecord) -> str | None:
        return self.mix.kind_of(self.instruments.workflow(record), record)

    @guarded
    @off_loop
    def refresh_baselines(self) -> None:
        """Take frozen baselines that are new; a store that cannot be read is counted as lost and asked again."""
        self.baselines.refresh()
        self.mix.refresh()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored and exported; False when the time is over first."""
        return self._flusher.flush(timeout_s)

    def wait_scored(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is scored, and a spool that this process scores is empty.

        The scorer starts for what another process left in the spool.
        """
        return self._flusher.wait_scored(timeout_s)

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
        return self._flusher.shutdown(timeout_s, servers=self.servers, kept=kept)

    def _take_receipt(self, receipt: Receipt) -> None:
        """Have an acknowledgement written by the scorer's thread; exporters call it in theirs."""
        if self.outbox is not None:
            self.outbox.take(receipt)
            self._worker.call_soon(self.outbox.note)

    def leave_to_parent(self) -> None:
        """Give up everything in a forked child: runs, ports, gauges and receipts are the parent's."""
        self.pipeline.leave_to_parent()
        self.instruments.close()
        self.providers.leave_to_parent()
        if self.looker is not None:
            self.looker.leave_to_parent()
        for server in self.servers:
            server.leave_to_parent()

    async def _close(self) -> None:
        if self.canaries is not None:
            await self.canaries.aclose()
        if self.anchors is not None:
            await self.anchors.aclose()
        if self.looker is not None:
            await self.looker.aclose()
        await self.scorer.aclose()

    @guarded
    def _tick(self) -> None:
        if self.canaries is not None:
            self.canaries.tick()
        if self.anchors is not None:
            self.anchors.tick()
        if self.looker is not None:
            self.looker.tick()

    @guarded
    def _sweep(self) -> None:
        self.recorder.sweep()
        self._share_series()
        if self.outbox is not None:
            self.handler.republish()
            self.handler.resend()
            self.outbox.sweep()
        if self.storing is not None:
            self.storing.sweep()
        self.feedback.compare()
        self.refresh_baselines()
        self._look_for_falls()

    @guarded
    def _look_for_falls(self) -> None:
        """Read the anchors; a store that cannot be read is counted as lost and asked again."""
        self.baselines.look_for_falls()

    @guarded
    def _share_series(self) -> None:
        """Tell the other processes of a spool what is captured here, and pre-create the series of theirs."""
        instruments = self.instruments
        if isinstance(self.queue, SharedQueue):
            for name in self.queue.publish_names([json.dumps(like) for like in instruments.known_series()]):
                instruments.precreate(*json.loads(name))


def _anchors_of(
    settings: Settings, scorer: Scorer, storing: Storing | None, limiter: JudgeLimiter | None
) -> tuple[AnchorRounds | None, Falls | None]:
    if storing is None:
        return None, None
    from ragtrace.service.anchors.build import build_anchors  # noqa: PLC0415 - imports sqlite3

    return build_anchors(settings, scorer, storing.store.anchors, limiter)


def _of_console(sinks: Sequence[Sink], settings: Settings) -> list[Callable[[RagRecord], None]]:
    """Return what shows the readings of captured runs, where the settings ask for a console."""
    if not settings.console:
        return []
    from ragtrace.sinks.console import ConsoleSink  # noqa: PLC0415 - imported where it is wanted

    return [sink.remember for sink in sinks if isinstance(sink, ConsoleSink)]
