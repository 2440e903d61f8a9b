"""Builds a `Service` from settings: the only place where the parts meet."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ragtrace.errors import ConfigError
from ragtrace.metrics.evaluate import expected
from ragtrace.service.drift import DriftMonitor
from ragtrace.service.judges import build_scorer, is_limited, left_out_text
from ragtrace.service.score_handler import ScoreHandler
from ragtrace.service.service import Service
from ragtrace.telemetry.metrics.instruments import Instruments
from ragtrace.telemetry.setup.exporters import scrape_address, wants_scrape
from ragtrace.telemetry.setup.providers import Providers, has_own_meters, providers
from ragtrace.telemetry.spans.evaluation import EvaluationWriter
from ragtrace.telemetry.spans.writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.capture import Recorder
    from ragtrace.http_server import HttpServer
    from ragtrace.metrics.base import Metric, Output
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.service.limits import ServiceLimiter
    from ragtrace.service.score_outbox import ScoreOutbox
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint

T = TypeVar("T")
_log = logging.getLogger("ragtrace")
_UNDO_S = 1.0


def build(
    settings: Settings,
    *,
    recorder: Recorder,
    tracer_provider: Any = None,
    meter_provider: Any = None,
    logger_provider: Any = None,
    sinks: Sequence[Sink] = (),
    replaced: Service | None = None,
    needs_ports: bool = True,
    captures: bool = True,
) -> Service:
    """Build the service of one set of settings; without `needs_ports` a port that is taken is a warning.

    Without `captures` the process scores what others captured, and shows no count of captured traces. A port of
    the service that is replaced is taken over.

    Raises:
        ConfigError: an unknown metric or judge, a missing key, a taken port, a wrong endpoint; nothing has
            begun then.
    """
    limiter = _limiter(settings)
    scorer = build_scorer(settings, limiter)
    if line := left_out_text(scorer):
        _log.info("%s", line)
    storing = _storing(settings)
    sinks = (*sinks, *_own_sinks(settings, scorer.metrics))
    servers = replaced.servers if replaced is not None else ()
    endpoint = _opened(lambda: _endpoint(settings, servers), needs_ports=needs_ports)
    if endpoint is None and settings.metrics_port is None and wants_scrape() and has_own_meters(meter_provider):
        # Every process of a host has the variable, so a taken port must not end one.
        endpoint = _opened(lambda: _endpoint_at(*scrape_address(), servers), needs_ports=False)
    with ExitStack() as undone:
        if endpoint is not None:
            undone.callback(endpoint.close)
        given = providers(
            tracer_provider,
            meter_provider,
            logger_provider,
            service_name=settings.service_name,
            readers=[endpoint.reader] if endpoint else [],
        )
        undone.callback(given.discard, _UNDO_S)
        service = _assembled(
            settings, recorder, scorer, given, endpoint, sinks, storing, limiter, captures=captures
        )
        _opened(lambda: service.serve_health(servers), needs_ports=needs_ports)
        service.instruments.take_gauges()  # nothing fails behind it: until now the gauges are another's
        undone.pop_all()
    return service


def _opened(opening: Callable[[], T], *, needs_ports: bool) -> T | None:
    try:
        return opening()
    except ConfigError as error:
        if needs_ports:
            raise
        _log.warning("%s; this process captures and scores without it", error)
        return None


def _assembled(
    settings: Settings,
    recorder: Recorder,
    scorer: Scorer,
    given: Providers,
    endpoint: OpenMetricsEndpoint | None,
    sinks: Sequence[Sink],
    storing: Storing | None,
    limiter: ServiceLimiter | None,
    *,
    captures: bool,
) -> Service:
    writer = SpanWriter(
        given.tracer(),
        content=settings.content,
        dialect=settings.dialect,
        prompt_content=settings.prompt_content,
        max_span_bytes=settings.max_span_bytes,
    )
    instruments = Instruments(given.meters(), window_s=settings.window_s, captures=captures)
    evaluation = EvaluationWriter(
        given.tracer(),
        given.logger(),
        content=settings.content,
        attach=settings.attach,
        max_span_bytes=settings.max_span_bytes,
    )
    outputs = {output.name: output for metric in scorer.metrics for output in metric.spec.outputs}
    for result in expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs):
        if result.name in outputs:  # its label sets exist at 0 before its first score
            instruments.precreate_metric(result, outputs[result.name])
    drift = _drift(settings, outputs, instruments, storing)
    outbox = _outbox(settings, storing, given)
    service = Service(
        settings,
        providers=given,
        writer=writer,
        instruments=instruments,
        new_handler=partial(
            ScoreHandler,
            scorer=scorer,
            instruments=instruments,
            evaluation=evaluation,
            outputs=outputs,
            drift=drift,
            sinks=sinks,
            outbox=outbox,
            limiter=limiter,
        ),
        scorer=scorer,
        drift=drift,
        sinks=sinks,
        endpoint=endpoint,
        sweep=recorder.sweep,
        storing=storing,
        outbox=outbox,
        limiter=limiter,
        canaries=_canaries(settings, limiter),
    )
    instruments.observe(service.gauges.readers())
    service.refresh_baselines()
    return service


def _drift(
    settings: Settings, outputs: Mapping[str, Output], instruments: Instruments, storing: Storing | None
) -> DriftMonitor:
    # Who hands its units to a worker scores nothing, and so has nothing to hold against a baseline.
    store = storing.store if storing is not None and settings.scorer == "thread" else None
    return DriftMonitor(
        outputs,
        baseline=settings.drift_baseline,
        tolerance=settings.drift_tolerance,
        count_alarms=instruments.count_drift_alarms,
        frozen=store.baselines if store is not None else None,
    )


def _endpoint(settings: Settings, replaced: Sequence[HttpServer]) -> OpenMetricsEndpoint | None:
    if settings.metrics_port is None:
        return None
    return _endpoint_at(settings.metrics_host, settings.metrics_port, replaced)


def _endpoint_at(host: str, port: int, replaced: Sequence[HttpServer]) -> OpenMetricsEndpoint:
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint  # noqa: PLC0415 - only who wants it pays for it

    return OpenMetricsEndpoint(host, port, replaced=replaced)


def _limiter(settings: Settings) -> ServiceLimiter | None:
    """Return the limiter before a judge that costs something; the offline one has no limits."""
    if not is_limited(settings):
        return None
    from ragtrace.service.limits import ServiceLimiter  # noqa: PLC0415 - brings sqlite3 in

    return ServiceLimiter(settings)


def _canaries(settings: Settings, limiter: ServiceLimiter | None) -> Callable[[], Canaries | None]:
    """Return what makes the canaries, once a process; who hands its units to a worker has none."""
    if limiter is None or settings.scorer == "worker":
        return lambda: None
    from ragtrace.service.canaries import build_canaries  # noqa: PLC0415 - only beside a judge that costs

    return lambda: build_canaries(settings)


def _storing(settings: Settings) -> Storing | None:
    if settings.store is None:
        return None
    from ragtrace.service.storing import Storing  # noqa: PLC0415 - sqlite3 only for those who want it

    return Storing.of(settings)


def _outbox(settings: Settings, storing: Storing | None, given: Providers) -> ScoreOutbox | None:
    """Return the outbox of the scores; who hands its units to a worker publishes none."""
    if storing is None or settings.scorer != "thread":
        return None
    from ragtrace.service.score_outbox import ScoreOutbox  # noqa: PLC0415 - the same

    return ScoreOutbox(storing, given.receipts)


def _own_sinks(settings: Settings, metrics: Sequence[Metric]) -> list[Sink]:
    found: list[Sink] = []
    if settings.console:
        from ragtrace.sinks.console import ConsoleSink  # noqa: PLC0415 - only who wants it pays for it

        outputs = (output for metric in metrics for output in metric.spec.outputs)
        found.append(ConsoleSink({output.name for output in outputs if output.direction == "down"}))
    if settings.phoenix_endpoint is not None:
        from ragtrace.sinks.phoenix import PhoenixSink  # noqa: PLC0415 - the same

        key, content = settings.phoenix_api_key, settings.content
        found.append(PhoenixSink(settings.phoenix_endpoint, api_key=key, content=content))
    return found
