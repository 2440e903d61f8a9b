"""Make our own providers from the ``OTEL_*`` settings; exporters are imported on demand."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from importlib.metadata import EntryPoints, entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragtrace.errors import ConfigError, nearest
from ragtrace.telemetry.setup.collector import default_listener, is_endpoint_set, spare_log
from ragtrace.telemetry.setup.delivery import (
    CountedLogs,
    CountedMetrics,
    CountedSpans,
    Delivery,
    TakenLogs,
    TakenSpans,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry._logs import LoggerProvider as LoggerApi
    from opentelemetry.metrics import MeterProvider as MeterApi
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import TracerProvider as TracerApi

    from ragtrace.telemetry.setup.receipts import Receipts

Provider_co = TypeVar("Provider_co", covariant=True)
_log = logging.getLogger("ragtrace")
_EXPORTERS = ("otlp", "console", "none")
# Exporters that other OpenTelemetry tools read in the same variables, and that are not written here.
_OF_OTHERS = frozenset({"prometheus", "zipkin", "zipkin_json", "zipkin_proto", "jaeger", "jaeger_proto", "logging"})
_PROMETHEUS_PORT, _MOST_PORT = 9464, 65_535
_said: set[str] = set()
_PROTOCOLS = ("http/protobuf", "grpc")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProvider(Generic[Provider_co]):
    """A provider of our own, which we flush and shut down; a no-op where no exporter is wanted.

    Attributes:
        provider: makes the signal.
        delivery: its accounts; None where only scrapes read it.
        exporters: send its spans, events or metrics.
    """

    provider: Provider_co
    delivery: Delivery | None = None
    exporters: Sequence[CountedSpans | CountedLogs | CountedMetrics] = ()


def is_disabled() -> bool:
    """Whether OTEL_SDK_DISABLED switches everything off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def exporter_names(signal: str) -> list[str]:
    """Return the exporters that ``OTEL_<SIGNAL>_EXPORTER`` names; default ``otlp``; empty for ``none``.

    Exporters that are installed with an entry point are known, as in the SDK. One of other OpenTelemetry tools that
    is not installed is left out; a warning names it once. For ``prometheus`` among METRICS see `wants_scrape`.

    Args:
        signal: TRACES, METRICS or LOGS.

    Raises:
        ConfigError: a name that no tool knows.
    """
    names = _named(signal)
    for name in names:
        if _is_known(signal, name) or (signal == "METRICS" and name == "prometheus"):
            continue
        if name not in _OF_OTHERS:
            raise ConfigError(f"OTEL_{signal}_EXPORTER={name!r} is not known here{nearest(name, _EXPORTERS)}")
        say_once(f"OTEL_{signal}_EXPORTER={name} is not supported and is ignored; otlp, console and none are")
    return [name for name in names if name != "none" and _is_known(signal, name)]


def _is_known(signal: str, name: str) -> bool:
    return name in _EXPORTERS or (name != "prometheus" and bool(_entries(signal, name)))


def wants_scrape() -> bool:
    """Whether ``OTEL_METRICS_EXPORTER`` names ``prometheus``, which our own OpenMetrics endpoint serves."""
    return "prometheus" in _named("METRICS") and not is_disabled()


def scrape_address() -> tuple[str, int]:
    """Return host and port of ``OTEL_EXPORTER_PROMETHEUS_HOST`` and ``_PORT``; default loopback and 9464.

    Raises:
        ConfigError: the port is no whole number from 0 to 65535.
    """
    host = os.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST", "").strip() or "127.0.0.1"
    port = os.environ.get("OTEL_EXPORTER_PROMETHEUS_PORT", "").strip() or str(_PROMETHEUS_PORT)
    if not (port.isdecimal() and int(port) <= _MOST_PORT):
        raise ConfigError(f"OTEL_EXPORTER_PROMETHEUS_PORT={port!r} is not a port: 0 (any free port) to 65535")
    return host, int(port)


def _named(signal: str) -> list[str]:
    given = os.environ.get(f"OTEL_{signal}_EXPORTER", "")
    return [name.strip() for name in given.split(",") if name.strip()] or ["otlp"]


def say_once(text: str) -> None:
    """Log a warning that this process, and those that forked it, did not log yet."""
    if text not in _said:
        _said.add(text)
        _log.warning("%s", text)


def protocol(signal: str) -> str:
    """Return the OTLP protocol of a signal; default ``http/protobuf``.

    Raises:
        ConfigError: a protocol that is neither http/protobuf nor grpc.
    """
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        value = os.environ.get(variable, "").strip()
        if value:
            if value not in _PROTOCOLS:
                raise ConfigError(f"{variable}={value!r} is not spoken here{nearest(value, _PROTOCOLS)}")
            return value
    return "http/protobuf"


def check(signals: Sequence[str]) -> None:
    """Check every variable of these signals before a thread is started.

    Raises:
        ConfigError: an exporter or protocol that is not known.
    """
    for signal in signals:
        if "otlp" in exporter_names(signal):
            protocol(signal)


def own_tracer_provider(resource: Resource) -> OwnProvider[TracerApi]:
    """Return a provider with the exporters of OTEL_TRACES_EXPORTER; a no-op without any."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.trace import NoOpTracerProvider  # noqa: PLC0415

    names = exporter_names("TRACES")
    if is_disabled() or not names:
        return OwnProvider(provider=NoOpTracerProvider())
    delivery = Delivery("spans")
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporters = [CountedSpans(_exporter("TRACES", name), delivery, _listens("TRACES", name)) for name in names]
    provider.add_span_processor(TakenSpans(delivery))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return OwnProvider(provider=provider, delivery=delivery, exporters=exporters)


def own_logger_provider(resource: Resource, receipts: Receipts) -> OwnProvider[LoggerApi]:
    """Return a provider with the exporters of OTEL_LOGS_EXPORTER; a no-op without any."""
    from opentelemetry._logs import NoOpLoggerProvider  # noqa: PLC0415
    from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # noqa: PLC0415

    names = exporter_names("LOGS")
    if is_disabled() or not names:
        return OwnProvider(provider=NoOpLoggerProvider())
    delivery = Delivery("events")
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    receipts_of = _acknowledging(names, receipts)
    exporters = [
        CountedLogs(_exporter("LOGS", name), delivery, _listens("LOGS", name), receipts_of.get(name))
        for name in names
    ]
    provider.add_log_record_processor(TakenLogs(delivery))
    for exporter in exporters:
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return OwnProvider(provider=provider, delivery=delivery, exporters=exporters)


def own_meter_provider(
    resource: Resource, readers: Sequence[MetricReader], receipts: Receipts
) -> OwnProvider[MeterApi]:
    """Return a provider with extra readers and the exporters of OTEL_METRICS_EXPORTER; a no-op without any."""
    from opentelemetry.metrics import NoOpMeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    names = [] if is_disabled() else exporter_names("METRICS")
    if is_disabled() or not (names or readers):
        return OwnProvider(provider=NoOpMeterProvider())
    delivery = Delivery("metrics")
    receipts_of = _acknowledging(names, receipts)
    exporters = [
        CountedMetrics(
            _exporter("METRICS", name),
            delivery,
            _listens("METRICS", name),
            receipts_of.get(name),
            is_scraped=bool(readers),
        )
        for name in names
    ]
    periodic = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
    provider = read_by(resource, [*periodic, *readers])
    return OwnProvider(provider=provider, delivery=delivery, exporters=exporters)


def read_by(resource: Resource, readers: Sequence[MetricReader]) -> MeterProvider:
    """Return a meter provider with these readers, ours to shut down."""
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415

    return MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)


def _acknowledging(names: Sequence[str], receipts: Receipts) -> dict[str, Receipts]:
    """Return the exporter that acknowledges; a console does only when it is alone."""
    return {"otlp" if "otlp" in names else names[0]: receipts} if names else {}


def _listens(signal: str, name: str) -> Callable[[], bool] | None:
    """Return the check before each export to an address that nobody configured; None where none is needed."""
    if name != "otlp":
        return None
    spare_log()
    return None if is_endpoint_set(signal) else default_listener(protocol(signal))


def _exporter(signal: str, name: str) -> Any:
    """Make an exporter from the entry points that the SDK reads too."""
    if name == "otlp":
        name = "otlp_proto_grpc" if protocol(signal) == "grpc" else "otlp_proto_http"
    (found,) = _entries(signal, name)
    return found.load()()


def _entries(signal: str, name: str) -> EntryPoints:
    return entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=name)
