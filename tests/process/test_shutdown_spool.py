"""A shutdown that is past its deadline, with a spool and a judge that hangs: leases go back, and nothing crashes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.process.hung_app import ROUNDS
from tests.process.observing import until
from tests.process.test_promises import hung
from tests.process.test_worker_command import QUIET, ROOT, accounts, start

pytestmark = pytest.mark.slow

__all__ = ["hung"]


def application(folder, url):
    env = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "tests.process.hung_app", str(folder), url],
        env=env, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def test_an_application_gives_its_leases_back_and_lives(tmp_path, hung):
    done = application(tmp_path, hung)
    assert done.returncode == 0, done.stderr
    for number in range(ROUNDS):
        found = accounts(tmp_path / f"{number}.sqlite")
        assert (found.leased, found.ready) == (0, 40)


def test_a_worker_that_is_stopped_gives_its_leases_back_and_says_1(tmp_path, hung):
    path = tmp_path / "spool.sqlite"
    assert start("-m", "tests.process.app", path, 0, 20).wait(120) == 0
    env = {"OPENAI_API_KEY": "k", "RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_BASE_URL": hung}
    for _ in range(3):
        worker = subprocess.Popen(
            [sys.executable, "-m", "ragtrace", "worker", "--spool", path, "--deadline", "1"],
            env={**os.environ, **QUIET, **env, "PYTHONPATH": str(ROOT)}, cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: accounts(path).leased > 0, running=worker)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=120)
        assert worker.returncode == 1, said
        assert (accounts(path).leased, accounts(path).ready) == (0, 20)


@pytest.mark.parametrize("is_once", [False, True])
def test_a_worker_whose_spool_vanishes_says_so_and_ends_in_order(tmp_path, hung, is_once):
    folder = tmp_path / "spools"
    folder.mkdir()
    path = folder / "spool.sqlite"
    assert start("-m", "tests.process.app", path, 0, 3).wait(120) == 0
    env = {"OPENAI_API_KEY": "k", "RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_BASE_URL": hung}
    worker = subprocess.Popen(
        [sys.executable, "-m", "ragtrace", "worker", "--spool", path, "--deadline", "1", *["--once"] * is_once],
        env={**os.environ, **QUIET, **env, "PYTHONPATH": str(ROOT)}, cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: accounts(path).leased > 0, running=worker)
    shutil.rmtree(folder)
    if not is_once:
        worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=120)
    # After a signal it may meet its deadline: what was under way came back from the gate, whose file is gone too.
    assert worker.returncode in ({1} if is_once else {0, 1}), said
    # Behind it may stand a word of a call that the deadline left under way.
    (stopped,) = [line for line in said.splitlines() if line.startswith("ragtrace worker: stopped; ")]
    assert "pending when last seen; the spool cannot be read: " in stopped
    assert "Traceback" not in said
