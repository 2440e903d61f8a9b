"""Where the demo's telemetry goes: to a collector that was named, else nowhere but to the scrape endpoint."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.trace import TracerProvider

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
_GRPC_PORT = 4317  # of OTLP over gRPC everywhere


@contextmanager
def sending_to(url: str | None) -> Iterator[TracerProvider | None]:
    """Set OpenTelemetry's own variables while ragtrace is configured, and put them back.

    Without a URL, and without one in the environment, nothing is exported: OpenTelemetry's default would be
    localhost, where nobody may listen. Spans are still made, so that exemplars carry real trace ids.

    Yields:
        The tracer provider to configure with; None leaves ragtrace to make its own from the variables.
    """
    if url is not None:
        is_grpc = urlsplit(url).port == _GRPC_PORT
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or ("grpc" if is_grpc else "http/protobuf")
        with _variables(
            {ENDPOINT: url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, **dict.fromkeys(_EXPORTERS, "otlp")}
        ):
            yield None
    elif os.environ.get(ENDPOINT):
        yield None
    else:
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider  # noqa: PLC0415 - takes 0.1 s

        with _variables(dict.fromkeys(_EXPORTERS, "none")):
            yield SdkTracerProvider(shutdown_on_exit=False)


@contextmanager
def _variables(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
