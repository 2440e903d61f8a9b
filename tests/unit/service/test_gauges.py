"""What a service shows of its queue and accounts."""

from __future__ import annotations

import pytest

from ragtrace.queues import MemoryQueue
from ragtrace.scoring import Ledger
from ragtrace.service import Accounts, BaselineMonitor, ServiceGauges, coverage, ledger_points
from ragtrace.settings import Settings


@pytest.fixture
def ledger():
    return Ledger()


def readers_of(ledger, **settings):
    gauges = ServiceGauges(
        Settings(**settings),
        ledger=ledger,
        queue=MemoryQueue(),
        baselines=BaselineMonitor({}),
        limiter=None,
        canaries=None,
    )
    return gauges.readers()


def test_the_gauges_of_a_service_without_a_spool_a_judge_and_scores(ledger):
    told = {name: read() for name, read in readers_of(ledger).items()}
    found = {name: points for name, points in told.items() if points}
    assert found == {
        "ragtrace.queue.size": [(0, {})],
        "ragtrace.queue.capacity": [(2_048, {})],
        "ragtrace.queue.oldest": [(0.0, {})],
        "ragtrace.ledger": [(0.0, {"ragtrace.state": "pending"})],
    }


def test_coverage_counts_each_drawn_trace_once_and_what_the_spool_lost():
    own = Accounts({("spooled", ""): 20, ("dropped", "queue_full"): 4, ("skipped", "not_sampled"): 400}, 0)
    spool = Accounts(
        {
            ("scored", ""): 9, ("invalid", "judge_refused"): 1, ("skipped", "expired"): 3, ("skipped", "evicted"): 2,
            ("skipped", "no_metric"): 1, ("skipped", "duplicate"): 7, ("skipped", "forgotten"): 5,
        },
        4,
        spool="0a1b2c3d",
    )  # fmt: skip
    assert coverage([own, spool]) == 9 / 20
    assert coverage([Accounts({("skipped", "not_sampled"): 80}, 2)]) is None
    points = ledger_points([own, spool])
    assert (9, {"ragtrace.state": "scored", "ragtrace.spool": "0a1b2c3d"}) in points
    assert (4, {"ragtrace.state": "dropped", "ragtrace.reason": "queue_full"}) in points


def test_a_process_that_hands_its_units_on_has_no_coverage(ledger):
    ledger.offer()
    ledger.end("scored", "")
    assert readers_of(ledger)["ragtrace.evaluation.coverage.ratio"]() == [(1.0, {})]
    assert "ragtrace.evaluation.coverage.ratio" not in readers_of(ledger, scorer="worker")
