"""Providers that send nothing and servers that answer by a script, for tests of sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace.sinks import outbox
from tests.unit.sinks.server import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def own_providers() -> Iterator[dict[str, Any]]:
    yield {
        "tracer_provider": TracerProvider(),
        "meter_provider": MeterProvider(),
        "logger_provider": LoggerProvider(),
        "sample_rate": 1.0,
    }
    ragtrace.shutdown(5)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scripted]]:
    """Start servers that answer by a script; closed at the test's end."""
    monkeypatch.setattr(outbox, "_HURRIED_WAIT_S", 0.01)
    made = []

    def start(*statuses: int, **more: Any) -> Scripted:
        made.append(Scripted(statuses, **more))
        return made[-1]

    yield start
    for each in made:
        each.close()
