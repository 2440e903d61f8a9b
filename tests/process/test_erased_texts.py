"""Texts of scored units are in no file, the journal's neither, while application and worker live."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from tests.guards.processes import until
from tests.process.observing import environment

pytestmark = pytest.mark.slow

SECRET = b"Ada Lovelace lives here"
EMPTY_SOON = "from ragtrace import sqlite_file; sqlite_file.EMPTY_EVERY_S = 1.0"  # not every 30 s
APPLICATION = f"""{EMPTY_SOON}
import sys, ragtrace
ragtrace.configure(sample_rate=1.0, spool=sys.argv[1], store=sys.argv[2], scorer="worker")
for number in range(40):
    with ragtrace.query("Where?") as run:
        run.retrieved([{{"id": "a", "text": {SECRET.decode()!r} * 1_000, "score": 0.9}}])
        run.answered({SECRET.decode()!r})
sys.stdin.read()
"""
WORKER = f"{EMPTY_SOON}\nimport sys\nfrom ragtrace.cli import main\nsys.exit(main(['worker']))"


@pytest.fixture
def start(tmp_path):
    running = []

    def start(code, *args, **more):
        command = [sys.executable, "-c", code, *map(str, args)]
        running.append(subprocess.Popen(command, env=environment(**more), stdin=subprocess.PIPE))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def files_with(text, folder):
    return {path.name for path in folder.iterdir() if text in path.read_bytes()}


@pytest.mark.parametrize("store", ["spool", "store"])
def test_no_byte_of_a_scored_unit_is_in_a_file_while_two_processes_live(start, tmp_path, store):
    spool = tmp_path / "spool"
    application = start(APPLICATION, spool, tmp_path / store)
    until(lambda: files_with(SECRET, tmp_path), running=application)
    worker = start(WORKER, RAGTRACE_SPOOL=str(spool), RAGTRACE_STORE=str(tmp_path / store))
    reader = sqlite3.connect(spool, isolation_level=None)
    until(lambda: reader.execute("SELECT n FROM ledger WHERE state = 'scored'").fetchone() == (40,), running=worker)
    reader.close()
    until(lambda: not files_with(SECRET, tmp_path), running=worker)
    worker.kill()  # the application alone goes on, and writes
    assert application.poll() is None
