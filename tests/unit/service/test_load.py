"""What the pressure is told of the queue: of a spool what all its processes did, and nothing before that is known."""

from __future__ import annotations

import pytest

import ragtrace
from ragtrace.queues import SqliteQueue
from ragtrace.service import current
from tests.guards.processes import until
from tests.process.observing import ask, providers
from tests.unit.queues.test_queues import unit


@pytest.fixture
def start():
    def configure(**settings):
        ragtrace.configure(sample_rate=1.0, **providers(), **settings)
        return current()

    yield configure
    ragtrace.shutdown(5)


def test_of_a_spool_it_is_what_all_processes_did(start, tmp_path):
    path = tmp_path / "spool.sqlite"
    other = SqliteQueue(path)
    for number in range(5):
        other.put(unit(str(number), factor=0.5))
    assert other.flush(30)
    for job in other.lease(2):
        assert other.ack(job, "scored")
    service = start(spool=str(path), scorer="worker")
    assert service.gauges.load() is None
    ask()
    assert ragtrace.flush(30)
    until(lambda: (load := service.gauges.load()) is not None and load.wanted == 5 / 0.5 + 1)
    assert service.gauges.load().served == 2
    other.close()


def test_of_a_queue_of_one_s_own_it_is_one_s_own(start):
    service = start()
    ask()
    assert ragtrace.flush(30)
    load = service.gauges.load()
    assert (load.size, load.served, load.wanted) == (0, 1, None)
