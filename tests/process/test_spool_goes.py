"""A spool that is removed or truncated under an application and a worker: told in time, and scoring goes on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.guards.processes import until
from tests.process.observing import environment

pytestmark = pytest.mark.slow

APPLICATION = """
import sys, time, logging, ragtrace
logging.basicConfig(stream=sys.stderr)
ragtrace.configure(sample_rate=1.0, spool=sys.argv[1], scorer="worker")
while True:
    with ragtrace.query("Where?") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo. " * 100, "score": 0.9}])
        run.answered("In Oslo.")
    time.sleep(0.05)
"""


def remove(path):
    for one in path.parent.glob("spool*"):
        one.unlink()


def truncate(path):
    os.truncate(path, 0)


def truncate_behind_a_checkpoint(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, 0)


@pytest.fixture
def start(tmp_path):
    running = []

    def start(name, *args):
        with (tmp_path / name).open("w") as said:
            running.append(subprocess.Popen([sys.executable, *args], env=environment(), stderr=said))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def scored(path):
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT n FROM ledger WHERE state = 'scored'").fetchone()[0]
    except (sqlite3.Error, TypeError):
        return 0


@pytest.mark.parametrize("damage", [remove, truncate, truncate_behind_a_checkpoint])
def test_a_spool_that_goes_is_told_by_both_processes_within_10_s_and_scoring_goes_on(start, tmp_path, damage):
    path = tmp_path / "spool"
    application = start("application", "-c", APPLICATION, str(path))
    worker = start("worker", "-m", "ragtrace", "worker", "--spool", str(path))
    until(lambda: scored(path) > 20, running=worker)
    time.sleep(2.5)  # each has looked at it
    inode = path.stat().st_ino
    damage(path)
    until(
        lambda: all("a new one is begun" in (tmp_path / name).read_text() for name in ("worker", "application")), 10
    )
    until(lambda: path.exists() and path.stat().st_ino != inode and scored(path) > 20, 30, running=application)
