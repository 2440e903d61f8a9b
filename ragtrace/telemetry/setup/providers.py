"""Choose providers: given ones, else the application's global ones, else our own from ``OTEL_*``."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from opentelemetry import _logs, metrics, trace

from ragtrace import semconv
from ragtrace._version import __version__
from ragtrace.capture import record_internal_error
from ragtrace.errors import ConfigError
from ragtrace.telemetry.setup.exporters import (
    OwnProvider,
    check,
    is_disabled,
    own_logger_provider,
    own_meter_provider,
    own_tracer_provider,
    read_by,
)
from ragtrace.telemetry.setup.flushing import unended
from ragtrace.telemetry.setup.receipts import Receipts
from ragtrace.telemetry.setup.resource import instance_of, own_resource, warn_of_shared_series
from ragtrace.telemetry.setup.zeros import send_zeros_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.trace import Tracer, TracerProvider

    from ragtrace.telemetry.setup.delivery import CountedLogs, CountedMetrics, CountedSpans
    from ragtrace.telemetry.setup.receipts import Source

Given = TypeVar("Given")
_STOP_S = 0.2  # for a late exporter to give up its retries


class Providers:
    """The three providers; our own are flushed, counted and shut down.

    Built by `providers`.

    Attributes:
        tracer_provider: makes spans.
        meter_providers: one, or two where a scrape endpoint stands beside the application's provider.
        logger_provider: takes events.
        receipts: acknowledgements of scores.
        unended: signals whose export did not end in time, once `shutdown` was called.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider,
        meter_providers: Sequence[MeterProvider],
        logger_provider: LoggerProvider,
        *,
        own: Sequence[OwnProvider[object]] = (),
        receipts: Receipts | None = None,
    ) -> None:
        self._instance = instance_of(meter_providers[0])
        self.receipts = receipts or Receipts()
        self.tracer_provider = tracer_provider
        self.meter_providers = tuple(meter_providers)
        self.logger_provider = logger_provider
        names = ("metrics", "scraped metrics")
        meters = dict(zip(names, meter_providers, strict=False))
        self._all = {"spans": tracer_provider, **meters, "events": logger_provider}
        self.unended: list[str] = []
        self._owned = [it.provider for it in own]
        self._exporters = [exporter for it in own for exporter in it.exporters]
        self._deliveries = [it.delivery for it in own if it.delivery is not None]

    def tracer(self) -> Tracer:
        """Return the tracer of scope ``ragtrace``."""
        return self.tracer_provider.get_tracer(semconv.SCOPE, __version__, semconv.SCHEMA_URL)

    def meters(self) -> list[Meter]:
        """Return one meter of scope ``ragtrace`` for each meter provider."""
        names = (semconv.SCOPE, __version__, semconv.SCHEMA_URL)
        return [provider.get_meter(*names) for provider in self.meter_providers]

    def logger(self) -> Logger:
        """Return the logger of scope ``ragtrace``."""
        return self.logger_provider.get_logger(semconv.SCOPE, __version__, semconv.SCHEMA_URL)

    def flush(self, timeout_s: float) -> bool:
        """Export everything there is; return whether that is known to have worked within `timeout_s`.

        Blocks for at most about `timeout_s`. Of given providers only their own word is known; of our own
        pipelines every item that did not arrive since the last call makes it False.
        """
        began_ns = time.monotonic_ns()
        taken = [delivery.taken for delivery in self._deliveries]  # runs go on, and their spans are under way
        calls = {name: partial(_flush, provider, timeout_s) for name, provider in self._all.items()}
        is_flushed = not unended(calls, timeout_s)
        if is_flushed:
            self.receipts.given(began_ns)
        # Every account is asked, since asking also marks missing items as reported.
        wholes = [delivery.is_whole(count) for delivery, count in zip(self._deliveries, taken, strict=True)]
        return is_flushed and all(wholes)

    def flush_events(self, timeout_s: float) -> bool:
        """Export pending events; return whether that ended in time. The receipts hold the acknowledgements."""
        return not unended({"events": partial(_flush, self.logger_provider, timeout_s)}, timeout_s)

    def shutdown(self, timeout_s: float) -> bool:
        """Flush everything, shut our own providers down; return whether nothing was left to send.

        Keeps its own deadline. Given providers are flushed and stay open: they are the application's.
        """
        began_ns = time.monotonic_ns()
        calls = {
            name: partial(_stop if provider in self._owned else _flush, provider, timeout_s)
            for name, provider in self._all.items()
        }
        self.unended = unended(calls, timeout_s)
        if not self.unended:
            self.receipts.given(began_ns)
        elif self._exporters:
            # Ends retries, so that no thread of ours lives on for the exporters' own 10 to 30 s.
            ends = {f"exporter {number}": partial(_end, one) for number, one in enumerate(self._exporters, 1)}
            unended(ends, _STOP_S)
        wholes = [delivery.is_whole() for delivery in self._deliveries]
        return not self.unended and all(wholes)

    def discard(self, timeout_s: float) -> None:
        """End our own providers without sending anything: they were never used."""
        for delivery in self._deliveries:
            delivery.is_void = True
        unended({name: partial(_shut, one) for name, one in self._all.items() if one in self._owned}, timeout_s)

    def leave_to_parent(self) -> None:
        """Send nothing more, in a forked child: items, counts, connections and receipts are the parent's."""
        for delivery in self._deliveries:
            delivery.reset_after_fork()
            delivery.is_void = True
        self.receipts.reset_after_fork()

    def of_child(self) -> Providers:
        """Return the providers of a forked child: those of the application, and our own built anew.

        The parent's end in their threads, which the SDK begins anew in a child.

        Raises:
            ConfigError: as `providers`.
        """
        meters = self._given(self.meter_providers[0])
        found = _built(
            self._given(self.tracer_provider),
            meters,
            self._given(self.logger_provider),
            is_forked=True,
        )
        if meters is not None:
            warn_of_shared_series(meters, self._instance)
        self.discard(0.0)
        return found

    def _given(self, provider: Given) -> Given | None:
        return None if provider in self._owned else provider

    def unsent(self) -> dict[str, int]:
        """Return the number of unsent items of our own pipelines by signal; empty when all was sent."""
        return {delivery.signal: delivery.unsent for delivery in self._deliveries if delivery.unsent}

    def unheard(self) -> dict[str, int]:
        """Return the number of items for the default address, where no collector listened, by signal."""
        return {delivery.signal: delivery.unheard for delivery in self._deliveries if delivery.unheard}

    def arrived(self) -> int:
        """Return the number of items that receivers of our own pipelines took."""
        return sum(delivery.arrived for delivery in self._deliveries)


def providers(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    *,
    readers: Sequence[MetricReader] = (),
) -> Providers:
    """Choose each provider: the given one, else the global one the application set, else our own.

    Our own follow OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER (otlp,
    console, none), OTEL_EXPORTER_OTLP_PROTOCOL (default http/protobuf), the endpoint, header, resource and
    sampler variables, and are never made global.

    Args:
        tracer_provider: used as it is.
        meter_provider: used as it is.
        logger_provider: used as it is.
        readers: further metric readers (a scrape endpoint's); beside a provider that is not ours they get a
            provider of their own.

    Raises:
        ConfigError: a given provider lacks its methods, or an ``OTEL_*`` variable names an unknown exporter or
            protocol.
    """
    _refuse("tracer_provider", tracer_provider, "get_tracer")
    _refuse("meter_provider", meter_provider, "get_meter")
    _refuse("logger_provider", logger_provider, "get_logger")
    tracers = tracer_provider or _global(trace.get_tracer_provider())
    meters = meter_provider or _global(metrics.get_meter_provider())
    loggers = logger_provider or _global(_logs.get_logger_provider())
    ours = {"TRACES": tracers, "METRICS": meters, "LOGS": loggers}
    check([signal for signal, provider in ours.items() if provider is None])
    if meters is not None:
        warn_of_shared_series(meters)
    return _built(tracers, meters, loggers, readers=readers)


def _built(
    tracers: TracerProvider | None,
    meters: MeterProvider | None,
    loggers: LoggerProvider | None,
    *,
    readers: Sequence[MetricReader] = (),
    is_forked: bool = False,
) -> Providers:
    """Build our own in place of each that is None."""
    resource = own_resource(is_forked=is_forked)
    own: list[OwnProvider[object]] = []
    receipts = Receipts()
    receipts.events = receipts.counts = "time"
    if tracers is None:
        own_tracers = own_tracer_provider(resource)
        tracers = own_tracers.provider
        own.append(own_tracers)
    if loggers is None:
        own_loggers = own_logger_provider(resource, receipts)
        loggers = own_loggers.provider
        own.append(own_loggers)
        receipts.events = _source_of(loggers)
    all_meters: list[MeterProvider]
    if meters is None:
        own_meters = own_meter_provider(resource, readers, receipts)
        all_meters = [own_meters.provider]
        own.append(own_meters)
        receipts.counts = _source_of(own_meters.provider)
        for reader in readers:
            reader.answered = receipts.reported  # type: ignore[attr-defined]
    elif readers and not is_disabled():
        send_zeros_first(meters)
        scraped = read_by(getattr(tracers, "resource", resource), readers)
        all_meters = [meters, scraped]
        own.append(OwnProvider(provider=scraped))
    else:
        send_zeros_first(meters)
        all_meters = [meters]
    return Providers(tracers, all_meters, loggers, own=own, receipts=receipts)


def _source_of(own: object) -> Source:
    return "nobody" if type(own).__name__.startswith("NoOp") else "exporter"


def has_own_meters(given: object) -> bool:
    """Return whether metrics go to our own provider: none is given, and the application has set none."""
    return given is None and _global(metrics.get_meter_provider()) is None


def _refuse(name: str, provider: object, method: str) -> None:
    if provider is not None and not callable(getattr(provider, method, None)):
        raise ConfigError(f"{name} must be a provider with {method}(), got {type(provider).__name__}")


def _global(provider: Given) -> Given | None:
    """Return the global provider, None while it is the API's placeholder that waits for one."""
    return None if "Proxy" in type(provider).__name__ else provider


def _flush(provider: object, timeout_s: float) -> bool:
    force_flush = getattr(provider, "force_flush", None)  # absent from the API's own classes
    return force_flush is None or force_flush(timeout_millis=max(int(timeout_s * 1_000), 1)) is not False


def _stop(provider: object, timeout_s: float) -> bool:
    try:
        return _flush(provider, timeout_s)
    finally:
        _shut(provider)


def _shut(provider: object) -> bool:
    shutdown = getattr(provider, "shutdown", None)
    if shutdown is not None:
        shutdown()
    return True


def _end(exporter: CountedSpans | CountedLogs | CountedMetrics) -> bool:
    try:
        exporter.shutdown()
    except Exception as error:
        record_internal_error("ragtrace.telemetry.provider.shutdown", error)
    return True
