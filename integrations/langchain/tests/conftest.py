"""A recorder that keeps, and the handler on it."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder, internal_errors
from ragtrace_langchain import RagtraceHandler
from tests.kept import Keeper


@pytest.fixture
def keeper():
    return Keeper()


@pytest.fixture
def recorder(keeper):
    return Recorder(keeper)


@pytest.fixture
def handler(recorder):
    return RagtraceHandler(recorder)


@pytest.fixture
def config(handler):
    return {"callbacks": [handler]}


@pytest.fixture
def loses():
    """Marks a test that loses data on purpose."""


@pytest.fixture(autouse=True)
def nothing_lost_or_kept(request, recorder, handler):
    """No test may lose data, leave a run open or leave anything on the map, unless it says so."""
    before = internal_errors()
    yield
    if "loses" in request.fixturenames:
        return
    assert internal_errors() == before
    assert recorder.open_runs == 0
    assert len(handler._runs) == 0
