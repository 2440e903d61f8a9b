"""What is captured just before a process ends: it is scored, its judge is reached by name, and its spans arrive."""

from __future__ import annotations

import json

import pytest

from tests.guards.judge_server import Answer, completion
from tests.process.observing import accounts, ran
from tests.process.parent_app import CHILDREN
from tests.process.test_limits_wired import GOOD

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("how", ["plain", "again", "threadless"])
def test_a_script_that_just_ends_has_its_last_runs_scored_and_exported(server, how):
    server.always = lambda _: Answer(200, completion(GOOD))
    url = server.url.replace("127.0.0.1", "localhost")
    done = ran("-m", "tests.process.ending_app", url, how)
    said = json.loads(done.stdout)
    assert (done.returncode, said["ends"]) == (0, {"offered": 3, "scored": 3}), done.stderr
    assert said["spans"]["evaluation rag"] == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_children_of_multiprocessing_hand_over_what_they_captured(tmp_path, method):
    path = tmp_path / "spool.sqlite"
    ours = {"RAGTRACE_SPOOL": str(path), "RAGTRACE_SCORER": "worker", "RAGTRACE_SAMPLE_RATE": "1"}
    done = ran("-m", "tests.process.parent_app", method, **ours)
    assert (done.returncode, done.stderr) == (0, "")
    assert accounts(path).offered == 1 + CHILDREN
