"""Kill -9 at any time: nothing that was accepted is lost, nothing is scored twice."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import pytest

from ragtrace.queues.spool import Spool
from tests.process.spool_hand import BATCH

pytestmark = pytest.mark.slow

UNITS, KILLS, WORKERS, PRODUCERS = 5_000, 20, 3, 2


def hand(*args):
    return subprocess.Popen([sys.executable, "-m", "tests.process.spool_hand", *map(str, args)])


def balanced(spool):
    accounts = spool.counters()
    assert accounts.offered == sum(accounts.ends.values()) + accounts.pending
    return accounts


def test_twenty_kills_lose_nothing_and_score_nothing_twice(tmp_path):
    path, calls = tmp_path / "spool", tmp_path / "calls"
    spool = Spool(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE scores (key TEXT PRIMARY KEY, times INTEGER)")
    connection.close()
    share = UNITS // PRODUCERS
    makers = {n: ("produce", path, n, n * share, (n + 1) * share) for n in range(PRODUCERS)}
    makers |= {f"w{n}": ("work", path, f"w{n}", calls) for n in range(WORKERS)}
    hands = {name: hand(*args) for name, args in makers.items()}
    chance = random.Random(1)
    kills = 0
    deadline = time.monotonic() + 240
    try:
        while balanced(spool).ends.get(("scored", ""), 0) < UNITS:
            assert time.monotonic() < deadline, spool.counters()
            time.sleep(0.12)
            for name in range(PRODUCERS):  # one that was killed goes on where it had stopped
                if hands[name].poll() not in (None, 0):
                    hands[name] = hand(*makers[name])
            if kills < KILLS:
                victim = chance.choice([name for name, process in hands.items() if process.poll() is None])
                hands[victim].send_signal(signal.SIGKILL)
                hands[victim].wait()
                hands[victim] = hand(*makers[victim])
                kills += 1
    finally:
        for process in hands.values():
            process.kill()
            process.wait()
    accounts = balanced(spool)
    assert kills == KILLS
    assert accounts.pending == 0
    assert set(accounts.ends) <= {
        ("scored", ""),
        ("skipped", "duplicate"),
    }  # a killed producer offers its last again
    with sqlite3.connect(path) as connection:
        scored = dict(connection.execute("SELECT key, times FROM scores"))
    assert scored == {f"unit-{i}": 1 for i in range(UNITS)}
    asked = Counter(calls.read_text().split())
    repeated = sum(asked.values()) - len(asked)
    assert set(asked) == set(scored)
    assert repeated <= KILLS * BATCH, repeated
    print(f"{repeated} repeated calls of {UNITS}, {KILLS} kills")  # noqa: T201 - shown by pytest -s
