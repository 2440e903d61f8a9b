"""Providers that send nothing, for tests of sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

import ragtrace

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_providers() -> Iterator[dict[str, Any]]:
    yield {
        "tracer_provider": TracerProvider(),
        "meter_provider": MeterProvider(),
        "logger_provider": LoggerProvider(),
        "sample_rate": 1.0,
    }
    ragtrace.shutdown(5)
