"""Runs that wait for another try are missing, and recovered by whichever process scores them, also after a kill."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from threading import Event

import pytest

import ragtrace
from ragtrace.service import current
from tests.guards.judge_server import Answer, completion, refusal
from tests.guards.processes import until
from tests.process.observing import ROOT, ask, environment, points
from tests.process.test_limits_wired import GOOD

pytestmark = pytest.mark.slow

RUNS = 12


def weights(reader):
    return {
        name: sum(points(reader, f"ragtrace.score.{name}.w").values()) for name in ("due", "missing", "recovered")
    }


class App:
    """A process of `tests.process.recovery_app`."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.recovery_app", *map(str, args)],
            env=environment(), cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def counts(self, **wanted):
        """Wait until the process tells of such counts."""
        for line in self.process.stdout:
            found = json.loads(line)
            if wanted.items() <= found.items():
                return found
        raise AssertionError(self.process.poll())

    def kill(self):
        self.process.kill()
        self.process.wait()


def test_a_kill_loses_nothing_that_waits_and_another_process_takes_it_back(server, tmp_path):
    server.always = lambda _: refusal(401, "wrong key")  # held: every unit waits
    spool = tmp_path / "spool.sqlite"
    first = App(spool, server.url, RUNS)
    before = first.counts(missing=float(RUNS))
    first.kill()
    assert before == {"due": RUNS, "missing": RUNS, "recovered": 0.0, "n": 0}
    server.always = lambda _: Answer(200, completion(GOOD))
    second = App(spool, server.url, 0)
    try:
        release(spool)
        after = second.counts(n=RUNS, recovered=float(RUNS))
    finally:
        second.kill()
    assert (after["due"], after["missing"], after["recovered"]) == (0.0, 0.0, RUNS)


def release(spool):
    """Make units that wait for a held judge due now, as five minutes would."""
    with sqlite3.connect(spool, timeout=10) as file:
        file.execute("UPDATE jobs SET not_before = 0")


def test_what_waits_for_the_budget_is_missing_and_so_is_what_no_budget_is_left_to_draw(server, start):
    server.always = lambda _: Answer(200, completion(GOOD))
    reader = start(budget_tokens_per_day=10)  # no call ever fits
    for _ in range(5):
        ask()
    until(lambda: weights(reader)["missing"] == 5.0)
    assert weights(reader) == {"due": 5.0, "missing": 5.0, "recovered": 0.0}
    kinds = {dict(key)["ragtrace.reason"] for key, w in points(reader, "ragtrace.score.missing.w").items() if w}
    assert kinds == {"budget_exceeded"}


def test_what_a_process_takes_with_it_is_missing(server, start):
    hold = Event()
    server.always = lambda _: Answer(200, completion(GOOD), hold=hold)
    reader = start(concurrency=1)
    for _ in range(4):
        ask()
    until(lambda: len(server.requests) == 1)
    assert weights(reader)["due"] == 0.0
    kept = current()
    assert not ragtrace.shutdown(1.0)
    hold.set()
    assert kept.ledger.snapshot()["dropped:shutdown"] == 4
    assert weights(reader) == {"due": 4.0, "missing": 4.0, "recovered": 0.0}


def test_runs_that_find_no_room_in_the_process_are_missing(start, server, monkeypatch):
    server.always = lambda _: Answer(200, completion(GOOD))
    monkeypatch.setattr("ragtrace.service.pipeline.MOST_RUNS", 1)
    reader = start()
    for _ in range(300):
        ask()
    assert ragtrace.flush(30)
    ask()
    assert ragtrace.flush(30)
    lost = current().ledger.snapshot().get("dropped:queue_full", 0)
    assert lost > 0
    assert weights(reader) == {"due": 301.0, "missing": float(lost), "recovered": 0.0}
