"""Runs wait a moment for those behind them; who waits for what came before does not."""

from __future__ import annotations

import time

import pytest

from tests.process.observing import ask
from tests.unit.service.test_traces_counted import configure, reader, traces

__all__ = ["reader"]

LONG_S = 60.0  # longer than a test may take


@pytest.fixture
def service(reader, monkeypatch):
    """A service whose thread is inside a long wait for further runs."""
    monkeypatch.setattr("ragtrace.service.pipeline._GATHER_S", LONG_S)
    service = configure(reader, 0.0)
    ask()
    while not service.pipeline._waiting.empty():
        time.sleep(0.001)
    return service


def test_runs_that_end_one_behind_the_other_are_processed_together(reader, service):
    ask(2)
    time.sleep(0.1)
    assert len(service.pipeline._sizes) == 3, "all wait"
    assert traces(reader) == {("sampled", None): 0.0, ("skipped", "not_sampled"): 3.0}
    assert not service.pipeline._sizes


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_a_flush_waits_for_no_further_run(service, runs):
    for _ in range(3):  # also behind an earlier one
        ask(runs)
        began = time.monotonic()
        assert service.pipeline.drain(LONG_S / 2)
        assert time.monotonic() - began < LONG_S / 4
        ask()


def test_a_shutdown_waits_for_no_further_run(service):
    ask()
    began = time.monotonic()
    assert service.pipeline.close(LONG_S / 2)
    assert not service.pipeline._sizes
    service.pipeline._thread.join(LONG_S / 2)
    assert time.monotonic() - began < LONG_S / 4
