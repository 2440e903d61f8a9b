"""A verdict that was paid for is neither lost nor paid for again while the store's disk is full."""

from __future__ import annotations

import logging

import pytest

import ragtrace
from ragtrace.scoring.limits import judge_limiter
from ragtrace.service import current
from tests import make
from tests.guards.full_disk import small_disk
from tests.guards.judge_server import Answer, completion
from tests.guards.processes import until
from tests.process.observing import ask
from tests.process.test_health_wired import asked
from tests.process.test_limits_wired import GOOD

pytestmark = pytest.mark.slow

UNITS, FULL_AFTER = 300, 60


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        yield made
        ragtrace.shutdown(5)


@pytest.fixture
def judge(server, disk):
    """Answers every call, and fills the disk after some."""

    def answer(_request):
        if len(server.requests) == FULL_AFTER:
            disk.fill()
        return Answer(200, completion(GOOD))

    server.always = answer
    return server


def not_ready():
    return [line for line in asked("/readyz")[1]["reasons"] if line.startswith("store: cannot be written")]


@pytest.mark.parametrize("kind", ["memory", "spool elsewhere", "joined"])
def test_no_verdict_is_lost_or_paid_twice_on_a_full_disk(judge, disk, start, tmp_path, caplog, monkeypatch, kind):
    monkeypatch.setattr(judge_limiter, "BROKEN_FILE_S", 1.0)
    caplog.set_level(logging.INFO, "ragtrace")
    store = disk.folder / "store"
    spool = {"memory": None, "spool elsewhere": str(tmp_path / "spool"), "joined": str(store)}[kind]
    start(
        store=str(store),
        spool=spool,
        health_port=0,
        judge_rpm=0,
        judge_tpm=0,
        budget_tokens_per_day=0,
        canary_every_s=0,
    )
    for _ in range(UNITS):
        ask()
    reasons = []

    def is_held():
        # In one file with the spool either write may be the first to fail, and a page of the log that is used again
        # lets some through. Alone this takes 30 s.
        reasons.extend(not_ready())
        return reasons or (kind == "joined" and "the limits cannot be written" in caplog.text)

    until(is_held, 180)
    for reason in reasons:
        assert reason.startswith("store: cannot be written (disk full), ")
        assert reason.endswith(" scored units wait")
    calls = len(judge.requests)
    assert calls < UNITS
    until(lambda: asked("/healthz")[0] == 200)
    disk.free()
    assert ragtrace.flush(60)
    assert asked("/readyz")[0] == 200
    assert len(judge.requests) == UNITS
    ragtrace.shutdown(10)
    kept = make.store(store)
    assert len({row["trace_id"] for row in kept.rows() if row["state"] == "ok"}) == UNITS
    kept.close()
    said = [text for text in caplog.messages if "scored units" in text]
    pair = ["the scores cannot be written", "the scores can be written again"]
    assert [line.partition(" (")[0].partition(":")[0] for line in said] == pair * (len(said) // 2)
    assert said or kind == "joined"


def test_a_shutdown_counts_every_trace_that_a_full_disk_takes(disk, start, caplog):
    start(spool=str(disk.folder / "spool"), scorer="worker")
    service = current()
    disk.fill()
    ask()
    until(lambda: "cannot be written (" in caplog.text)  # and the writer holds this one
    for _ in range(4):
        ask()
    assert not ragtrace.shutdown(1.0)
    assert service.ledger.counts() == {("dropped", "spool_unwritable"): 1, ("dropped", "shutdown"): 4}
    assert "not scored: 5 traces" in caplog.text
