"""A service in this process with a real judge server on loopback."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from tests.process.observing import providers


@pytest.fixture
def server(judge_server):
    return judge_server


@pytest.fixture
def start(server):
    reader = InMemoryMetricReader()

    def configure(**settings):
        made = providers(meter_provider=MeterProvider([reader]))
        given = {"metrics": ["faithfulness"], **made, **settings}
        ragtrace.configure(
            judge="openai:m",
            judge_base_url=server.url,
            judge_api_key="k",
            sample_rate=1.0,
            **given,
        )
        return reader

    yield configure
    ragtrace.shutdown(1)
