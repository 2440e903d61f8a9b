"""A service in this process with a real judge server on loopback."""

from __future__ import annotations

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from tests.unit.judges.openai.judge_server import JudgeServer


@pytest.fixture
def server():
    made = JudgeServer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def start(server):
    reader = InMemoryMetricReader()

    def configure(**settings):
        given = {"metrics": ["faithfulness"], **settings}
        ragtrace.configure(
            judge="openai:m",
            judge_base_url=server.url,
            judge_api_key="k",
            sample_rate=1.0,
            tracer_provider=TracerProvider(),
            meter_provider=MeterProvider([reader]),
            logger_provider=LoggerProvider(),
            **given,
        )
        return reader

    yield configure
    ragtrace.shutdown(1)
