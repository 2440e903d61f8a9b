"""Real application servers over one spool: gunicorn's workers, forked after and before the import, and uvicorn's."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.guards.processes import closed_port, got, is_up, until
from tests.process.observing import ROOT, accounts, environment, worker

pytestmark = pytest.mark.slow

REQUESTS = 60
SERVERS = {
    "gunicorn": ["gunicorn", "tests.process.web", "--workers", "3", "--bind"],
    "gunicorn, imported before the fork": [
        "gunicorn",
        "tests.process.web",
        "--preload",
        "--workers",
        "3",
        "--bind",
    ],
    "uvicorn": ["uvicorn", "tests.process.web:asgi", "--workers", "3", "--log-level", "error", "--port"],
}


@pytest.mark.parametrize("name", SERVERS)
def test_every_request_to_every_process_is_scored_once(name, tmp_path):
    path, port = tmp_path / "spool.sqlite", closed_port()
    command = SERVERS[name]
    server = subprocess.Popen(
        [sys.executable, "-m", *command, str(port) if command[-1] == "--port" else f"127.0.0.1:{port}"],
        env=environment(RAGTRACE_SPOOL=str(path)),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: is_up(port) or server.poll() is not None)
        answers = []
        with ThreadPoolExecutor(8) as pool:
            # On a busy machine the first worker is up seconds before the others and answers a round alone.
            deadline = time.monotonic() + 60
            while len({pid for _, pid in answers}) < 2 and time.monotonic() < deadline:
                asked = range(len(answers), len(answers) + REQUESTS)
                answers += pool.map(lambda n: got(port, f"/{n}"), asked)
                time.sleep(0.2)
    finally:
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert {status for status, _ in answers} == {200}, said
    assert len({pid for _, pid in answers}) > 1, "one process answered everything"
    done = worker(path, "--once")
    _, said = done.communicate(timeout=120)
    assert done.returncode == 0, said
    ends = accounts(path).ends
    asked_to_see_whether_it_is_up = 1
    assert ends == {("scored", ""): len(answers) + asked_to_see_whether_it_is_up}
