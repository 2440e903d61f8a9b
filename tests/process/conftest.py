"""A service in this process with a real judge server on loopback."""

from __future__ import annotations

import shutil

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from tests.process.observing import asked_app, providers


@pytest.fixture(scope="session")
def asked_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "spool.sqlite"
    asked_app(path, 0, 5)
    return path


@pytest.fixture
def five_wait(asked_once, tmp_path):
    """Return a spool, its own copy, in which five units of an application that ended wait."""
    for path in asked_once.parent.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / asked_once.name


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
