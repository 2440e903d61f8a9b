"""Our own providers from the ``OTEL_*`` settings; exporters are imported when they are wanted."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError, nearest
from ragtrace.telemetry.setup.collector import default_listener, is_endpoint_set, spare_log
from ragtrace.telemetry.setup.delivery import CountedLogs, CountedMetrics, CountedSpans, TakenLogs, TakenSpans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from opentelemetry._logs import LoggerProvider as LoggerApi
    from opentelemetry.metrics import MeterProvider as MeterApi
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import TracerProvider as TracerApi
    from requests import Session

    from ragtrace.telemetry.setup.delivery import Delivery
    from ragtrace.telemetry.setup.receipts import Receipts

    T = TypeVar("T")
    Own = tuple[T, list[Any]]  # a provider, and its exporters

_log = logging.getLogger("ragtrace")
_EXPORTERS = ("otlp", "console", "none")
# Exporters that other OpenTelemetry tools read in the same variables, and that are not written here.
_OF_OTHERS = frozenset({"prometheus", "zipkin", "zipkin_json", "zipkin_proto", "jaeger", "jaeger_proto", "logging"})
_PROMETHEUS_PORT, _MOST_PORT = 9464, 65_535
_said: set[str] = set()
_PROTOCOLS = ("http/protobuf", "grpc")


def is_disabled() -> bool:
    """Whether OTEL_SDK_DISABLED switches everything off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def exporter_names(signal: str) -> list[str]:
    """Return the exporters that ``OTEL_<SIGNAL>_EXPORTER`` names; default ``otlp``; empty for ``none``.

    An exporter of other OpenTelemetry tools is left out; a warning names it once. For ``prometheus`` among METRICS
    see `wants_scrape`.

    Args:
        signal: TRACES, METRICS or LOGS.

    Raises:
        ConfigError: a name that no tool knows.
    """
    names = _named(signal)
    for name in names:
        if name in _OF_OTHERS and not (signal == "METRICS" and name == "prometheus"):
            _say_once(f"OTEL_{signal}_EXPORTER={name} is not supported and is ignored; otlp, console and none are")
        elif name not in _EXPORTERS and name not in _OF_OTHERS:
            raise ConfigError(f"OTEL_{signal}_EXPORTER={name!r} is not known here{nearest(name, _EXPORTERS)}")
    return [name for name in names if name in _EXPORTERS and name != "none"]


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


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        _log.warning(text)


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
    """Read every variable of these signals before anything is built, so that a wrong one leaves no thread behind.

    Raises:
        ConfigError: an exporter or protocol that is not known.
    """
    for signal in signals:
        if "otlp" in exporter_names(signal):
            protocol(signal)


def own_tracer_provider(resource: Resource, delivery: Delivery) -> Own[TracerApi]:
    """Return a provider of our own with the exporters of OTEL_TRACES_EXPORTER, and these; a no-op without any."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.trace import NoOpTracerProvider  # noqa: PLC0415

    names = exporter_names("TRACES")
    if is_disabled() or not names:
        return NoOpTracerProvider(), []
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporters = [CountedSpans(_span_exporter(name), delivery, _listens("TRACES", name)) for name in names]
    provider.add_span_processor(TakenSpans(delivery))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, exporters


def own_meter_provider(
    resource: Resource, delivery: Delivery, readers: Sequence[MetricReader], receipts: Receipts | None = None
) -> Own[MeterApi]:
    """Return a provider of our own with extra readers and the exporters of OTEL_METRICS_EXPORTER, and these."""
    from opentelemetry.metrics import NoOpMeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    names = [] if is_disabled() else exporter_names("METRICS")
    if is_disabled() or not (names or readers):
        return NoOpMeterProvider(), []
    exporters = [
        CountedMetrics(
            _metric_exporter(name),
            delivery,
            _listens("METRICS", name),
            receipts if name == _deciding(names) else None,
            is_scraped=bool(readers),
        )
        for name in names
    ]
    periodic = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
    return read_by(resource, [*periodic, *readers]), exporters


def read_by(resource: Resource, readers: Sequence[MetricReader]) -> MeterProvider:
    """Return a meter provider with these readers, ours to shut down."""
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415

    return MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)


def own_logger_provider(resource: Resource, delivery: Delivery, receipts: Receipts | None = None) -> Own[LoggerApi]:
    """Return a provider of our own with the exporters of OTEL_LOGS_EXPORTER, and these; a no-op without any."""
    from opentelemetry._logs import NoOpLoggerProvider  # noqa: PLC0415
    from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # noqa: PLC0415

    names = exporter_names("LOGS")
    if is_disabled() or not names:
        return NoOpLoggerProvider(), []
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    exporters = [
        CountedLogs(
            _log_exporter(name), delivery, _listens("LOGS", name), receipts if name == _deciding(names) else None
        )
        for name in names
    ]
    provider.add_log_record_processor(TakenLogs(delivery))
    for exporter in exporters:
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return provider, exporters


def _deciding(names: Sequence[str]) -> str:
    """Return the exporter whose word says that something arrived: a console is no receiver beside one."""
    return "otlp" if "otlp" in names else names[0]


def _listens(signal: str, name: str) -> Callable[[], bool] | None:
    """Return the check before each export to an address that nobody configured; None where none is needed."""
    if name != "otlp":
        return None
    spare_log()
    return None if is_endpoint_set(signal) else default_listener(protocol(signal))


def _span_exporter(name: str) -> Any:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415

        return ConsoleSpanExporter()
    if protocol("TRACES") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        return OTLPSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter as OverHttp,
    )

    return OverHttp(session=_session())


def _metric_exporter(name: str) -> Any:
    if name == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter  # noqa: PLC0415

        return ConsoleMetricExporter()
    if protocol("METRICS") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

        return OTLPMetricExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415
        OTLPMetricExporter as OverHttp,
    )

    return OverHttp(session=_session())


def _log_exporter(name: str) -> Any:
    if name == "console":
        from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter  # noqa: PLC0415

        return ConsoleLogRecordExporter()
    if protocol("LOGS") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter  # noqa: PLC0415

        return OTLPLogExporter()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # noqa: PLC0415
        OTLPLogExporter as OverHttp,
    )

    return OverHttp(session=_session())


def _session() -> Session | None:
    """Return a session that no forked child shares; None where the SDK is to load one with credentials."""
    given = [name for name in os.environ if name.startswith("OTEL_PYTHON_EXPORTER_OTLP")]
    if any(name.endswith("_CREDENTIAL_PROVIDER") for name in given):
        return None
    from ragtrace.telemetry.setup.connections import own_session  # noqa: PLC0415 - not over gRPC

    return own_session()
