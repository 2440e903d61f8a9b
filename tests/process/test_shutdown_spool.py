"""A shutdown that is past its deadline, with a spool and a judge that hangs: leases go back, and nothing crashes."""

from __future__ import annotations

import re
import shutil
import signal

import pytest

from tests.process.hung_app import ROUNDS
from tests.process.observing import accounts, asked_app, ran, until, worker

pytestmark = pytest.mark.slow


def judged_by(url):
    return {"OPENAI_API_KEY": "k", "RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_BASE_URL": url}


def test_an_application_gives_its_leases_back_and_lives(tmp_path, hung):
    done = ran("-m", "tests.process.hung_app", tmp_path, hung, timeout=240)
    assert done.returncode == 0, done.stderr
    for number in range(ROUNDS):
        found = accounts(tmp_path / f"{number}.sqlite")
        assert (found.leased, found.ready) == (0, 40)


def test_a_worker_that_is_stopped_gives_its_leases_back_and_says_1(tmp_path, hung):
    path = tmp_path / "spool.sqlite"
    asked_app(path, 0, 20)
    for _ in range(3):
        stopped = worker(path, "--deadline", "1", **judged_by(hung))
        until(lambda: accounts(path).leased > 0, running=stopped)
        stopped.send_signal(signal.SIGTERM)
        _, said = stopped.communicate(timeout=120)
        assert stopped.returncode == 1, said
        assert (accounts(path).leased, accounts(path).ready) == (0, 20)


@pytest.mark.parametrize("is_once", [False, True])
def test_a_worker_whose_spool_vanishes_says_so_and_ends_in_order(tmp_path, hung, is_once):
    folder = tmp_path / "spools"
    folder.mkdir()
    path = folder / "spool.sqlite"
    asked_app(path, 0, 3)
    left = worker(path, "--deadline", "1", *["--once"] * is_once, **judged_by(hung))
    until(lambda: accounts(path).leased > 0, running=left)
    shutil.rmtree(folder)
    if not is_once:
        left.send_signal(signal.SIGTERM)
    _, said = left.communicate(timeout=120)
    # After a signal it may meet its deadline: what was under way came back from the gate, whose file is gone too.
    assert left.returncode in ({1} if is_once else {0, 1}), said
    # Behind it may stand a word of a call that the deadline left under way.
    (stopped,) = [line for line in said.splitlines() if line.startswith("ragtrace worker: stopped; ")]
    assert re.search(r"pending (when last seen|unknown); the spool cannot be read: ", stopped)
    assert "Traceback" not in said
