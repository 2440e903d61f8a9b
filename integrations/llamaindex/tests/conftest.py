"""A recorder that keeps, and LlamaIndex instrumented with it."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder, internal_errors
from ragtrace.testing.recording import Recording
from ragtrace_llamaindex import instrument, is_instrumented, uninstrument
from ragtrace_llamaindex.instrumentation import tracer
from tests.kept import Keeper


@pytest.fixture
def keeper():
    return Keeper()


@pytest.fixture
def recorder(keeper):
    return Recorder(keeper)


@pytest.fixture
def kept():
    """Spans and runs, of LlamaIndex instrumented with their recorder."""
    recording = Recording()
    instrument(recording.recorder)
    yield recording
    uninstrument()


@pytest.fixture
def loses():
    """Marks a test that loses data on purpose."""


@pytest.fixture(autouse=True)
def nothing_lost_or_kept(request, recorder):
    """No test may lose data, leave a run open or leave anything on the map, unless it says so."""
    before = internal_errors()
    instrument(recorder)
    yield
    uninstrument()
    assert not is_instrumented()
    left = (len(tracer), dict(tracer.takers), dict(tracer._unstarted), dict(tracer._lazy))
    for part in (tracer.spans, tracer.takers, tracer._unstarted, tracer._lazy):
        part.clear()  # so that one test's remains are not the next one's
    if "loses" in request.fixturenames:
        return
    assert internal_errors() == before
    assert recorder.open_runs == 0
    assert left == (0, {}, {}, {})
