"""Builds a `Service` from settings, and once more in a forked child."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ragtrace.capture.off_loop import off_loop
from ragtrace.capture.passages import PROCESS_KEY
from ragtrace.errors import ConfigError
from ragtrace.model.passage import IdKey
from ragtrace.service.judges import build_scorer, is_limited, left_out_text, with_first_judge
from ragtrace.service.service import Service
from ragtrace.settings import secret
from ragtrace.telemetry.setup.exporters import scrape_address, wants_scrape
from ragtrace.telemetry.setup.providers import has_own_meters, providers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from ragtrace.capture import Recorder
    from ragtrace.http_server import HttpServer
    from ragtrace.metrics.base import Output
    from ragtrace.model import MetricResult
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.storing import Storing
    from ragtrace.settings import Settings
    from ragtrace.sinks.base import Sink
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint

_log = logging.getLogger("ragtrace")
_UNDO_S = 1.0


def build(
    settings: Settings,
    *,
    recorder: Recorder,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
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
    scorer = with_first_judge(build_scorer(settings, limiter), settings)
    if line := left_out_text(scorer):
        _log.info("%s", line)
    storing = _storing(settings)
    sinks = _all_sinks(settings, sinks, scorer)
    servers = replaced.servers if replaced is not None else ()
    with ExitStack() as undone:
        endpoint = _endpoint(settings, meter_provider, servers, needs_ports=needs_ports)
        if endpoint is not None:
            undone.callback(endpoint.close)
        chosen = providers(
            tracer_provider,
            meter_provider,
            logger_provider,
            readers=[endpoint.reader] if endpoint else [],
        )
        undone.callback(chosen.discard, _UNDO_S)
        service = Service(
            settings,
            providers=chosen,
            recorder=recorder,
            scorer=scorer,
            limiter=limiter,
            sinks=sinks,
            storing=storing,
            endpoint=endpoint,
            id_key=_id_key(settings, storing),
            captures=captures,
        )
        try:
            service.serve_health(servers)
        except ConfigError as error:
            _refuse_port(error, needs_ports=needs_ports)
        service.refresh_baselines()
        # Here, as a sink of the service before is told nothing where this one fails.
        _tell(sinks, "take_content", settings.content)
        service.instruments.take_gauges()  # nothing fails behind it: until now the gauges are another's
        undone.pop_all()
    return service


def rebuild(inherited: Service) -> Service:
    """Build the service of a forked child from its parent's settings, given providers, sinks and store.

    Our own providers are built anew, so that its series are not the parent's. It serves no metrics and no health
    checks: the ports are the parent's.

    Raises:
        ConfigError: as `build`.
    """
    settings = inherited.settings
    limiter = _limiter(settings)
    scorer = with_first_judge(build_scorer(settings, limiter, pairs=inherited.scorer.pairs), settings)
    service = Service(
        settings,
        providers=inherited.providers.of_child(),
        recorder=inherited.recorder,
        scorer=scorer,
        limiter=limiter,
        sinks=inherited.sinks,
        storing=inherited.storing,
        id_key=inherited.id_key,
        captures=inherited.captures,
    )
    service.refresh_baselines()
    service.instruments.take_gauges()
    return service


def _endpoint(
    settings: Settings, meter_provider: MeterProvider | None, replaced: Sequence[HttpServer], *, needs_ports: bool
) -> OpenMetricsEndpoint | None:
    """Serve the metrics where a port is set, or where OTEL_METRICS_EXPORTER asks for it."""
    if settings.metrics_port is not None:
        host, port = settings.metrics_host, settings.metrics_port
    elif wants_scrape() and has_own_meters(meter_provider):
        host, port = scrape_address()
        needs_ports = False  # every process of a host has the variable, so a taken port must not end one
    else:
        return None
    from ragtrace.sinks.prometheus import OpenMetricsEndpoint  # noqa: PLC0415 - imported where it is wanted

    try:
        return OpenMetricsEndpoint(host, port, replaced=replaced)
    except ConfigError as error:
        _refuse_port(error, needs_ports=needs_ports)
        return None


def _refuse_port(error: ConfigError, *, needs_ports: bool) -> None:
    if needs_ports:
        raise error
    _log.warning("%s; this process captures and scores without it", error)


def _limiter(settings: Settings) -> JudgeLimiter | None:
    """Return the limiter before a judge that costs something; the offline one has no limits."""
    if not is_limited(settings):
        return None
    from ragtrace.service.limits import build_limiter  # noqa: PLC0415 - imports sqlite3

    return build_limiter(settings)


def _storing(settings: Settings) -> Storing | None:
    if settings.store.path is None:
        return None
    from ragtrace.service.storing import Storing  # noqa: PLC0415 - imports sqlite3

    return off_loop(Storing.of)(settings)


def _id_key(settings: Settings, storing: Storing | None) -> IdKey | None:
    """Return the key of the ids that are made of texts, None where texts leave as they are.

    It is made of the setting, or stands in the store's file, or is the process's.
    """
    if settings.content == "full" and settings.redact is None:
        return None
    if given := secret(settings.id_key):
        return IdKey(given.encode("utf-8", "surrogatepass"))
    kept = None if storing is None else off_loop(storing.id_key)()
    return PROCESS_KEY if kept is None else kept


def _shown(output: Output, threshold: float) -> float:
    """Return a threshold on the scale of the values; that of a 1-5 form may be a share of its range."""
    is_share = output.is_five_point and threshold < output.low
    return output.low + threshold * (output.high - output.low) if is_share else threshold


def _all_sinks(settings: Settings, given: Sequence[Sink], scorer: Scorer) -> tuple[Sink, ...]:
    """Return the given sinks, told of the metrics, and the console where settings ask for it."""
    outputs = [output for metric in scorer.metrics for output in metric.spec.outputs]
    lower_is_better = {output.name for output in outputs if output.direction == "down"}
    limits = {output: scorer.threshold_of(output) for output in outputs}
    thresholds = {output.name: _shown(output, limit) for output, limit in limits.items() if limit is not None}
    sinks = list(given)
    if settings.console:
        from ragtrace.sinks.console import ConsoleSink  # noqa: PLC0415 - imported where it is wanted

        by_name = {output.name: output for output in outputs}

        def threshold_of(result: MetricResult) -> float | None:
            output = by_name.get(result.name)
            limit = scorer.threshold_of(output, result.judge.model if result.judge else None) if output else None
            return _shown(output, limit) if output is not None and limit is not None else None

        sinks.append(ConsoleSink(lower_is_better, threshold_of))
    _tell(sinks, "take_directions", lower_is_better)
    _tell(sinks, "take_thresholds", thresholds)
    return tuple(sinks)


def _tell(sinks: Iterable[Sink], name: str, fact: object) -> None:
    """Call a method that a sink may have."""
    for sink in sinks:
        take = getattr(sink, name, None)
        if callable(take):
            take(fact)
